// What every part of one running attempt refers to. All of it outlives the attempt's threads.
#pragma once

#include "net/collective/all_reduce.h"
#include "net/collective/frame_board.h"
#include "net/collective/partial_sums.h"
#include "net/collective/ring_schedule.h"

namespace atl {

class LinkPacing;

// A member that says that it lives and sends no data for so many silence timeouts stalls the ring (edge_monitor.h).
inline constexpr int kStallTimeouts = 3;
// And at most so many while it says that it waits itself: a frame on 16 connections at 12 kB/s takes no longer at 6 s
// each.
inline constexpr int kLongestStall = 30;

struct AttemptContext {
  const OuterStep round;
  const Attempt attempt;
  const FragmentId fragment;
  const IslandId& next;
  const IslandId& previous;
  const EdgeSchedule& outbound;
  const EdgeSchedule& inbound;
  const std::span<std::byte> canonical;
  const PartialSums& sums;
  FrameBoard& board;
  const std::function<void(std::size_t, std::size_t)>& on_final;
  DownloadPace* const download;  // null: no limit
  LinkPacing& link;              // to the next rank
};

}  // namespace atl
