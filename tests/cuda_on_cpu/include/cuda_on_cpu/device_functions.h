// What kernels may call, as CUDA's programming guide describes it: qualifiers, collectives, atomics, conversions and
// mathematics. Functions of correctly rounded results give the GPU's bits; expf, logf, sinf and their like give the C
// library's, which are within a unit or two in the last place of the GPU's. In kernels only.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "cuda_on_cpu/launch.h"

// NOLINTBEGIN
#define __global__ [[gnu::noinline]]
#define __device__
#define __host__
#define __constant__
#define __forceinline__ inline
#define __noinline__ [[gnu::noinline]]
#define __launch_bounds__(...)
#define __align__(bytes) alignas(bytes)
#ifndef __restrict__
#define __restrict__ __restrict
#endif

#define CUDA_ON_CPU_SITE int line = __builtin_LINE(), const char *file = __builtin_FILE()

inline void __syncthreads(CUDA_ON_CPU_SITE) {
  atl::cuda_on_cpu::meet_block(atl::cuda_on_cpu::BlockMeeting::kBarrier, 0, {file, line});
}
inline int __syncthreads_count(int predicate, CUDA_ON_CPU_SITE) {
  return atl::cuda_on_cpu::meet_block(atl::cuda_on_cpu::BlockMeeting::kCount, predicate, {file, line});
}
inline int __syncthreads_and(int predicate, CUDA_ON_CPU_SITE) {
  return atl::cuda_on_cpu::meet_block(atl::cuda_on_cpu::BlockMeeting::kAnd, predicate, {file, line});
}
inline int __syncthreads_or(int predicate, CUDA_ON_CPU_SITE) {
  return atl::cuda_on_cpu::meet_block(atl::cuda_on_cpu::BlockMeeting::kOr, predicate, {file, line});
}
inline void __syncwarp(unsigned mask = 0xffffffffu, CUDA_ON_CPU_SITE) {
  atl::cuda_on_cpu::meet_warp(atl::cuda_on_cpu::WarpMeeting::kSync, mask, 0, 0, 32, {file, line});
}
inline void __threadfence() { atl::cuda_on_cpu::fence(); }
inline void __threadfence_block() { atl::cuda_on_cpu::fence(); }
inline void __threadfence_system() { atl::cuda_on_cpu::fence(); }
inline void __trap() { atl::cuda_on_cpu::trap("__trap"); }

#define CUDA_ON_CPU_SHUFFLE(name, kind, type)                                                 \
  template <class T>                                                                          \
  T name(unsigned mask, T value, type argument, int width = 32, CUDA_ON_CPU_SITE) {           \
    namespace cpu = atl::cuda_on_cpu;                                                         \
    return cpu::unpacked<T>(cpu::meet_warp(cpu::WarpMeeting::kind, mask, cpu::packed(value),  \
                                           static_cast<int>(argument), width, {file, line})); \
  }
CUDA_ON_CPU_SHUFFLE(__shfl_sync, kShuffle, int)
CUDA_ON_CPU_SHUFFLE(__shfl_up_sync, kShuffleUp, unsigned)
CUDA_ON_CPU_SHUFFLE(__shfl_down_sync, kShuffleDown, unsigned)
CUDA_ON_CPU_SHUFFLE(__shfl_xor_sync, kShuffleXor, int)
#undef CUDA_ON_CPU_SHUFFLE

#define CUDA_ON_CPU_REDUCE(name, kind, type)                                                                           \
  inline type name(unsigned mask, type value, CUDA_ON_CPU_SITE) {                                                      \
    namespace cpu = atl::cuda_on_cpu;                                                                                  \
    return cpu::unpacked<type>(cpu::meet_warp(cpu::WarpMeeting::kind, mask, cpu::packed(value), 0, 32, {file, line})); \
  }
