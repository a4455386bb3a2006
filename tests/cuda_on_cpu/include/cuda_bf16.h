// Takes the place of the CUDA toolkit's header: bf16, rounded to nearest even, computed with in fp32. A NaN becomes
// 0x7fff, as the GPU's conversion makes it.
#pragma once

#include <bit>
#include <cstdint>

#include "cuda_runtime.h"

// NOLINTBEGIN
struct __nv_bfloat16_raw {
  unsigned short x;
};

struct alignas(2) __nv_bfloat16 {
  __nv_bfloat16() = default;
  __nv_bfloat16(__nv_bfloat16_raw raw) : bits(raw.x) {}
  __nv_bfloat16(float value) {
    const auto all = std::bit_cast<std::uint32_t>(value);
    bits = value != value ? 0x7fff : static_cast<unsigned short>((all + 0x7fffu + (all >> 16 & 1u)) >> 16);
  }
  operator float() const { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }
  unsigned short bits;
};
static_assert(sizeof(__nv_bfloat16) == 2);

struct alignas(4) __nv_bfloat162 {
  __nv_bfloat16 x, y;
};

using nv_bfloat16 = __nv_bfloat16;
using nv_bfloat162 = __nv_bfloat162;

inline __nv_bfloat16 operator+(__nv_bfloat16 a, __nv_bfloat16 b) { return {float{a} + float{b}}; }
inline __nv_bfloat16 operator-(__nv_bfloat16 a, __nv_bfloat16 b) { return {float{a} - float{b}}; }
inline __nv_bfloat16 operator*(__nv_bfloat16 a, __nv_bfloat16 b) { return {float{a} * float{b}}; }
inline __nv_bfloat16 operator/(__nv_bfloat16 a, __nv_bfloat16 b) { return {float{a} / float{b}}; }
inline __nv_bfloat16 __float2bfloat16(float value) { return {value}; }
inline __nv_bfloat16 __float2bfloat16_rn(float value) { return {value}; }
inline float __bfloat162float(__nv_bfloat16 value) { return value; }
inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 value) { return value.bits; }
inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short bits) { return __nv_bfloat16_raw{bits}; }
inline __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 low, __nv_bfloat16 high) { return {low, high}; }
inline __nv_bfloat162 make_bfloat162(__nv_bfloat16 low, __nv_bfloat16 high) { return {low, high}; }
inline __nv_bfloat162 __floats2bfloat162_rn(float low, float high) { return {low, high}; }
inline __nv_bfloat162 __float22bfloat162_rn(float2 two) { return {two.x, two.y}; }
inline __nv_bfloat162 __float2bfloat162_rn(float value) { return {value, value}; }
inline __nv_bfloat162 __bfloat162bfloat162(__nv_bfloat16 value) { return {value, value}; }
inline float2 __bfloat1622float2(__nv_bfloat162 two) { return {two.x, two.y}; }
inline float __low2float(__nv_bfloat162 two) { return two.x; }
inline float __high2float(__nv_bfloat162 two) { return two.y; }
inline __nv_bfloat16 __low2bfloat16(__nv_bfloat162 two) { return two.x; }
inline __nv_bfloat16 __high2bfloat16(__nv_bfloat162 two) { return two.y; }
inline bool __hisnan(__nv_bfloat16 value) { return (value.bits & 0x7fff) > 0x7f80; }
// NOLINTEND
