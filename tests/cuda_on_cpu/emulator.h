// CUDA kernels on the CPU, as a test sees it: the order in which threads run, and what went wrong. A block is run at a
// time, on the thread that launches; its CUDA threads are stacks that take turns, in an order drawn from the seed,
// where they meet. Launches of several threads follow one another.
//
// These end the process with a message that names the kernel, the block and the thread: a barrier or a warp's function
// that not all come to; a mask that leaves its caller out, or that names a lane which has returned or does not exist; a
// shuffle from a lane outside the mask; a read or write outside of device and shared memory; a misaligned one; two
// accesses of the same bytes that no barrier orders, one of them a write. In a FailureCatcher's life the launch is
// given up instead.
#pragma once

#include <cstdint>
#include <string>

namespace atl::cuda_on_cpu {

// Orders of blocks and threads follow from it, launch by launch. Not while a kernel runs.
void set_seed(std::uint64_t seed);

// While it lives, the first failure of each launch is kept, the launch is given up, its error is
// cudaErrorLaunchFailure. One at a time; on the launching thread.
class FailureCatcher {
 public:
  FailureCatcher();
  ~FailureCatcher();
  FailureCatcher(const FailureCatcher&) = delete;
  FailureCatcher& operator=(const FailureCatcher&) = delete;

  // Of the first that failed; empty if none did.
  std::string message() const;
};

}  // namespace atl::cuda_on_cpu
