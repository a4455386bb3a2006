// Loops compiled twice, for AVX2 and for any x86-64; the loader picks. Other architectures compile them once.
#pragma once

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define ATOLL_SIMD_CLONES __attribute__((target_clones("avx2", "default")))
#else
#define ATOLL_SIMD_CLONES
#endif
// For what a cloned loop calls: it must become part of the clone.
#define ATOLL_SIMD_INLINE inline __attribute__((always_inline))
