// How long the others may wait for each island: for one that is late, that leaves in the middle of an attempt, or for
// whose sake attempts fail. Each island saves one part in n + 1 of the time that passes (n: the islands that are here),
// and what the others wait for it is taken from that. An island with nothing left is waited for no longer; one that owes
// sits out until it has saved what it owes. So f islands of n cost the others at most f / n of the time, in whatever
// way they spend it. Who comes to owe again saves half as fast, until it was once without any debt: honest misfortune
// ends, an attack does not. Kept by island while the hub runs, also of islands that left.
//
// A function of the time; one thread; owned by Membership.
#pragma once

#include <cstddef>
#include <map>

#include "net/base/deadline.h"
#include "net/base/id.h"

namespace atl {

class DelayBudget {
 public:
  // `most`: what an island can save, and has at first.
  explicit DelayBudget(Clock::duration most) : most_(most) {}

  // The time that has passed since the last call is saved by each of `islands` that are here. `now` never goes back.
  void save(Clock::time_point now, std::size_t islands);
  void charge(const IslandId& island, Clock::duration delay);

  Clock::duration most() const { return most_; }
  Clock::duration left(const IslandId& island) const;  // below zero: it owes
  bool is_spent(const IslandId& island) const { return left(island) <= Clock::duration{}; }
  bool owes(const IslandId& island) const { return left(island) < Clock::duration{}; }
  // How long it takes until it owes nothing, with so many islands here; a year at most.
  Clock::duration until_paid(const IslandId& island, std::size_t islands) const;

 private:
  static constexpr int kMostDebt = 10;     // times `most_`: an attempt of hours that failed is no ban for weeks
  static constexpr int kMostHalvings = 5;  // of what an island saves that owed again and again

  struct Account {
    Clock::duration left{};
    int debts = 0;  // since it last had all that it can save
  };

  static Clock::rep parts(const Account& account, std::size_t islands);  // it saves one in so many

  const Clock::duration most_;
  Clock::time_point saved_until_{};
  std::map<IslandId, Account> accounts_;  // of those that have less than `most_`
};

}  // namespace atl
