// How many connections an edge should have: climbs the hill of goodput, one attempt a step, between 2 and 16. Pure; one
// for each edge that this island dials, of each fragment.
//
// From the best number known it tries the neighbour on one side, then on the other, and moves on only for a gain that
// noise does not explain; with none to be had it rests for some attempts and tries again, because links change.
#pragma once

#include <array>

#include "net/wire/ring_frame.h"

namespace atl {

class ConnectionTuner {
 public:
  static constexpr std::array kSteps{2, 3, 4, 6, 8, 12, 16};
  static constexpr double kWorthwhileGain = 1.05;
  static constexpr int kRestAttempts = 8;

  explicit ConnectionTuner(int most = kMaxConnectionsPerEdge) : most_(most) {}  // at least 4

  // For the next attempt.
  int connections() const {
    const int step = best_ + (probing_ ? direction_ : 0);
    return kSteps[static_cast<std::size_t>(step)];
  }
  // What an attempt with that many brought. Attempts with another number (the peer or a person chose) tell nothing.
  void measured(int connections, double bytes_per_second);

 private:
  bool may_probe() const;
  void look_around();

  int most_;
  int best_ = 2;        // index of kSteps
  double goodput_ = 0;  // with that many, lately
  bool probing_ = false;
  int direction_ = 1;
  int in_vain_ = 0;  // probes since the last gain
  int rest_ = 0;     // attempts until the next probe
};

}  // namespace atl
