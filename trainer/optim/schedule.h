// Warm-up / stable / decay learning rate, a pure function of the run's progress (its tokens, or its steps). No torch.
#pragma once

#include <cstdint>

#include "net/base/result.h"
#include "net/wire/learning_rate.h"

namespace atl {

struct InnerOptimizerConfig;  // net/wire/run_config.h

// Progress is counted in the run's unit, the same on every island: tokens, or inner steps of the whole run.
struct WarmupStableDecay {
  double peak = 3e-4;        // learning rate between warm-up and decay
  double final_ratio = 0.0;  // of the peak, at the end and after it
  std::int64_t warmup = 0;   // rises linearly from 0 over this much progress
  std::int64_t decay = 0;    // falls over the last so much of `total`
  std::int64_t total = 0;    // 0: the run has no end, and never decays
  DecayShape shape = DecayShape::kOneMinusSqrt;

  Status validate() const;
};

// What a run's configuration says, which RunConfig::validate() has checked; in inner steps of the run.
WarmupStableDecay schedule_of(const InnerOptimizerConfig& inner);
// With another decay than the configuration's: it falls from whatever the warm-up has reached by then.
WarmupStableDecay with_decay(WarmupStableDecay schedule, const DecidedDecay& decay, std::uint32_t inner_steps);

// The rate of the step that begins at `progress`; `step` is how much progress it makes, so that the first step of the
// warm-up has a rate above 0.
double learning_rate_at(const WarmupStableDecay& schedule, std::int64_t progress, std::int64_t step);

}  // namespace atl
