// How fp32 values travel on the ring. The numbers are frozen: they are part of the protocol.
#pragma once

#include <cstddef>
#include <cstdint>

namespace atl {

enum class WireFormat : std::uint8_t {
  kFp32 = 0,
  kInt8Block = 1,  // blocks of 256: fp32 scale, then 256 int8; value = scale * q, q in [-127, 127]
};

// Values in one block: the unit in which chunks are cut, so that encoded bytes do not depend on the number of islands.
inline constexpr std::int64_t kBlockNumel = 256;

// Bytes of `numel` encoded values. A last short block is encoded short.
constexpr std::int64_t encoded_bytes(WireFormat format, std::int64_t numel) {
  if (format == WireFormat::kFp32) return numel * 4;
  const std::int64_t blocks = (numel + kBlockNumel - 1) / kBlockNumel;
  return blocks * 4 + numel;
}

}  // namespace atl
