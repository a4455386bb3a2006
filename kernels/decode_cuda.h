// How one value is read from each format's bytes, device code: the one place where the GPU decodes. The codecs' kernels
// take the parts (scale, code) from words that a lane has loaded, the outer step a value by its index. Special values
// as the headers of the formats say: what does not decode to a number is the quiet NaN 0x7fc00000. Included by .cu
// files alone.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/float_bits.h"
#include "kernels/wire_format.h"

namespace atl::cuda {

__device__ inline float quiet_nan_on_device() { return __uint_as_float(kQuietNaNBits); }
__device__ inline bool finite_on_device(float x) { return (__float_as_uint(x) & kMagnitudeMask) < kInfinityBits; }
__device__ inline float without_payload_on_device(float x) { return x == x ? x : quiet_nan_on_device(); }

// A bf16 as the fp32 that it is the upper half of.
__device__ inline float widened(std::uint32_t upper) { return __uint_as_float(upper << 16); }

// Parts of a block, and one value of them. `at` reads value i of bytes that begin at a block; 4-byte aligned.
template <WireFormat kFormat>
struct DeviceDecode;

template <>
struct DeviceDecode<WireFormat::kFp32> {
  __device__ static float at(const std::byte* bytes, std::int64_t i) {
    return reinterpret_cast<const float*>(bytes)[i];
  }
};

template <>
struct DeviceDecode<WireFormat::kBf16> {
  __device__ static float value(std::uint32_t upper) { return without_payload_on_device(widened(upper)); }
  __device__ static float at(const std::byte* bytes, std::int64_t i) {
    return value(reinterpret_cast<const std::uint16_t*>(bytes)[i]);
  }
};

template <>
struct DeviceDecode<WireFormat::kInt8Block> {
  static constexpr std::int64_t kBytes = block_bytes(WireFormat::kInt8Block);
  static constexpr std::int64_t kHeadBytes = kBytes - kInt8BlockNumel;
  __device__ static std::uint32_t scale_bits_of(const std::byte* block) {
    return *reinterpret_cast<const std::uint16_t*>(block);
  }
  __device__ static float value(std::uint32_t scale_bits, std::int8_t q) {
    const float scale = widened(scale_bits);
    return finite_on_device(scale) ? __fmul_rn(scale, static_cast<float>(q)) : quiet_nan_on_device();
  }
  __device__ static float at(const std::byte* bytes, std::int64_t i) {
    const std::byte* const block = bytes + i / kInt8BlockNumel * kBytes;
    return value(scale_bits_of(block), static_cast<std::int8_t>(block[kHeadBytes + i % kInt8BlockNumel]));
  }
};

template <>
struct DeviceDecode<WireFormat::kInt4E3m0> {
  static constexpr std::int64_t kBytes = block_bytes(WireFormat::kInt4E3m0);
  static constexpr std::int64_t kHeadBytes = kBytes - kBlockNumel / 2;
  __device__ static float scale_of(const std::byte* block) { return *reinterpret_cast<const float*>(block); }
  // Levels are powers of two: their exponent is m - 7, and 127 its bias.
  __device__ static float value(float scale, std::uint32_t code) {
    const std::uint32_t m = code & 7u;
    const float level = __uint_as_float((m == 0 ? 0u : (m + 120u) << 23) | (code & 8u) << 28);
    return finite_on_device(scale) ? __fmul_rn(scale, level) : quiet_nan_on_device();
  }
  __device__ static float at(const std::byte* bytes, std::int64_t i) {
    const std::byte* const block = bytes + i / kBlockNumel * kBytes;
    const auto pair = static_cast<std::uint32_t>(block[kHeadBytes + i % kBlockNumel / 2]);
    return value(scale_of(block), pair >> (i % 2 * 4) & 15u);
  }
};

}  // namespace atl::cuda
