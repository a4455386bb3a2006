// How fp32 values travel on the ring: formats, their names in a run's configuration, and their sizes. What the bytes of
// each mean is said by the header of its codec (kernels/int8_block.h and its siblings).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace atl {

// The numbers are frozen: they are part of the protocol.
enum class WireFormat : std::uint8_t {
  kFp32 = 0,          // the values themselves
  kInt8Block = 1,     // 128 values: bf16 scale, then 128 int8; value = scale * q, q in [-127, 127]
  kBf16 = 2,          // the upper half of an fp32, rounded to nearest even
  kInt4E3m0 = 3,      // 256 values: fp32 scale, then 256 nibbles of sign and 3-bit exponent
  kInt8Codebook = 4,  // 65,536 values: 256 fp32 means, then a byte each; for benchmarks, plain C++ only
};

// All that is known of a format beside what its codec does (kernels/int8_block.h and its siblings): one row each, by
// the enum's numbers. What follows from a row is said by the functions below; nobody else decides by a format's name.
struct WireFormatTraits {
  WireFormat format;
  std::string_view name;          // in a run's configuration, on command lines
  int bits_per_value;             // scales and codebooks not counted
  std::int64_t block_numel;       // the unit that is encoded on its own: see block_numel()
  std::int64_t block_head_bytes;  // scale or codebook, before the block's values
  bool sums_hop_by_hop;           // see sums_hop_by_hop()
  bool feeds_errors_back;         // see feeds_errors_back()
  bool for_runs;                  // a run may use it; else it is there for benchmarks, to be compared with
  double error;      // relative, root mean square, of one encoding of normal values: what no mistake exceeds
  bool error_grows;  // with the number of islands, since each hop of a sum adds its own
};

// Not a std::array: files with processor-specific instructions call none of its functions (kernels/codec_simd.h).
inline constexpr WireFormatTraits kWireFormatTraits[] = {
    {WireFormat::kFp32, "fp32", 32, 256, 0, true, false, true, 1e-5, false},
    {WireFormat::kInt8Block, "int8-block", 8, 128, 2, true, false, true, 0.011, true},
    {WireFormat::kBf16, "bf16", 16, 256, 0, true, false, true, 0.004, true},
    // Below 8 bits partial sums must not travel encoded.
    {WireFormat::kInt4E3m0, "int4-e3m0", 4, 256, 4, false, true, true, 0.3, false},
    {WireFormat::kInt8Codebook, "int8-codebook", 8, 65'536, 1024, true, false, false, 0.03, true},
};
inline constexpr std::size_t kWireFormatCount = sizeof kWireFormatTraits / sizeof kWireFormatTraits[0];
static_assert(
    [] {
      for (std::size_t i = 0; i < kWireFormatCount; ++i) {
        if (static_cast<std::size_t>(kWireFormatTraits[i].format) != i) return false;
      }
      return true;
    }(),
    "the table is in the order of the enum's numbers");

constexpr const WireFormatTraits& traits_of(WireFormat format) {
  return kWireFormatTraits[static_cast<std::size_t>(format)];
}

// Whether a byte from outside is one of the enum's values.
constexpr bool is_wire_format(std::uint8_t value) { return value < kWireFormatCount; }

constexpr std::string_view wire_format_name(WireFormat format) {
  return is_wire_format(static_cast<std::uint8_t>(format)) ? traits_of(format).name : "unknown";
}

constexpr std::optional<WireFormat> wire_format_named(std::string_view name) {
  for (const WireFormatTraits& traits : kWireFormatTraits) {
    if (traits.name == name) return traits.format;
  }
  return std::nullopt;
}

namespace wire_format_lists {
template <bool kAll>
constexpr std::size_t count() {
  std::size_t found = 0;
  for (const WireFormatTraits& traits : kWireFormatTraits) found += kAll || traits.for_runs ? 1 : 0;
  return found;
}
template <bool kAll, class T, T WireFormatTraits::*kField>
constexpr auto column() {
  std::array<T, count<kAll>()> values{};
  std::size_t filled = 0;
  for (const WireFormatTraits& traits : kWireFormatTraits) {
    if (kAll || traits.for_runs) values[filled++] = traits.*kField;
  }
  return values;
}
}  // namespace wire_format_lists

inline constexpr auto kWireFormats = wire_format_lists::column<true, WireFormat, &WireFormatTraits::format>();
// For messages and help: of all, and of those that a run may use.
inline constexpr auto kWireFormatNames = wire_format_lists::column<true, std::string_view, &WireFormatTraits::name>();
inline constexpr auto kRunWireFormatNames =
    wire_format_lists::column<false, std::string_view, &WireFormatTraits::name>();

// Of one value, scales and codebooks not counted.
constexpr int bits_per_value(WireFormat format) { return traits_of(format).bits_per_value; }

// Whether partial sums may travel encoded from hop to hop. Below 8 bits that ruins them: each contribution goes
// straight to its chunk's owner instead.
constexpr bool sums_hop_by_hop(WireFormat format) { return traits_of(format).sums_hop_by_hop; }

// Whether what encoding loses is sent with the next round by default (kernels/wire_codec.h, ErrorFeedback).
constexpr bool feeds_errors_back(WireFormat format) { return traits_of(format).feeds_errors_back; }

// Values in one block: the unit that is encoded on its own, and in which chunks and sub-chunks are cut, so that a
// block's bytes do not depend on the number of islands.
constexpr std::int64_t block_numel(WireFormat format) { return traits_of(format).block_numel; }

// What codecs and kernels are compiled for. Plain numbers, so that device code may use them.
inline constexpr std::int64_t kBlockNumel = block_numel(WireFormat::kFp32);  // of bf16 and int4-e3m0, too
inline constexpr std::int64_t kInt8BlockNumel = block_numel(WireFormat::kInt8Block);
inline constexpr std::int64_t kCodebookBlockNumel = block_numel(WireFormat::kInt8Codebook);
static_assert(kBlockNumel == block_numel(WireFormat::kBf16) && kBlockNumel == block_numel(WireFormat::kInt4E3m0));

// Bytes of `numel` values that begin at a block. A last short block is encoded short.
constexpr std::int64_t encoded_bytes(WireFormat format, std::int64_t numel) {
  const WireFormatTraits& traits = traits_of(format);
  const std::int64_t blocks = (numel + traits.block_numel - 1) / traits.block_numel;
  return blocks * traits.block_head_bytes + (numel * traits.bits_per_value + 7) / 8;
}
// Of one whole block.
constexpr std::int64_t block_bytes(WireFormat format) { return encoded_bytes(format, block_numel(format)); }

// First value of part `index` of `parts` nearly equal parts of `numel` values, cut at blocks; index == parts: the end.
// What several threads encode or decode of one span, with the same bytes as one thread.
constexpr std::int64_t part_begin(WireFormat format, std::int64_t numel, std::int64_t parts, std::int64_t index) {
  const std::int64_t blocks = (numel + block_numel(format) - 1) / block_numel(format);
  const std::int64_t begin = blocks * index / parts * block_numel(format);
  return begin < numel ? begin : numel;
}

}  // namespace atl
