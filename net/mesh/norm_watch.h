// Whether the norm that an island gives for its pseudo-gradient (over inner steps) is within bounds: at most `bound`
// times the median of the others in its round, or of the run's past where that is larger. Where there are fewer than
// two others, the largest of the other's, its own past's and the run's past counts, four times, for neither one liar
// nor a newcomer, whose first steps are short, must make an honest island look large. One for each fragment. Pure
// values; not thread-safe; owned by MeshTrust.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "net/base/id.h"

namespace atl {

class NormWatch {
 public:
  explicit NormWatch(double bound) : bound_(bound) {}  // 0: no bound

  // The largest norm that may take part beside `others`; empty: nothing is known to compare with.
  std::optional<double> limit(const IslandId& island, std::vector<double> others) const;
  void accepted(const IslandId& island, double norm);  // in a committed round
  void forget(const IslandId& island) { past_.erase(island); }

 private:
  static constexpr std::size_t kOwnPast = 8, kRunPast = 16;  // norms remembered
  static constexpr std::size_t kLeastPast = 3;               // that say something
  static constexpr double kAgainstOne = 4;                   // times `bound_`, where fewer than two others tell

  const double bound_;
  std::map<IslandId, std::deque<double>> past_;
  std::deque<double> run_past_;
};

}  // namespace atl
