#include "net/mesh/evaluation_book.h"

#include <algorithm>

namespace atl {
namespace {

// Of each metric the lower one of two in the middle: a good figure is believed where more than half say so.
std::vector<double> middle_of(const std::map<IslandId, std::vector<double>>& answers) {
  std::vector<double> middle(answers.begin()->second.size());
  for (std::size_t i = 0; i < middle.size(); ++i) {
    std::vector<double> said;
    for (const auto& [island, figures] : answers) said.push_back(figures[i]);
    std::ranges::sort(said);
    middle[i] = said[(said.size() - 1) / 2];
  }
  return middle;
}

}  // namespace

void EvaluationBook::ask(OuterStep outer_step, const std::set<IslandId>& islands) {
  asked_[outer_step].islands.insert(islands.begin(), islands.end());
  if (asked_.size() > kMostOpen) asked_.erase(asked_.begin());
}

std::optional<EvaluatedState> EvaluationBook::report(const IslandId& island, const IslandEvaluation& said) {
  const auto found = asked_.find(said.outer_step);
  if (found == asked_.end() || !found->second.islands.contains(island)) return std::nullopt;
  if (said.task >= run_.tasks.size() || !are_figures_of(run_.tasks[said.task].kind, said.figures)) return std::nullopt;
  auto& answers = found->second.answers[said.task];
  if (!answers.emplace(island, said.figures).second) return std::nullopt;
  const EvaluationTask& task = run_.tasks[said.task];
  return EvaluatedState{said.outer_step, task.name, task.kind, middle_of(answers),
                        static_cast<std::uint32_t>(answers.size())};
}

void EvaluationBook::go_back_to(OuterStep outer_step) {
  std::erase_if(asked_, [&](const auto& entry) { return entry.first > outer_step; });
}

}  // namespace atl
