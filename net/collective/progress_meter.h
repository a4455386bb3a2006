// How far a running attempt is and how fast its bytes move, told now and then. It is made of what the attempt counts
// anyway (frame_board.h, the kernel), so that the ring's own threads do nothing for it. Pure: counts and times are
// passed in. Owned and used by the thread that runs the all-reduce.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>

#include "net/base/deadline.h"
#include "net/collective/ring_schedule.h"

namespace atl {

struct AllReduceProgress {
  RingPhase phase = RingPhase::kReduceScatter;    // of what comes now: it alternates from bucket to bucket
  std::uint64_t bytes_done = 0, bytes_total = 0;  // that come to this island in the whole attempt
  // Of the ring, of all buckets, or of the direct schedule, which has two: the one under way, from 0; `steps`: all are
  // over.
  std::uint32_t step = 0, steps = 0;
  double sent_bytes_per_second = 0, received_bytes_per_second = 0;  // over the last second
};

class ProgressMeter {
 public:
  using Tell = std::function<void(const AllReduceProgress&)>;
  // With the one at the end at most four a second.
  static constexpr std::chrono::milliseconds kEvery{334};

  struct Counts {
    std::uint64_t ring_bytes = 0;    // data that came on the ring's edge; without a ring: sums
    std::uint64_t direct_bytes = 0;  // that came past it (direct_reduce.h); without a ring: contributions
    std::uint64_t sent_bytes = 0;    // on both, from any beginning
    std::uint64_t received() const { return ring_bytes + direct_bytes; }
  };

  // `direct_bytes`: that will come past the ring. `inbound` outlives this.
  ProgressMeter(const EdgeSchedule& inbound, std::uint64_t direct_bytes, Tell tell)
      : inbound_(&inbound), ring_bytes_(inbound.bytes()), direct_bytes_(direct_bytes), tell_(std::move(tell)) {}
  // Without a ring (direct_exchange.h): contributions, and sums in place of what its edge carries.
  ProgressMeter(std::uint64_t sum_bytes, std::uint64_t contribution_bytes, Tell tell)
      : inbound_(nullptr), ring_bytes_(sum_bytes), direct_bytes_(contribution_bytes), tell_(std::move(tell)) {}

  // As often as one likes; tells when it is due. The first call begins to count.
  void look(const Counts& counts, Clock::time_point now);
  // The attempt went well: tells its end, if it took long enough for anything to be told before.
  void finish(const Counts& counts, Clock::time_point now);

 private:
  struct Reading {
    Clock::time_point when;
    std::uint64_t received = 0, sent = 0;
  };
  AllReduceProgress progress(const Counts& counts, const Reading& since, Clock::time_point now) const;
  void tell(const Counts& counts, Clock::time_point now);

  const EdgeSchedule* const inbound_;  // null: no ring
  const std::uint64_t ring_bytes_, direct_bytes_;
  const Tell tell_;
  std::deque<Reading> told_;  // of the last second, and the one before; until something was told the beginning alone
};

}  // namespace atl
