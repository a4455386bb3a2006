// A run of a TimedMesh with liars in it, and what came of it after a while in which its hub could learn.
#pragma once

#include <string>

#include "tests/net/mesh/named_attackers.h"

namespace atl {

struct AttackedRun {
  int islands = 3, liars = 1;
  std::chrono::milliseconds inner{10'000}, grace{60'000}, ring{500};
  bool liars_come_first = true;  // by their ids
  unsigned seed = 1;
  // In rounds of an honest run, and no less than so long.
  int warm_up_rounds = 20, measured_rounds = 40;
  std::chrono::minutes measured_at_least{10};

  struct Outcome {
    double rate = 0;        // rounds a second
    double least_part = 1;  // of the rounds, of the honest island that trained in fewest
    double loss = 0;        // at the end
    std::string violation, told;
    std::size_t rounds = 0;
  };
  // What is left of the budget, of which 0 is none: of what is nearest to it.
  double left(const Outcome& attacked, const Outcome& honest) const;

  Outcome run(const NamedAttacker* attacker) const;  // null: all are honest
  double least_share() const { return 1 - static_cast<double>(liars) / islands - 0.1; }
  // Of the rounds, that an honest island trains in. Of three one word stands against another, and both go by turns.
  double least_part() const { return islands < 4 ? 0.3 : least_share(); }
  // In the same time it may have learned as much less.
  double most_loss(const Outcome& honest) const;
};

}  // namespace atl
