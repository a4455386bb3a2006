// What the members of an attempt say that they gave, beside the average that they hold: whether the one is the weighted
// sum of the other, and whose work goes against the others'. Both before the commit, by sketches
// (net/wire/work_sketch.h). Plain values; the arithmetic of WorkWatch.
//
// A member that gives other than it says shows in the sum; one that says what it gives shows in its cosines. What
// raises the loss goes against what lowers it: so what is not found is smaller than the sum's tolerance, or does little
// harm.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "net/wire/mesh.h"

namespace atl {

// As said with IslandHave, by the members of one attempt.
class WorkWords {
 public:
  void add(const IslandId& island, const IslandHave& said);
  std::optional<WorkSketch> gave(const IslandId& island) const;
  // That of the average which more than half of those say that say one: whoever holds the same bytes has the same.
  // Nothing: fewer than two do.
  std::optional<WorkSketch> average() const;

 private:
  std::map<IslandId, std::string> gave_, averages_;
};

struct WorkFindings {
  bool is_judged = false;  // else too little was said
  std::size_t said = 0;    // so many say what they gave
  // How much of the average is not what its members say, of its length; 0: no more than encoding makes.
  double missing = 0;
  std::set<IslandId> silent;  // gave, and did not say what
  // Of each that said what it gave: the cosine between that and what another gave, of all others the one in the middle.
  // Empty: fewer than three say it, and nobody can tell who goes against whom.
  std::map<IslandId, double> agreement;
};

// `members`: of the attempt, those without weight too. `wire`: its format.
WorkFindings find_in_work(const std::vector<AttemptMember>& members, const WorkWords& words, WireFormat wire);

}  // namespace atl
