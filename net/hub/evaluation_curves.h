// What the run's tasks came to, over its outer steps, as people see it: all points are kept, and of many a part is
// shown. Pure values; not thread-safe; owned by the HubView.
#pragma once

#include <map>
#include <vector>

#include "net/control/hub_state.h"
#include "net/mesh/evaluation_book.h"

namespace atl {

class EvaluationCurves {
 public:
  using Figures = std::map<OuterStep, std::vector<double>>;  // of metrics_of(kind), in their order

  void add(const EvaluationTask& task, Figures known);  // one after the other, as the run has them
  void learn(const EvaluatedState& found);
  void go_back_to(OuterStep outer_step);
  // A task that was not asked yet has no points.
  std::vector<HubState::Evaluation> shown() const;

 private:
  struct Curve {
    std::string task;
    TaskKind kind = TaskKind::kMultipleChoice;
    Figures figures;
  };
  static HubState::Evaluation shown(const Curve& curve);

  std::vector<Curve> curves_;
};

}  // namespace atl
