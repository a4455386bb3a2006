#include "net/collective/connection_tuner.h"

namespace atl {

bool ConnectionTuner::may_probe() const {
  const int step = best_ + direction_;
  return step >= 0 && step < static_cast<int>(kSteps.size()) && kSteps[static_cast<std::size_t>(step)] <= most_;
}

void ConnectionTuner::look_around() {
  if (!may_probe()) {
    direction_ = -direction_;
    ++in_vain_;
  }
  probing_ = in_vain_ < 2;
  if (probing_) return;
  in_vain_ = 0;
  rest_ = kRestAttempts;
}

void ConnectionTuner::measured(int connections, double bytes_per_second) {
  if (connections != this->connections()) return;
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
