// The inner loop: the work of a round that a pause interrupts, or that is kept meanwhile, as a value, and back.
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "trainer/island/inner_loop.h"

namespace atl {
namespace {

// Where values of one of these ranges begin, among the values of all of them, end to end.
std::int64_t place_of(std::span<const ParameterRange> ranges, const ParameterRange& range) {
  std::int64_t place = 0;
  for (const ParameterRange& before : ranges) place += before.offset < range.offset ? before.numel : 0;
  return place;
}

}  // namespace

Result<std::optional<InnerState>> InnerLoop::work_so_far() {
  while (training_ && steps_.under_way() > 0) {
    ATOLL_ASSIGN_OR_RETURN(const bool finite, finish_step());
    if (finite) continue;
    ATOLL_RETURN_IF_ERROR(end_inner_phase(false));
    return std::optional<InnerState>();
  }
  return copy_of_work();
}

std::optional<InnerState> InnerLoop::interrupted_work(const std::vector<std::vector<float>>& residuals) {
  while (training_ && steps_.under_way() > 0) {
    const Result<bool> finite = finish_step();
    if (!finite.ok() || !*finite) return std::nullopt;
  }
  std::optional<InnerState> work = copy_of_work();
  for (std::size_t lane = 0; work && lane < residuals.size(); ++lane) {
    if (residuals[lane].empty()) continue;
    work->residual.resize(work->parameters.size());  // zeros, for lanes that lost nothing yet
    auto from = residuals[lane].begin();
    for (const ParameterRange& range : fragments_[lane].ranges) {
      std::copy_n(from, range.numel, work->residual.begin() + place_of(trained_, range));
      from += range.numel;
    }
  }
  return work;
}

// With several fragments the parameters are no outer state's, also before the first step of a round.
std::optional<InnerState> InnerLoop::copy_of_work() const {
  if (!training_ || averages() || (inner_step_ == 0 && fragments_.size() == 1)) return std::nullopt;
  InnerState work;
  work.round = round_;
  work.outer_hash = state_->state_hash;
  work.inner_step = inner_step_;
  work.loss_sum = loss_sum_;
  work.inner_seconds = inner_seconds_;
  work.optimizer_steps = engine_.optimizer_steps();
  std::size_t numel = 0;
  for (const Fragment& fragment : fragments_) numel += static_cast<std::size_t>(fragment.numel);
  for (auto* values : {&work.parameters, &work.first_moment, &work.second_moment}) values->resize(numel);
  engine_.read_parameters(trained_, work.parameters);
  engine_.read_moments(trained_, work.first_moment, work.second_moment);
  return work;
}

bool InnerLoop::take_up_interrupted_work(const HubRoundBegin& message) {
  const std::optional<InnerState> work = std::exchange(interrupted_, std::nullopt);
  if (!work) return false;
  if (!work->belongs_to(message, state_->state_hash)) {
    spdlog::info("round={} interrupted_work=dropped of_round={} inner_steps={}", message.round.value,
                 work->round.round.value, work->inner_step);
    return false;
  }
  // What is frozen is the outer state's, which the engine has.
  engine_.write_range_values(trained_, work->parameters);
  engine_.write_moments(trained_, work->first_moment, work->second_moment, work->optimizer_steps);
  for (std::uint32_t lane = 0; lane < fragments_.size() && !work->residual.empty(); ++lane) {
    LaneOwes owes;
    owes.residual.reserve(static_cast<std::size_t>(fragments_[lane].numel));
    for (const ParameterRange& range : fragments_[lane].ranges) {
      const auto from = work->residual.begin() + place_of(trained_, range);
      owes.residual.insert(owes.residual.end(), from, from + range.numel);
    }
    owner_.post(FragmentId{lane}, std::move(owes));
  }
  inner_step_ = work->inner_step;
  loss_sum_ = work->loss_sum;
  inner_seconds_ = work->inner_seconds;
  status_.update([&](IslandState& s) { s.inner_step = inner_step_; });
  spdlog::info("round={} interrupted_work=resumed inner_step={}", message.round.value, inner_step_);
  return true;
}

}  // namespace atl
