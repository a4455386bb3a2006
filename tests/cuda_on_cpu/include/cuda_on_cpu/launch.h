// What transformed kernels call: launches, shared memory, barriers and collectives. tests/cuda_on_cpu/emulator.cpp is
// behind it. Nobody includes this by name; <cuda_runtime_api.h> of this directory does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "cuda_on_cpu/vector_types.h"

using cudaStream_t = struct CUstream_st*;

namespace atl::cuda_on_cpu {

// Of a call in a kernel.
struct CallSite {
  const char* file;
  int line;
};

struct LaunchSite {
  const char* kernel;  // as it is written before <<<
  CallSite at;
};

// What stands between <<< and >>>.
struct Configuration {
  Configuration(dim3 grid_dim, dim3 block_dim, std::size_t shared = 0, cudaStream_t = nullptr)
      : grid(grid_dim), block(block_dim), shared_bytes(shared) {}
  dim3 grid;
  dim3 block;
  std::size_t shared_bytes;
};

// Runs `body(arguments)` once a thread of the grid; cudaGetLastError says whether it could.
void run_grid(const LaunchSite& site, const Configuration& configuration, void (*body)(const void*),
              const void* arguments);

// Arguments are evaluated once, and each thread gets its own copies as its parameters.
template <class Kernel, class... Arguments>
void launch(const LaunchSite& site, const Configuration& configuration, const Kernel& kernel, Arguments... arguments) {
  const auto call = [&] { kernel(arguments...); };
  run_grid(
      site, configuration, [](const void* p) { (*static_cast<const decltype(call)*>(p))(); }, &call);
}

// The block's memory of that key, the same for all of its threads; NaN bytes when the block begins.
void* static_shared_bytes(const void* key, const char* name, std::size_t bytes, std::size_t alignment);
void* dynamic_shared_bytes();

// `Memory` is made for one declaration of __shared__ variables, in one instance of the function.
template <class Memory>
Memory& static_shared(const char* name) {
  static_assert(std::is_trivially_destructible_v<Memory>);
  static const char key = 0;
  return *static_cast<Memory*>(static_shared_bytes(&key, name, sizeof(Memory), alignof(Memory)));
}

enum class BlockMeeting { kBarrier, kCount, kAnd, kOr };
// The barrier that all threads of the block come to, and what it says of their predicates.
int meet_block(BlockMeeting kind, int predicate, CallSite site);

enum class WarpMeeting {
  kSync,
  kShuffle,
  kShuffleUp,
  kShuffleDown,
  kShuffleXor,
  kBallot,
  kMatchAny,
  kAddUnsigned,
  kMinUnsigned,
  kMaxUnsigned,
  kMinSigned,
  kMaxSigned,
  kAnd,
  kOr,
  kXor,
};
// The lanes of `mask` give a value each; what comes back is what CUDA's function of that name gives to the caller.
std::uint64_t meet_warp(WarpMeeting kind, unsigned mask, std::uint64_t value, int argument, int width, CallSite site);

// Atomic operations are ordered with each other, not with plain reads and writes.
void atomic_access(const void* address, std::size_t bytes);
// After a fence, what blocks write and read of each other's is no longer judged, in this launch.
void fence();
[[noreturn]] void trap(const char* why);

template <class T>
std::uint64_t packed(T value) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 8);
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  return bits;
}
template <class T>
T unpacked(std::uint64_t bits) {
  T value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

}  // namespace atl::cuda_on_cpu
