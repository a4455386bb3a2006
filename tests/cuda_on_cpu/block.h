// A block that runs: its threads, who waits for whom, and what a failure is reported as. The launching thread's, under
// the launch lock of emulator.cpp; one exists at a time.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "cuda_on_cpu/launch.h"
#include "tests/cuda_on_cpu/fibers.h"

namespace atl::cuda_on_cpu {

inline constexpr unsigned kLanes = 32;

struct CudaThread {
  enum class State { kReady, kInBlockMeeting, kInWarpMeeting, kReturned };
  Context context = nullptr;
  std::byte* stack = nullptr;
  uint3 index{};
  State state = State::kReady;
  // Of the meeting that it waits in
  CallSite site{};
  BlockMeeting block_meeting{};
  WarpMeeting warp_meeting{};
  unsigned mask = 0;
  std::uint64_t value = 0;
  int argument = 0, width = 0;
  std::uint64_t result = 0;
  // Of each lane of its warp, how much of what it did comes before what this thread does now (a vector clock). Of its
  // own lane, the present.
  std::array<std::uint32_t, kLanes> clock{};
};

struct Launch {
  const LaunchSite* site = nullptr;
  const Configuration* configuration = nullptr;
  void (*body)(const void*) = nullptr;
  const void* arguments = nullptr;
  uint3 block_index{};
  std::vector<CudaThread> threads;
  unsigned count = 0;  // of threads
  unsigned now = 0;    // the one that runs
  Context scheduler = nullptr;
  std::vector<unsigned> ready;
  unsigned in_block_meeting = 0, returned = 0;
  // Time, in the intervals between a block's barriers, which are numbered through all launches
  std::uint32_t era = 0, first_era_of_launch = 0, first_era_of_block = 0;
  bool fenced = false;
  bool failed = false;
};

extern Launch launch_now;
// A thread of a kernel runs, on this thread of the operating system.
extern thread_local bool in_kernel __attribute__((tls_model("initial-exec")));
extern std::uintptr_t stack_now;  // its lowest byte

// Reports and does not return: the process ends, or the launch is given up. `thread` as an index into threads.
[[noreturn]] void fail_in_thread(const std::string& what);
// Reports on behalf of the scheduler; returns only if the launch is to be given up.
void fail_in_block(const std::string& what);
std::string name_of(uint3 index);
std::string name_of(CallSite site);

}  // namespace atl::cuda_on_cpu
