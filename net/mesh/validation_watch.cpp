#include "net/mesh/validation_watch.h"

#include <algorithm>

namespace atl {

ValidationWatch::ValidationWatch(double rise, const std::vector<ValidatedState>& past) : rise_(rise) {
  const std::size_t skip = past.size() > kOfLate ? past.size() - kOfLate : 0;
  good_.assign(past.begin() + static_cast<std::ptrdiff_t>(skip), past.end());
}

void ValidationWatch::ask(OuterStep outer_step, std::set<IslandId> islands, bool all) {
  of_ = outer_step;
  all_asked_ = all;
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

double ValidationWatch::usual(bool upper) const {
  std::vector<double> losses;
  for (const ValidatedState& state : good_) losses.push_back(state.loss_nats);
  std::ranges::sort(losses);
  return losses[(losses.size() - (upper ? 0 : 1)) / 2];
}

ValidationWatch::Outcome ValidationWatch::settle() {
  if (losses_.size() < asked_.size()) return Outcome::kWaits;
  std::vector<double> losses;
  for (const auto& [island, loss] : losses_) losses.push_back(loss);
  // The lower one of two in the middle: high only where more than half find it so.
  std::ranges::sort(losses);
  result_ = {of_, losses[(losses.size() - 1) / 2]};
  const bool compared = rise_ > 0 && !good_.empty();
  const bool high = compared && result_.loss_nats > usual(/*upper=*/true) + rise_;
  const bool low = compared && result_.loss_nats < usual(/*upper=*/false) - rise_;
  asked_.clear();
  losses_.clear();
  doubts_ = (high || low) && !all_asked_;
  if (high) return doubts_ ? Outcome::kDoubted : Outcome::kSpoiled;
  if (doubts_) return Outcome::kGood;  // told, but it is no measure for others yet
  good_.push_back(result_);
  if (good_.size() > kOfLate) good_.pop_front();
  return Outcome::kGood;
}

std::optional<OuterStep> ValidationWatch::newest_good() const {
  return good_.empty() ? std::nullopt : std::optional(good_.back().outer_step);
}

void ValidationWatch::go_back_to(OuterStep outer_step, bool as_it_is) {
  std::erase_if(good_, [&](const ValidatedState& state) { return state.outer_step > outer_step; });
  if (as_it_is) good_.clear();
  asked_.clear();
  losses_.clear();
  doubts_ = false;
}

}  // namespace atl
