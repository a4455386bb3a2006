// Which validation losses count, and when they say that the outer state is spoiled. Only an island that was asked is
// heard, of the state that it was asked about, once. A loss far from the usual of late is no measure for others before
// it is confirmed: in the next round all that train are asked, and what the one in the middle says counts; a state
// whose loss more than half of them find far above is spoiled. The first of all is asked of all. Pure values; not
// thread-safe; owned by MeshTrust.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "net/base/id.h"

namespace atl {

struct ValidatedState {
  OuterStep outer_step;
  double loss_nats = 0;
};

class ValidationWatch {
 public:
  enum class Outcome {
    kIgnored,  // not asked, or told already
    kWaits,    // others are asked too
    kGood,     // result() is the state's loss
    kDoubted,  // all are to be asked
    kSpoiled,  // result() is the state's loss, and it is far above the usual of late
  };

  // `rise`: nats from the usual of late; 0: nothing is doubted. `past`: good ones, oldest first.
  ValidationWatch(double rise, const std::vector<ValidatedState>& past);

  // `all`: their word is final. Whoever was asked before need not answer any more.
  void ask(OuterStep outer_step, std::set<IslandId> islands, bool all);
  Outcome report(const IslandId& island, OuterStep outer_step, double loss_nats);
  Outcome drop(const IslandId& island);  // it will not answer any more
  bool asked(const IslandId& island) const { return asked_.contains(island) && !losses_.contains(island); }

  bool wants_all() const { return doubts_; }  // in the next round
  bool knows_none() const { return rise_ > 0 && good_.empty(); }
  ValidatedState result() const { return result_; }
  // The newest state of whose loss nobody is in doubt.
  std::optional<OuterStep> newest_good() const;
  // What was found of later states is void, and so is every doubt. `as_it_is`: although its loss is high, which is no
  // reason to stop any more.
  void go_back_to(OuterStep outer_step, bool as_it_is);

 private:
  static constexpr std::size_t kOfLate = 3;

  Outcome settle();
  double usual(bool upper) const;  // the one in the middle of good_, the upper or the lower of two

  const double rise_;
  std::deque<ValidatedState> good_;  // of late
  OuterStep of_;
  std::set<IslandId> asked_;
  std::map<IslandId, double> losses_;
  bool doubts_ = false;
  bool all_asked_ = false;
  ValidatedState result_;
};

}  // namespace atl