CUDA_ON_CPU_REDUCE(__reduce_add_sync, kAddUnsigned, unsigned)
CUDA_ON_CPU_REDUCE(__reduce_add_sync, kAddUnsigned, int)
CUDA_ON_CPU_REDUCE(__reduce_min_sync, kMinUnsigned, unsigned)
CUDA_ON_CPU_REDUCE(__reduce_max_sync, kMaxUnsigned, unsigned)
CUDA_ON_CPU_REDUCE(__reduce_min_sync, kMinSigned, int)
CUDA_ON_CPU_REDUCE(__reduce_max_sync, kMaxSigned, int)
CUDA_ON_CPU_REDUCE(__reduce_and_sync, kAnd, unsigned)
CUDA_ON_CPU_REDUCE(__reduce_or_sync, kOr, unsigned)
CUDA_ON_CPU_REDUCE(__reduce_xor_sync, kXor, unsigned)
#undef CUDA_ON_CPU_REDUCE

inline unsigned __ballot_sync(unsigned mask, int predicate, CUDA_ON_CPU_SITE) {
  namespace cpu = atl::cuda_on_cpu;
  return static_cast<unsigned>(cpu::meet_warp(cpu::WarpMeeting::kBallot, mask, predicate != 0, 0, 32, {file, line}));
}
inline int __any_sync(unsigned mask, int predicate, CUDA_ON_CPU_SITE) {
  return __ballot_sync(mask, predicate, line, file) != 0;
}
inline int __all_sync(unsigned mask, int predicate, CUDA_ON_CPU_SITE) {
  return __ballot_sync(mask, predicate, line, file) == mask;
}
template <class T>
unsigned __match_any_sync(unsigned mask, T value, CUDA_ON_CPU_SITE) {
  namespace cpu = atl::cuda_on_cpu;
  return static_cast<unsigned>(
      cpu::meet_warp(cpu::WarpMeeting::kMatchAny, mask, cpu::packed(value), 0, 32, {file, line}));
}
#undef CUDA_ON_CPU_SITE

// Fibers take turns only where they meet, so an ordinary read and write are one step. Not instrumented: they are no
// plain accesses.
#define CUDA_ON_CPU_ATOMIC(name, result)                                             \
  template <class T>                                                                 \
  [[gnu::no_sanitize("thread")]] T name(T* address, std::type_identity_t<T> value) { \
    atl::cuda_on_cpu::atomic_access(address, sizeof(T));                             \
    const T old = *address;                                                          \
    *address = static_cast<T>(result);                                               \
    return old;                                                                      \
  }
CUDA_ON_CPU_ATOMIC(atomicAdd, old + value)
CUDA_ON_CPU_ATOMIC(atomicSub, old - value)
CUDA_ON_CPU_ATOMIC(atomicExch, value)
CUDA_ON_CPU_ATOMIC(atomicMin, value < old ? value : old)
CUDA_ON_CPU_ATOMIC(atomicMax, value > old ? value : old)
CUDA_ON_CPU_ATOMIC(atomicAnd, old& value)
CUDA_ON_CPU_ATOMIC(atomicOr, old | value)
CUDA_ON_CPU_ATOMIC(atomicXor, old ^ value)
CUDA_ON_CPU_ATOMIC(atomicInc, old >= value ? T{0} : old + 1)
CUDA_ON_CPU_ATOMIC(atomicDec, old == 0 || old > value ? value : old - 1)
#undef CUDA_ON_CPU_ATOMIC
template <class T>
[[gnu::no_sanitize("thread")]] T atomicCAS(T* address, std::type_identity_t<T> expected,
                                           std::type_identity_t<T> value) {
  atl::cuda_on_cpu::atomic_access(address, sizeof(T));
  const T old = *address;
  if (old == expected) *address = value;
  return old;
}

template <class T>
T __ldg(const T* address) {
  return *address;
}
template <class T>
T __ldcs(const T* address) {
  return *address;
}
template <class T>
T __ldcg(const T* address) {
  return *address;
}
template <class T>
void __stcs(T* address, std::type_identity_t<T> value) {
  *address = value;
}
template <class T>
void __stcg(T* address, std::type_identity_t<T> value) {
  *address = value;
}

inline unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
inline int __float_as_int(float x) { return std::bit_cast<int>(x); }
inline float __uint_as_float(unsigned x) { return std::bit_cast<float>(x); }
inline float __int_as_float(int x) { return std::bit_cast<float>(x); }
inline long long __double_as_longlong(double x) { return std::bit_cast<long long>(x); }
inline double __longlong_as_double(long long x) { return std::bit_cast<double>(x); }

inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fsub_rn(float a, float b) { return a - b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
inline float __fsqrt_rn(float a) { return std::sqrt(a); }
inline float __frcp_rn(float a) { return 1.0f / a; }
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dsub_rn(double a, double b) { return a - b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline double __ddiv_rn(double a, double b) { return a / b; }
inline double __dsqrt_rn(double a) { return std::sqrt(a); }
inline double __fma_rn(double a, double b, double c) { return std::fma(a, b, c); }
inline float rsqrtf(float x) { return static_cast<float>(1.0 / std::sqrt(static_cast<double>(x))); }
inline double rsqrt(double x) { return 1.0 / std::sqrt(x); }
inline float __frsqrt_rn(float x) { return rsqrtf(x); }
inline float __expf(float x) { return std::exp(x); }
inline float __logf(float x) { return std::log(x); }
inline float __powf(float x, float y) { return std::pow(x, y); }
inline float __sinf(float x) { return std::sin(x); }
inline float __cosf(float x) { return std::cos(x); }
inline float __fdividef(float a, float b) { return a / b; }
inline float __saturatef(float x) { return x > 0 ? (x < 1 ? x : 1.0f) : 0.0f; }
using std::fma;

// NaN becomes 0 and what is too large the nearest end, where C++ leaves the result undefined.
inline int __float2int_rn(float x) {
  if (x != x) return 0;
  if (x >= 2147483648.0f) return INT32_MAX;
  return x <= -2147483648.0f ? INT32_MIN : static_cast<int>(std::nearbyint(x));
}
inline int __float2int_rz(float x) { return __float2int_rn(std::trunc(x)); }
inline int __float2int_rd(float x) { return __float2int_rn(std::floor(x)); }
inline int __float2int_ru(float x) { return __float2int_rn(std::ceil(x)); }
inline float __int2float_rn(int x) { return static_cast<float>(x); }
inline float __uint2float_rn(unsigned x) { return static_cast<float>(x); }
inline float __double2float_rn(double x) { return static_cast<float>(x); }

inline int __popc(unsigned x) { return std::popcount(x); }
inline int __clz(int x) { return std::countl_zero(static_cast<unsigned>(x)); }
inline int __ffs(int x) { return x == 0 ? 0 : std::countr_zero(static_cast<unsigned>(x)) + 1; }
inline unsigned __umulhi(unsigned a, unsigned b) { return static_cast<unsigned>(std::uint64_t{a} * b >> 32); }
inline unsigned __brev(unsigned x) {
  unsigned reversed = 0;
  for (int i = 0; i < 32; ++i) reversed |= (x >> i & 1u) << (31 - i);
  return reversed;
}

#define CUDA_ON_CPU_MIN_MAX(type)                              \
  constexpr type min(type a, type b) { return b < a ? b : a; } \
  constexpr type max(type a, type b) { return a < b ? b : a; }
CUDA_ON_CPU_MIN_MAX(int)
CUDA_ON_CPU_MIN_MAX(unsigned)
CUDA_ON_CPU_MIN_MAX(long)
CUDA_ON_CPU_MIN_MAX(unsigned long)
CUDA_ON_CPU_MIN_MAX(long long)
CUDA_ON_CPU_MIN_MAX(unsigned long long)
#undef CUDA_ON_CPU_MIN_MAX
constexpr unsigned min(unsigned a, int b) { return min(a, static_cast<unsigned>(b)); }
constexpr unsigned min(int a, unsigned b) { return min(static_cast<unsigned>(a), b); }
constexpr unsigned max(unsigned a, int b) { return max(a, static_cast<unsigned>(b)); }
constexpr unsigned max(int a, unsigned b) { return max(static_cast<unsigned>(a), b); }
// Of a number and a NaN, the number.
inline float min(float a, float b) { return std::fmin(a, b); }
inline float max(float a, float b) { return std::fmax(a, b); }
inline double min(double a, double b) { return std::fmin(a, b); }
inline double max(double a, double b) { return std::fmax(a, b); }
// NOLINTEND
