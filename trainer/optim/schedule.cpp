#include "trainer/optim/schedule.h"

#include <algorithm>
#include <cmath>

#include "net/wire/run_config.h"

namespace atl {

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
  return schedule;
}

double learning_rate_at(const WarmupStableDecay& schedule, std::int64_t progress, std::int64_t step) {
  const std::int64_t reached = progress + step;
  if (reached < schedule.warmup) {
    return schedule.peak * static_cast<double>(reached) / static_cast<double>(schedule.warmup);
  }
  const std::int64_t decay_begin = schedule.total - schedule.decay;
  if (schedule.decay == 0 || progress < decay_begin) return schedule.peak;
  const double fraction =
      std::min(1.0, static_cast<double>(progress - decay_begin) / static_cast<double>(schedule.decay));
  return schedule.peak * (schedule.final_ratio + (1 - schedule.final_ratio) * (1 - std::sqrt(fraction)));
}

}  // namespace atl
