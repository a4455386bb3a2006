// Holds the sockets of an outbound edge to what its EdgePacer finds. Owned and used by one thread, for one attempt.
#pragma once

#include <optional>
#include <vector>

#include "net/base/deadline.h"
#include "net/collective/edge_pacer.h"
#include "net/transport/socket.h"

namespace atl {

class EdgePacing {
 public:
  // `pacer` outlives this; the sockets stay open. Never faster than `most`, bytes/s; without it a peer on this machine
  // is left alone.
  EdgePacing(EdgePacer& pacer, std::vector<int> sockets, std::optional<double> most = {});

  // Call it about every kLookEvery.
  void look(Clock::time_point now);
  static constexpr std::chrono::milliseconds kLookEvery{50};

 private:
  struct Reading {
    std::uint64_t bytes_delivered = 0;
    bool saturated = false;
    bool under_way = false;
    bool stalled = false;
    double rtt_seconds = 0;
  };
  Reading read() const;
  void apply() const;
  void spare_bbr_its_probes(Clock::time_point now);

  EdgePacer& pacer_;
  const std::vector<int> sockets_;
  const std::optional<double> most_;
  const bool paces_;
  std::vector<Clock::time_point> restarted_;  // by socket
  Clock::time_point since_;
  Reading before_;
  bool saturated_throughout_ = false;
  bool under_way_throughout_ = false;
  bool stalled_meanwhile_ = false;
};

}  // namespace atl
