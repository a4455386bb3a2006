// How many connections an edge should have: climbs the hill of goodput, one attempt a step, between 2 and 16. Pure; one
// for each edge that this island dials, of each fragment.
//
// From the best number known it tries the neighbour on one side, then on the other, and moves on only for a gain that
// noise does not explain; with none to be had it rests for some attempts and tries again, because links change. It does
// not go below what the link's rate and delay need.
#pragma once

#include <array>
#include <cstddef>

#include "net/wire/ring_frame.h"

namespace atl {

class ConnectionTuner {
 public:
  static constexpr std::array kSteps{2, 3, 4, 6, 8, 12, 16};
  static constexpr double kWorthwhileGain = 1.05;
  static constexpr int kRestAttempts = 8;
  // Ten times what it takes to make a connection and to open its window: with what a new one loses in a shorter attempt
  // every probe is in vain, and costs more than it can gain.
  static constexpr double kRoundTripsThatTell = 100;

  explicit ConnectionTuner(int most = kMaxConnectionsPerEdge) : most_(most) {}  // at least 4

  // For the next attempt.
  int connections() const {
    const int step = best_ + (probing_ ? direction_ : 0);
    return kSteps[static_cast<std::size_t>(step)];
  }
  // No fewer from now on: what connections_needed() says of the link. As many as there may be, if those are fewer.
  void needs(int connections);
  // As needs(), of a link whose rate nobody knows yet; nothing once an attempt has told of it.
  void begins_with(int connections);
  // What an attempt with that many brought, that lasted for so many round trips. Attempts with another number (the peer
  // or a person chose) tell nothing, nor do those that are shorter than kRoundTripsThatTell.
  void measured(int connections, double bytes_per_second, double round_trips);

 private:
  static constexpr int kFirst = 2;  // index of kSteps
  bool may_probe() const;
  void look_around();

  int most_;
  int least_ = 0;       // index of kSteps
  int best_ = kFirst;   // index of kSteps
  double goodput_ = 0;  // with that many, lately
  bool probing_ = false;
  int direction_ = 1;
  int in_vain_ = 0;     // probes since the last gain
  bool is_new_ = true;  // no attempt has told of the link
  int rest_ = 0;        // attempts until the next probe
};

// To hold what such a link has under way (net/base/link_window.h), where a connection has at most so much. At least 1,
// and no more than an edge may have.
int connections_needed(double bytes_per_second, double rtt_seconds, double window_bytes, bool lossy);

}  // namespace atl
