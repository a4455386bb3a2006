#include "net/hub/evaluation_curves.h"

#include <algorithm>

#include "net/hub/shown_points.h"

namespace atl {

void EvaluationCurves::add(const EvaluationTask& task, Figures known) {
  curves_.push_back({task.name, task.kind, std::move(known)});
}

void EvaluationCurves::learn(const EvaluatedState& found) {
  const auto curve = std::ranges::find(curves_, found.task, &Curve::task);
  if (curve != curves_.end()) curve->figures[found.outer_step] = found.figures;
}

void EvaluationCurves::go_back_to(OuterStep outer_step) {
  for (Curve& curve : curves_) {
    curve.figures.erase(curve.figures.upper_bound(outer_step), curve.figures.end());
  }
}

HubState::Evaluation EvaluationCurves::shown(const Curve& curve) {
  HubState::Evaluation view{curve.task, std::string(main_metric(curve.kind)), {}, {}};
  const auto metrics = metrics_of(curve.kind);
  const auto main = std::ranges::find(metrics, main_metric(curve.kind), &TaskMetric::name) - metrics.begin();
  std::size_t number = 0;
  for (const auto& [outer_step, figures] : curve.figures) {
    if (!is_shown(number++, curve.figures.size(), HubState::kMaxPoints)) continue;
    view.points.push_back({outer_step.value, figures[static_cast<std::size_t>(main)]});
  }
  if (curve.figures.empty()) return view;
  const std::vector<double>& newest = curve.figures.rbegin()->second;
  for (std::size_t i = 0; i < metrics.size(); ++i) view.newest.push_back({std::string(metrics[i].name), newest[i]});
  return view;
}

std::vector<HubState::Evaluation> EvaluationCurves::shown() const {
  std::vector<HubState::Evaluation> views;
  for (const Curve& curve : curves_) views.push_back(shown(curve));
  return views;
}

}  // namespace atl
