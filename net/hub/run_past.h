// All rounds and validations of a run, from its first on, within a bound: of many rounds those that follow each other
// become one. Pure values; not thread-safe.
#pragma once

#include <map>
#include <vector>

#include "net/base/id.h"
#include "net/control/hub_state.h"

namespace atl {

class RunPast {
 public:
  // A loss that is no figure is not known.
  void add(HubState::Past round);  // in their order; `rounds` is 1
  void add(const HubState::Validation& validation);

  const std::vector<HubState::Past>& rounds() const { return pieces_; }
  std::vector<HubState::Validation> validations() const;  // as HubState has them
  ToldPast told() const { return {rounds(), validations()}; }

 private:
  void append(const HubState::Past& piece);

  std::vector<HubState::Past> pieces_;  // of width_ rounds each, but for the last
  std::uint32_t width_ = 1;
  std::map<std::uint32_t, double> losses_;  // by outer step
};

}  // namespace atl
