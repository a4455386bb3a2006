#include "trainer/optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "net/wire/run_config.h"

namespace atl {
namespace {

// Of the way from the peak to the final rate, at x of the decay.
double left_of(DecayShape shape, double x) {
  switch (shape) {
    case DecayShape::kOneMinusSqrt: return 1 - std::sqrt(x);
    case DecayShape::kLinear: return 1 - x;
    case DecayShape::kCosine: return 0.5 * (1 + std::cos(std::numbers::pi * x));
  }
  return 0;
}

}  // namespace

Status WarmupStableDecay::validate() const {
  const auto bad = [](const char* what) {
    return Error{ErrorCode::kInvalidArgument, std::string("learning rate schedule: ") + what};
  };
  if (!(peak > 0) || !std::isfinite(peak)) return bad("peak must be positive");
  if (!(final_ratio >= 0 && final_ratio <= 1)) return bad("final_ratio must be from 0 to 1");
  if (warmup < 0 || decay < 0 || total < 0) return bad("warmup, decay and total must not be negative");
  if (decay > 0 && total == 0) return bad("a decay needs the run's total");
  if (total > 0 && (warmup > total || decay > total - warmup)) return bad("warmup and decay together exceed total");
  return ok_status();
}

WarmupStableDecay schedule_of(const InnerOptimizerConfig& inner) {
  WarmupStableDecay schedule;
  schedule.peak = inner.learning_rate;
  schedule.final_ratio = inner.final_learning_rate / inner.learning_rate;
  schedule.warmup = static_cast<std::int64_t>(inner.warmup_steps);
  schedule.decay = static_cast<std::int64_t>(inner.decay_steps);
  schedule.total = static_cast<std::int64_t>(inner.decay_steps == 0 ? 0 : inner.decay_start_step + inner.decay_steps);
  schedule.shape = inner.decay_shape;
  return schedule;
}

WarmupStableDecay with_decay(WarmupStableDecay schedule, const DecidedDecay& decay, std::uint32_t inner_steps) {
  const std::int64_t begin = std::int64_t{decay.from_round} * inner_steps;
  schedule.decay = std::int64_t{decay.rounds} * inner_steps;
  schedule.total = begin + schedule.decay;
  schedule.final_ratio = decay.final_learning_rate / schedule.peak;
  schedule.shape = decay.shape;
  return schedule;
}

double learning_rate_at(const WarmupStableDecay& schedule, std::int64_t progress, std::int64_t step) {
  const std::int64_t reached = progress + step;
  const std::int64_t decay_begin = schedule.total - schedule.decay;
  const bool decays = schedule.decay > 0 && progress >= decay_begin;
  const double warmed = static_cast<double>(decays ? std::min(reached, decay_begin + step) : reached);
  const double peak =
      schedule.peak *
      (warmed < static_cast<double>(schedule.warmup) ? warmed / static_cast<double>(schedule.warmup) : 1.0);
  if (!decays) return peak;
  const double x = std::min(1.0, static_cast<double>(progress - decay_begin) / static_cast<double>(schedule.decay));
  const double last = std::min(peak, schedule.peak * schedule.final_ratio);
  return last + (peak - last) * left_of(schedule.shape, x);
}

}  // namespace atl
