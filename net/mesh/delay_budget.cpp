#include "net/mesh/delay_budget.h"

#include <algorithm>

namespace atl {

void DelayBudget::save(Clock::time_point now, std::size_t islands) {
  const Clock::duration passed = saved_until_ == Clock::time_point{} ? Clock::duration{} : now - saved_until_;
  saved_until_ = now;
  for (auto& [island, account] : accounts_) account.left += passed / parts(account, islands);
  std::erase_if(accounts_, [this](const auto& entry) { return entry.second.left >= most_; });
}

void DelayBudget::charge(const IslandId& island, Clock::duration delay) {
  if (delay <= Clock::duration{}) return;
  Account& account = accounts_.try_emplace(island, Account{most_}).first->second;
  const bool owed = account.left < Clock::duration{};
  account.left = std::max(account.left - delay, -kMostDebt * most_);
  if (!owed && account.left < Clock::duration{}) ++account.debts;
}

Clock::rep DelayBudget::parts(const Account& account, std::size_t islands) {
  return static_cast<Clock::rep>(islands + 1) << std::clamp(account.debts - 1, 0, kMostHalvings);
}

Clock::duration DelayBudget::until_paid(const IslandId& island, std::size_t islands) const {
  const auto found = accounts_.find(island);
  if (found == accounts_.end() || found->second.left >= Clock::duration{}) return {};
  constexpr Clock::duration kLongest = std::chrono::years(1);
  const Clock::rep in_parts = parts(found->second, islands);
  return found->second.left < -kLongest / in_parts ? kLongest : -found->second.left * in_parts;
}

Clock::duration DelayBudget::left(const IslandId& island) const {
  const auto found = accounts_.find(island);
  return found == accounts_.end() ? most_ : found->second.left;
}

}  // namespace atl
