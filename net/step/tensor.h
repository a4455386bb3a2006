// What the operations of a step work on: matrices in one rank's two arenas. Plain values; they hold no memory. Any
// thread.
#pragma once

#include <cstdint>
#include <string>

namespace atl {

enum class DType : std::uint8_t { kFloat32, kBfloat16, kInt32, kFloat64 };

constexpr std::int64_t size_of(DType dtype) { return dtype == DType::kBfloat16 ? 2 : dtype == DType::kFloat64 ? 8 : 4; }

// A rank takes each arena once, when its programs are made, and never again.
enum class Arena : std::uint8_t {
  kKept,  // from step to step: parameters, gradients, moments, scalars
  kStep,  // for as long as a program runs: activations, gathered units, scratch; all programs use the same bytes
};
inline constexpr int kArenas = 2;
inline constexpr std::int64_t kArenaAlignment = 256;  // bytes; of every buffer
constexpr std::int64_t arena_aligned(std::int64_t bytes) {
  return (bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment;
}

// A row-major matrix: `rows` rows of `columns` elements, a row's first element `stride` elements after the one before.
// A vector is one row. Of a buffer of an arena; where in the arena is known once the buffer has its place
// (net/step/program.h).
struct Tensor {
  Arena arena = Arena::kStep;
  std::int32_t buffer = -1;
  DType dtype = DType::kFloat32;
  std::int64_t first = 0;  // element of the buffer
  std::int64_t rows = 1;
  std::int64_t columns = 0;
  std::int64_t stride = 0;  // elements
  std::int64_t byte = -1;   // of the arena; -1: not placed yet

  std::int64_t numel() const { return rows * columns; }
  // From the first byte to behind the last one that belongs to it.
  std::int64_t extent_bytes() const { return numel() == 0 ? 0 : ((rows - 1) * stride + columns) * size_of(dtype); }
  bool contiguous() const { return rows == 1 || stride == columns; }

  Tensor from(std::int64_t element) const {
    Tensor part = *this;
    part.first += element;
    if (byte >= 0) part.byte += element * size_of(dtype);
    return part;
  }
  Tensor row_range(std::int64_t first_row, std::int64_t count) const {
    Tensor part = from(first_row * stride);
    part.rows = count;
    return part;
  }
  Tensor column_range(std::int64_t first_column, std::int64_t count) const {
    Tensor part = from(first_column);
    part.columns = count;
    return part;
  }
  // Elements [offset, offset + rows * columns) of a contiguous tensor, in another shape.
  Tensor view(std::int64_t offset, std::int64_t new_rows, std::int64_t new_columns) const {
    Tensor part = from(offset);
    part.rows = new_rows;
    part.columns = part.stride = new_columns;
    return part;
  }
  Tensor flat() const { return view(0, 1, numel()); }
};

}  // namespace atl
