#include "net/collective/connection_tuner.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "net/base/link_window.h"

namespace atl {

int connections_needed(double bytes_per_second, double rtt_seconds, double window_bytes, bool lossy) {
  const double needed = std::ceil(bytes_under_way(bytes_per_second, rtt_seconds, lossy) / std::max(window_bytes, 1.0));
  return static_cast<int>(std::clamp(needed, 1.0, static_cast<double>(kMaxConnectionsPerEdge)));
}

void ConnectionTuner::begins_with(int connections) {
  if (!is_new_) return;
  needs(connections);
  is_new_ = true;
}

void ConnectionTuner::needs(int connections) {
  if (std::exchange(is_new_, false) && best_ != kFirst) {  // a guess, and what it brought tells of no other number
    best_ = kFirst;
    probing_ = false;
    goodput_ = 0;
  }
  int step = 0;
  while (kSteps[static_cast<std::size_t>(step)] < connections && step + 1 < static_cast<int>(kSteps.size()) &&
         kSteps[static_cast<std::size_t>(step) + 1] <= most_) {
    ++step;
  }
  least_ = step;
  if (best_ + (probing_ ? direction_ : 0) >= least_) return;
  best_ = std::max(best_, least_);
  probing_ = false;
  in_vain_ = rest_ = 0;
}

bool ConnectionTuner::may_probe() const {
  const int step = best_ + direction_;
  return step >= least_ && step < static_cast<int>(kSteps.size()) && kSteps[static_cast<std::size_t>(step)] <= most_;
}

void ConnectionTuner::look_around() {
  if (!may_probe()) {
    direction_ = -direction_;
    ++in_vain_;
  }
  probing_ = in_vain_ < 2 && may_probe();
  if (probing_) return;
  in_vain_ = 0;
  rest_ = kRestAttempts;
}

void ConnectionTuner::measured(int connections, double bytes_per_second, double round_trips) {
  if (connections != this->connections() || round_trips < kRoundTripsThatTell) return;
  if (!probing_) {
    goodput_ = bytes_per_second;
    if (rest_ > 0) {
      --rest_;
    } else {
      look_around();
    }
    return;
  }
  probing_ = false;
  if (bytes_per_second > goodput_ * kWorthwhileGain) {
    best_ += direction_;
    goodput_ = bytes_per_second;
    in_vain_ = 0;
    if (may_probe()) probing_ = true;
    return;
  }
  direction_ = -direction_;
  ++in_vain_;
}

}  // namespace atl
