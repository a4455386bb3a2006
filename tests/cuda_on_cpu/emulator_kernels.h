// Kernels that emulator_test.cpp runs. Pointers: device. Launched on the null stream; what is returned is the launch's
// error.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

namespace atl {

// What a block of 64 threads may do wrong, and beside each what is right and much like it.
enum class Habit {
  kBarriersAlike,
  kBarriersDiffer,
  kBarrierOfSome,
  kBarrierAfterSomeReturned,
  kReadAfterBarrier,
  kReadWithoutBarrier,
  kOverwriteAfterBarrier,
  kOverwriteWithoutBarrier,
  kReadAfterWarpBarrier,
  kReadWithoutWarpBarrier,
  kMaskOfHalfAWarp,
  kMaskWithoutCaller,
  kMaskOfReturnedLane,
  kShuffleFromOutsideMask,
  kShuffleOfWidthThree,
  kWarpMeetsDifferently,
  kReadPastTheEnd,
  kReadBeforeTheBegin,
  kWritePastTheEnd,
  kReadOfHostMemory,
  kReadPastSharedEnd,
  kMisalignedVector,
  kAtomicFromAllBlocks,
  kWriteFromAllBlocks,
  kAtomicAndRead,
  kDynamicWithoutAny,
  kTrap,
};
// A grid of two blocks; values: [64], host: memory that is not the device's.
cudaError_t launch_habit(Habit habit, float* values, const float* host);

// out [block.x * ... * grid.z]: 1 + the thread's place in the grid, x fastest, blocks outermost.
cudaError_t launch_places(dim3 grid, dim3 block, std::size_t shared_bytes, unsigned* out);
// order [grid * block]: global indices of threads in the order in which they begin; `taken` begins at 0.
cudaError_t launch_order(unsigned grid, unsigned block, unsigned* taken, unsigned* order);
// out [64]: what static and dynamic shared memory hold before anybody writes: 32 values of each.
cudaError_t launch_unwritten_shared(float* out);
// out [rows of 32 lanes]: one row for each function, in the order of emulator_test.cpp.
inline constexpr int kWarpRows = 14;
cudaError_t launch_warp_functions(unsigned* out);
// Of 2 blocks of 64: sum [1] += 1.0f each; largest [1] <- the largest index; first [1] <- 7 where it was 0; count [1].
cudaError_t launch_atomics(float* sum, int* largest, unsigned* first, int* count);
// out [64] <- value, where `value` counts how often its launch evaluated it.
cudaError_t launch_counted_argument(int* out, int* evaluations);
// y [n] <- x [n] through __nv_bfloat16, each by another function.
cudaError_t launch_bf16(const float* x, float* y, int numel);

}  // namespace atl
