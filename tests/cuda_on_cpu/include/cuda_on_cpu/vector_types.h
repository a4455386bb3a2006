// CUDA's vectors of two to four values, aligned as there, dim3 and the built-in indices. No room owns these names: they
// are CUDA's.
#pragma once

// NOLINTBEGIN
#define CUDA_ON_CPU_VECTORS(type, name, align2, align4)                          \
  struct alignas(align2) name##2 {                                               \
    type x, y;                                                                   \
  };                                                                             \
  struct name##3 {                                                               \
    type x, y, z;                                                                \
  };                                                                             \
  struct alignas(align4) name##4 {                                               \
    type x, y, z, w;                                                             \
  };                                                                             \
  constexpr name##2 make_##name##2(type x, type y) { return {x, y}; }            \
  constexpr name##3 make_##name##3(type x, type y, type z) { return {x, y, z}; } \
  constexpr name##4 make_##name##4(type x, type y, type z, type w) { return {x, y, z, w}; }

CUDA_ON_CPU_VECTORS(signed char, char, 2, 4)
CUDA_ON_CPU_VECTORS(unsigned char, uchar, 2, 4)
CUDA_ON_CPU_VECTORS(short, short, 4, 8)
CUDA_ON_CPU_VECTORS(unsigned short, ushort, 4, 8)
CUDA_ON_CPU_VECTORS(int, int, 8, 16)
CUDA_ON_CPU_VECTORS(unsigned, uint, 8, 16)
CUDA_ON_CPU_VECTORS(long long, longlong, 16, 16)
CUDA_ON_CPU_VECTORS(unsigned long long, ulonglong, 16, 16)
CUDA_ON_CPU_VECTORS(float, float, 8, 16)
CUDA_ON_CPU_VECTORS(double, double, 16, 16)
#undef CUDA_ON_CPU_VECTORS

struct dim3 {
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  unsigned x, y, z;
};

// Of the thread that runs now.
extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;
inline constexpr int warpSize = 32;
// NOLINTEND
