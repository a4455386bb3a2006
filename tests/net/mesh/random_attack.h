// One schedule of wild liars in a TimedMesh, and what became of the run.
#pragma once

#include <string>

#include "tests/net/mesh/wild_liar.h"

namespace atl {

struct RandomAttack {
  int islands = 3, liars = 1;

  struct Outcome {
    double ratio = 0;     // rounds, of those of honest islands alone in the same time
    std::string failure;  // "kind: what"; empty: all is well
  };

  double least_share() const { return 1 - static_cast<double>(liars) / islands - 0.1; }
  double least_part() const { return islands < 4 ? 0.3 : least_share(); }  // as AttackedRun's
  std::size_t honest_rounds() const;                                       // in the time that is measured
  Outcome run(unsigned seed, std::size_t honest, bool tells) const;
};

}  // namespace atl
