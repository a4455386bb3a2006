// A warp's functions: lanes wait until all that the mask names have come, then each gets its result.
#include <algorithm>
#include <bit>

#include "tests/cuda_on_cpu/block.h"

namespace atl::cuda_on_cpu {
namespace {

// PTX ISA, "shfl.sync": the lane that is read, or the caller's own where the segment of `width` lanes ends.
int source_lane(const CudaThread& thread, int lane) {
  const int segment = ~(thread.width - 1) & 31;
  const int first = lane & segment, last = first | (thread.width - 1);
  const int by = thread.argument & 31;
  switch (thread.warp_meeting) {
    case WarpMeeting::kShuffle: return first | (by & (thread.width - 1));
    case WarpMeeting::kShuffleUp: return lane - by >= first ? lane - by : lane;
    case WarpMeeting::kShuffleDown: return lane + by <= last ? lane + by : lane;
    case WarpMeeting::kShuffleXor: return (lane ^ by) <= last ? lane ^ by : lane;
    default: return lane;
  }
}

std::uint32_t combined(WarpMeeting kind, std::uint32_t a, std::uint32_t b) {
  const auto signed_a = static_cast<std::int32_t>(a), signed_b = static_cast<std::int32_t>(b);
  switch (kind) {
    case WarpMeeting::kAddUnsigned: return a + b;
    case WarpMeeting::kMinUnsigned: return std::min(a, b);
    case WarpMeeting::kMaxUnsigned: return std::max(a, b);
    case WarpMeeting::kMinSigned: return static_cast<std::uint32_t>(std::min(signed_a, signed_b));
    case WarpMeeting::kMaxSigned: return static_cast<std::uint32_t>(std::max(signed_a, signed_b));
    case WarpMeeting::kAnd: return a & b;
    case WarpMeeting::kXor: return a ^ b;
    default: return a | b;
  }
}

template <class Visit>
void for_lanes(unsigned mask, const Visit& visit) {
  for (; mask != 0; mask &= mask - 1) visit(static_cast<unsigned>(std::countr_zero(mask)));
}

// All lanes of the mask wait in `kind`.
void give_results(CudaThread* warp, unsigned mask, WarpMeeting kind) {
  const auto first = static_cast<unsigned>(std::countr_zero(mask));
  switch (kind) {
    case WarpMeeting::kSync: {
      std::array<std::uint32_t, kLanes> joined{};
      for_lanes(mask, [&](unsigned lane) {
        for (unsigned i = 0; i < kLanes; ++i) joined[i] = std::max(joined[i], warp[lane].clock[i]);
      });
      for_lanes(mask, [&](unsigned lane) {
        warp[lane].clock = joined;
        ++warp[lane].clock[lane];
      });
      return;
    }
    case WarpMeeting::kShuffle:
    case WarpMeeting::kShuffleUp:
    case WarpMeeting::kShuffleDown:
    case WarpMeeting::kShuffleXor:
      for_lanes(mask, [&](unsigned lane) {
        warp[lane].result = warp[source_lane(warp[lane], static_cast<int>(lane))].value;
      });
      return;
    case WarpMeeting::kBallot: {
      unsigned ballot = 0;
      for_lanes(mask, [&](unsigned lane) { ballot |= (warp[lane].value != 0 ? 1u : 0u) << lane; });
      for_lanes(mask, [&](unsigned lane) { warp[lane].result = ballot; });
      return;
    }
    case WarpMeeting::kMatchAny:
      for_lanes(mask, [&](unsigned lane) {
        unsigned same = 0;
        for_lanes(mask, [&](unsigned other) { same |= (warp[other].value == warp[lane].value ? 1u : 0u) << other; });
        warp[lane].result = same;
      });
      return;
    default: {
      auto all = static_cast<std::uint32_t>(warp[first].value);
      for_lanes(mask & (mask - 1),
                [&](unsigned lane) { all = combined(kind, all, static_cast<std::uint32_t>(warp[lane].value)); });
      for_lanes(mask, [&](unsigned lane) { warp[lane].result = all; });
    }
  }
}

void refuse_bad_masks(const CudaThread& thread, unsigned lane, unsigned lanes, const CudaThread* warp) {
  const unsigned mask = thread.mask;
  if ((mask >> lane & 1u) == 0) fail_in_thread("the mask leaves out the lane that calls, at " + name_of(thread.site));
  if (thread.width < 1 || thread.width > 32 || !std::has_single_bit(static_cast<unsigned>(thread.width))) {
    fail_in_thread("a shuffle's width is no power of two up to 32, at " + name_of(thread.site));
  }
  if (lanes < kLanes && mask >> lanes != 0) {
    fail_in_thread("the mask names lanes that the block does not have, at " + name_of(thread.site));
  }
  for_lanes(mask, [&](unsigned other) {
    if (warp[other].state == CudaThread::State::kReturned) {
      fail_in_thread("lane " + std::to_string(other) + ", named in the mask, has returned, at " + name_of(thread.site));
    }
  });
  const int from = source_lane(thread, static_cast<int>(lane));
  if ((mask >> from & 1u) == 0) {
    fail_in_thread("a shuffle from lane " + std::to_string(from) + ", which the mask leaves out, at " +
                   name_of(thread.site));
  }
}

}  // namespace

std::uint64_t meet_warp(WarpMeeting kind, unsigned mask, std::uint64_t value, int argument, int width, CallSite site) {
  if (!in_kernel) std::abort();
  Launch& l = launch_now;
  const unsigned me = l.now, lane = me % kLanes, warp_begin = me - lane;
  CudaThread* const warp = l.threads.data() + warp_begin;
  CudaThread& thread = l.threads[me];
  thread.warp_meeting = kind;
  thread.mask = mask;
  thread.value = value;
  thread.argument = argument;
  thread.width = width;
  thread.site = site;
  refuse_bad_masks(thread, lane, std::min(kLanes, l.count - warp_begin), warp);
  thread.state = CudaThread::State::kInWarpMeeting;
  bool all = true;
  for_lanes(mask, [&](unsigned other) {
    const CudaThread& t = warp[other];
    all = all && t.state == CudaThread::State::kInWarpMeeting && t.mask == mask && t.warp_meeting == kind;
  });
  if (all) {
    give_results(warp, mask, kind);
    for_lanes(mask, [&](unsigned other) {
      warp[other].state = CudaThread::State::kReady;
      l.ready.push_back(warp_begin + other);
    });
  }
  in_kernel = false;
  switch_context(&thread.context, l.scheduler);
  return thread.result;
}

}  // namespace atl::cuda_on_cpu
