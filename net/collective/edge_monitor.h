// Watches the edges of a running attempt beside the workers: whether anything still moves on the wire, as the kernel
// counts it, and whether the next rank must be told that this island lives; and keeps the outbound edge's pace. Owned
// and used by the thread that runs the all-reduce.
//
// Progress is bytes that came, or that the peer acknowledged: on a link that takes a minute for what lies in the
// sockets' buffers no call of ours would return meanwhile, and yet it is not dead.
//
// A peer that says that it lives and sends no data is no such case, and would hold up everybody for good: after
// kStallTimeouts silence timeouts without a byte of data the attempt fails here. It may wait for data itself, as all
// ranks after a slow link do, that of a frame which crawls in; so keepalives say how long their sender still waits,
// each hop takes one keepalive's interval off, and as long as data comes to anybody all wait, up to kLongestStall
// silence timeouts. In a stall nobody's data moves, all promises run out, and everybody's predecessor is found without
// data: who is to blame is the hub's to tell, by how much had come to each.
#pragma once

#include <optional>
#include <vector>

#include "net/base/abort_signal.h"
#include "net/base/deadline.h"
#include "net/collective/attempt_context.h"
#include "net/collective/edge_pacing.h"
#include "net/collective/progress_meter.h"

namespace atl {

class EdgeMonitor {
 public:
  // `outbound`: sockets to the next rank, which stay open while this lives. References and `meter` (null: nobody wants
  // to know how far it is) outlive this; `pacing` is used by this alone.
  EdgeMonitor(const AttemptContext& attempt, std::vector<int> outbound, std::chrono::milliseconds silence_timeout,
              EdgePacing& pacing, ProgressMeter* meter = nullptr);

  // While the previous rank is waited for: keeps the pace, and tells the next rank that this island lives, but judges
  // nobody, for the next one may wait for others itself and not read yet. Call it several times a second. False when
  // the attempt has failed.
  bool look_ahead();
  // Its sockets, which stay open while this lives. From now on nothing is held against either neighbour that was
  // before.
  void watch_inbound(std::vector<int> sockets);
  // Until the board says that the attempt has ended, for which `abort` and silence are reasons.
  void run(const AbortSignal& abort);

 private:
  void look_at_outbound(Clock::time_point now);
  std::optional<AllReduceFailure> look(Clock::time_point now);
  AllReduceFailure aborted(std::string reason, Clock::time_point now) const;
  AllReduceFailure stalled(Clock::time_point now) const;
  Clock::time_point waits_until() const;  // for data
  AllReduceFailure silent(const IslandId& peer, std::string_view verb) const;
  ProgressMeter::Counts counts() const;
  std::optional<double> of_a_socket(std::optional<double> rate) const;
  void fit_receive_buffers();
  bool holds_back(Clock::time_point now) const;

  const AttemptContext& attempt_;
  const std::vector<int> outbound_;
  std::vector<int> inbound_;
  const std::chrono::milliseconds silence_timeout_;
  const std::chrono::milliseconds keepalive_interval_;
  EdgePacing& pacing_;
  ProgressMeter* const meter_;
  std::optional<double> received_at_most_;  // bytes/s, as the inbound sockets know it
  Clock::time_point last_received_ = Clock::now();
  Clock::time_point last_taken_ = last_received_;  // or when the next rank last had all that was written
  Clock::time_point last_spoke_ = last_received_;
  Clock::time_point last_progress_ = last_received_;
  Clock::time_point last_look_ = last_received_;
  std::uint64_t progress_ = 0;
  std::uint64_t received_ = 0;
  std::uint64_t acknowledged_ = 0;
  std::uint64_t spoken_ = 0;
};

// How often an edge that has nothing else to say speaks.
std::chrono::milliseconds keepalive_interval(std::chrono::milliseconds silence_timeout);

}  // namespace atl
