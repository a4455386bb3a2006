#include "net/hub/evaluation_curves.h"

#include <algorithm>

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
  // Point number i is shown where the share of points up to it reaches another whole one of those that are shown.
  const std::size_t all = curve.figures.size(), most = std::min(all, HubState::kMaxPoints);
  std::size_t number = 0;
  for (const auto& [outer_step, figures] : curve.figures) {
    const std::size_t i = number++;
    const bool is_shown = i == 0 || all == most || i * (most - 1) / (all - 1) != (i - 1) * (most - 1) / (all - 1);
    if (is_shown) view.points.push_back({outer_step.value, figures[static_cast<std::size_t>(main)]});
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
