// Watches the edges of a running attempt beside the workers: whether anything still moves on the wire, as the kernel
// counts it, and whether the next rank must be told that this island lives; and keeps the outbound edge's pace. Owned
// and used by the thread that runs the all-reduce.
//
// Progress is bytes that came, or that the peer acknowledged: on a link that takes a minute for what lies in the
// sockets' buffers no call of ours would return meanwhile, and yet it is not dead.
//
// Of the previous rank nothing may come for as long as SilenceLimit says; for the whole timeout when it may be this end
// that is at fault: what came is not read, or nothing comes through to the next rank either. The next rank may take
// nothing for the whole timeout: it may not read by its owner's limit, or the kernel's timer for what was lost may have
// backed off; and if it is dead, the one after it hears nothing, and says so first. It is suspected by its own record.
//
// A peer that says that it lives and sends no data is no such case, and would hold up everybody for good: after
// kStallTimeouts silence timeouts without a byte of data the attempt fails here. It may wait for data itself, as all
// ranks after a slow link do, that of a frame which crawls in; so keepalives say how long their sender still waits,
// each hop takes something off (patience_of_a_hop), and as long as data comes to anybody all wait, up to kLongestStall
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
#include "net/collective/silence_limit.h"
#include "net/transport/socket.h"

namespace atl {

// What is known of a ring's two edges, from attempt to attempt. Outlives the attempt.
struct EdgeSilences {
  SilenceLimit& previous_sent;
  SilenceLimit& next_took;
};

class EdgeMonitor {
 public:
  // `outbound`: sockets to the next rank, which stay open while this lives. References and `meter` (null: nobody wants
  // to know how far it is) outlive this; `pacing` is used by this alone.
  EdgeMonitor(const AttemptContext& attempt, std::vector<int> outbound, std::chrono::milliseconds silence_timeout,
              EdgeSilences silences, EdgePacing& pacing, ProgressMeter* meter = nullptr);

  // While the previous rank is waited for: keeps the pace, and tells the next rank that this island lives, but judges
  // nobody, for the next one may wait for others itself and not read yet. Call it several times a second. False when
  // the attempt has failed.
  bool look_ahead();
  // Its sockets, which stay open while this lives. From now on nothing is held against either neighbour that was
  // before.
  void watch_inbound(std::vector<int> sockets);
  // Until the board says that the attempt has ended, for which `abort` and silence are reasons.
  void run(const AbortSignal& abort);
  // What is to be said when another member has ended the attempt: whom this one waited for. When no lane works any
  // more.
  AllReduceFailure aborted(std::string reason, Clock::time_point now) const;

 private:
  void look_at_outbound(Clock::time_point now);
  bool look_at_inbound(Clock::time_point now);
  std::optional<AllReduceFailure> look(Clock::time_point now);
  AllReduceFailure stalled(Clock::time_point now) const;
  Clock::time_point waits_until() const;  // for data
  AllReduceFailure silent(const IslandId& peer, std::string_view verb, Clock::duration time) const;
  bool own_link_is_gone() const;
  bool may_be_at_fault() const;
  bool previous_is_lost(Clock::time_point now) const;
  ProgressMeter::Counts counts() const;
  std::optional<double> of_a_socket(std::optional<double> rate) const;
  void fit_receive_buffers();
  bool holds_back(Clock::time_point now) const;

  const AttemptContext& attempt_;
  const std::vector<int> outbound_;
  std::vector<int> inbound_;
  const std::chrono::milliseconds silence_timeout_;
  const std::chrono::milliseconds keepalive_interval_;
  SilenceLimit& previous_sent_;
  SilenceLimit& next_took_;  // or had all that was written
  EdgePacing& pacing_;
  ProgressMeter* const meter_;
  std::optional<double> received_at_most_;  // bytes/s, as the inbound sockets know it
  Clock::time_point last_spoke_ = Clock::now();
  Clock::time_point last_progress_ = last_spoke_;
  Clock::time_point last_look_ = last_spoke_;
  std::uint64_t progress_ = 0;
  TcpProgress in_, out_;  // of all sockets, at the last look
};

// How often an edge that has nothing else to say speaks: several times in the shortest limit to its silence.
std::chrono::milliseconds keepalive_interval(std::chrono::milliseconds silence_timeout);
// What a promise to wait is less by than its sender's own patience, so that promises that go around a ring run out.
std::chrono::milliseconds patience_of_a_hop(std::chrono::milliseconds silence_timeout);

}  // namespace atl
