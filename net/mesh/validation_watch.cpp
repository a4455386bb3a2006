#include "net/mesh/validation_watch.h"

#include <algorithm>

namespace atl {

ValidationWatch::ValidationWatch(double rise, const std::vector<ValidatedState>& past) : rise_(rise) {
  const std::size_t skip = past.size() > kOfLate ? past.size() - kOfLate : 0;
  good_.assign(past.begin() + static_cast<std::ptrdiff_t>(skip), past.end());
}

void ValidationWatch::ask(OuterStep outer_step, std::set<IslandId> islands) {
  of_ = outer_step;
  all_asked_ = doubts_;
  asked_ = std::move(islands);
  losses_.clear();
}

ValidationWatch::Outcome ValidationWatch::report(const IslandId& island, OuterStep outer_step, double loss_nats) {
  if (outer_step != of_ || !asked(island)) return Outcome::kIgnored;
  losses_[island] = loss_nats;
  return settle();
}

ValidationWatch::Outcome ValidationWatch::drop(const IslandId& island) {
  if (!asked(island)) return Outcome::kIgnored;
  asked_.erase(island);
  return asked_.empty() ? Outcome::kIgnored : settle();
}

bool ValidationWatch::is_high(double loss_nats) const {
  if (rise_ == 0 || good_.empty()) return false;
  const auto best = std::ranges::min_element(good_, {}, &ValidatedState::loss_nats);
  return loss_nats > best->loss_nats + rise_;
}

ValidationWatch::Outcome ValidationWatch::settle() {
  if (losses_.size() < asked_.size()) return Outcome::kWaits;
  std::vector<double> losses;
  for (const auto& [island, loss] : losses_) losses.push_back(loss);
  // The lower one of two in the middle: high only where more than half find it so.
  std::ranges::sort(losses);
  result_ = {of_, losses[(losses.size() - 1) / 2]};
  const bool high = is_high(result_.loss_nats);
  asked_.clear();
  losses_.clear();
  if (high && !all_asked_) {
    doubts_ = true;
    return Outcome::kDoubted;
  }
  doubts_ = false;
  if (high) return Outcome::kSpoiled;
  good_.push_back(result_);
  if (good_.size() > kOfLate) good_.pop_front();
  return Outcome::kGood;
}

std::optional<OuterStep> ValidationWatch::newest_good() const {
  return good_.empty() ? std::nullopt : std::optional(good_.back().outer_step);
}

void ValidationWatch::go_back_to(OuterStep outer_step) {
  // Of the state itself, too: going "back" to a spoiled state says that it is good enough.
  std::erase_if(good_, [&](const ValidatedState& state) { return state.outer_step > outer_step; });
  if (result_.outer_step == outer_step) good_.clear();
  asked_.clear();
  losses_.clear();
  doubts_ = false;
}

}  // namespace atl
