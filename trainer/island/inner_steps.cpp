#include "trainer/island/inner_steps.h"

#include <algorithm>
#include <numeric>

namespace atl {

void show_step_times(IslandState& state, const TakenStep& step) {
  const auto& parts = step.report.parts;
  if (!parts && state.step_seconds && state.step_seconds->matmul) return;
  StepTimes times{.total = step.seconds, .data = step.data_seconds};
  if (parts) {
    times.matmul = (*parts)[StepPart::kMatMul];
    times.attention = (*parts)[StepPart::kAttention];
    times.elementwise = (*parts)[StepPart::kElementwise];
    times.loss = (*parts)[StepPart::kLoss];
    times.optimiser = (*parts)[StepPart::kOptimiser];
    times.communication = (*parts)[StepPart::kCommunication];
  }
  state.step_seconds = times;
}

Status InnerSteps::begin(const TokenBatch& batch, float learning_rate, Clock::time_point since, double data_seconds) {
  const bool alone = begun_.empty();
  ATOLL_RETURN_IF_ERROR(engine_.begin_step(batch, learning_rate));
  begun_.push_back({learning_rate, data_seconds, since, alone});
  return ok_status();
}

Result<TakenStep> InnerSteps::finish() {
  const Begun step = begun_.front();
  begun_.pop_front();
  ATOLL_ASSIGN_OR_RETURN(const StepReport report, engine_.finish_step());
  const auto now = Clock::now();
  TakenStep taken{.report = report,
                  .learning_rate = step.learning_rate,
                  .seconds = Seconds(now - std::max(step.since, finished_)).count(),
                  .data_seconds = step.data_seconds};
  finished_ = now;
  if (step.alone) return taken;
  // The device was at the step before while the batch came: what it had no work for is what its parts do not fill.
  double busy = taken.seconds;
  if (taken.report.parts) busy = std::accumulate(taken.report.parts->of.begin(), taken.report.parts->of.end(), 0.0);
  taken.data_seconds = std::clamp(taken.seconds - busy, 0.0, step.data_seconds);
  return taken;
}

void InnerSteps::forget() {
  begun_.clear();
  while (engine_.steps_under_way() > 0) (void)engine_.finish_step();
}

}  // namespace atl
