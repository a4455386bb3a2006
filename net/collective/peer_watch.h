// Whether one peer of a direct exchange lives and does its part: what EdgeMonitor is for the ring's edges, by the same
// rules. Pure: counts and times are passed in.
//
// Who owes something and lets nothing be heard for as long as SilenceLimit says, not even a keepalive, is lost; for the
// whole timeout when nothing comes through to most others either, for then it may be this end that is at fault. Who is
// not read, because what it contributes has no room yet or by the owner's limit, is not silent. Nor is it for us to say
// that a peer takes nothing as long as it owes: it may be the one that has no room. Such a one sends keepalives, and
// says in them how long it waits itself; after that, and at least kStallTimeouts silence timeouts without data, it
// stalls us. Of its sums alone, for its contributions wait for nobody: a promise goes one hop, and a stall has one
// culprit.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "net/base/deadline.h"
#include "net/collective/all_reduce.h"
#include "net/collective/silence_limit.h"
#include "net/transport/socket.h"

namespace atl {

class PeerWatch {
 public:
  struct Facts {
    bool awaits_hello = false;  // what comes until then says nothing of how it does in the attempt
    bool owes = false;          // something of the attempt has yet to come from it
    bool is_read = false;       // nothing keeps us from taking what comes
    bool is_owed = false;       // not all that it is to have was written to the socket
    std::uint64_t data = 0;     // that came from it
    TcpProgress tcp = {};
    bool others_lost_all = false;  // of most other peers' connections: TcpProgress::lost_all
  };

  // From when the peer is connected. `silence`: what is known of it, which outlives this.
  PeerWatch(IslandId peer, std::chrono::milliseconds silence_timeout, PeerSilence& silence, Clock::time_point now);

  // Several times a second. `slept`: this process was stopped since the last look, and what came meanwhile has yet to
  // be read.
  std::optional<AllReduceFailure> look(const Facts& facts, Clock::time_point now, bool slept);
  void vouch(std::chrono::milliseconds patience, Clock::time_point now);
  Clock::time_point waits_until() const;  // for data
  bool lost_all() const { return last_.tcp.lost_all; }

  void spoke(Clock::time_point now) { last_spoke_ = now; }
  bool keepalive_due(Clock::time_point now) const;
  std::chrono::milliseconds keepalive_interval() const { return keepalive_interval_; }

  // When another member has ended the attempt: what this one was about to say of the peer, and since when. By what the
  // last look saw.
  struct Suspicion {
    AllReduceFailure failure;  // without an error
    Clock::time_point since;
  };
  std::optional<Suspicion> suspicion(Clock::time_point now) const;

 private:
  void listen(const Facts& facts, Clock::time_point now);
  bool is_lost(Clock::time_point now) const;
  AllReduceFailure silent(std::string_view verb, Clock::duration time) const;

  const IslandId peer_;
  const std::chrono::milliseconds silence_timeout_, keepalive_interval_;
  PeerSilence& silence_;
  Facts last_{.awaits_hello = true};
  Clock::time_point last_data_, last_spoke_, vouched_until_;
};

}  // namespace atl
