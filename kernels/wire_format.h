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
  kInt8Codebook = 4,  // 65,536 values: 256 fp32 means, then a byte each; for comparison, plain C++ only
};

inline constexpr std::array kWireFormats{WireFormat::kFp32, WireFormat::kInt8Block, WireFormat::kBf16,
                                         WireFormat::kInt4E3m0, WireFormat::kInt8Codebook};

constexpr std::string_view wire_format_name(WireFormat format) {
  switch (format) {
    case WireFormat::kFp32: return "fp32";
    case WireFormat::kInt8Block: return "int8-block";
    case WireFormat::kBf16: return "bf16";
    case WireFormat::kInt4E3m0: return "int4-e3m0";
    case WireFormat::kInt8Codebook: return "int8-codebook";
  }
  return "unknown";
}

constexpr std::optional<WireFormat> wire_format_named(std::string_view name) {
  for (const WireFormat format : kWireFormats) {
    if (wire_format_name(format) == name) return format;
  }
  return std::nullopt;
}

// For messages and help.
inline constexpr auto kWireFormatNames = [] {
  std::array<std::string_view, kWireFormats.size()> names;
  for (std::size_t i = 0; i < names.size(); ++i) names[i] = wire_format_name(kWireFormats[i]);
  return names;
}();

// Whether a byte from outside is one of the enum's values.
constexpr bool is_wire_format(std::uint8_t value) { return value < kWireFormats.size(); }

// Of one value, scales and codebooks not counted.
constexpr int bits_per_value(WireFormat format) {
  switch (format) {
    case WireFormat::kFp32: return 32;
    case WireFormat::kBf16: return 16;
    case WireFormat::kInt4E3m0: return 4;
    default: return 8;
  }
}

// Whether partial sums may travel encoded from hop to hop. Below 8 bits that ruins them: each contribution goes
// straight to its chunk's owner instead.
constexpr bool sums_hop_by_hop(WireFormat format) { return bits_per_value(format) >= 8; }

// Whether what encoding loses is sent with the next round by default (kernels/wire_codec.h, ErrorFeedback).
constexpr bool feeds_errors_back(WireFormat format) { return bits_per_value(format) < 8; }

inline constexpr std::int64_t kBlockNumel = 256;  // of every format that has no other
inline constexpr std::int64_t kInt8BlockNumel = 128;
inline constexpr std::int64_t kCodebookBlockNumel = 65'536;

// Values in one block: the unit that is encoded on its own, and in which chunks and sub-chunks are cut, so that a
// block's bytes do not depend on the number of islands.
constexpr std::int64_t block_numel(WireFormat format) {
  switch (format) {
    case WireFormat::kInt8Block: return kInt8BlockNumel;
    case WireFormat::kInt8Codebook: return kCodebookBlockNumel;
    default: return kBlockNumel;
  }
}

// Bytes of `numel` values that begin at a block. A last short block is encoded short.
constexpr std::int64_t encoded_bytes(WireFormat format, std::int64_t numel) {
  const std::int64_t blocks = (numel + block_numel(format) - 1) / block_numel(format);
  switch (format) {
    case WireFormat::kFp32: return numel * 4;
    case WireFormat::kBf16: return numel * 2;
    case WireFormat::kInt4E3m0: return blocks * 4 + (numel + 1) / 2;
    case WireFormat::kInt8Codebook: return blocks * 1024 + numel;
    case WireFormat::kInt8Block: return blocks * 2 + numel;
  }
  return 0;
}

// First value of part `index` of `parts` nearly equal parts of `numel` values, cut at blocks; index == parts: the end.
// What several threads encode or decode of one span, with the same bytes as one thread.
constexpr std::int64_t part_begin(WireFormat format, std::int64_t numel, std::int64_t parts, std::int64_t index) {
  const std::int64_t blocks = (numel + block_numel(format) - 1) / block_numel(format);
  const std::int64_t begin = blocks * index / parts * block_numel(format);
  return begin < numel ? begin : numel;
}

}  // namespace atl
