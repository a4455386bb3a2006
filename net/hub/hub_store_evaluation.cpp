// The answers to the run's tasks in the hub's store: a row a metric, what is believed of an outer state now.
#include <fmt/format.h>

#include "net/hub/hub_store.h"

namespace atl {

Status HubStore::save(const StateEvaluated& evaluated) {
  const EvaluatedState& found = evaluated.found;
  const auto metrics = metrics_of(found.kind);
  ATOLL_ASSIGN_OR_RETURN(Transaction transaction, Transaction::begin(database_));
  ATOLL_ASSIGN_OR_RETURN(Statement statement,
                         database_.prepare("INSERT OR REPLACE INTO evaluation VALUES (?, ?, ?, ?, ?)"));
  for (std::size_t i = 0; i < metrics.size(); ++i) {
    ATOLL_RETURN_IF_ERROR(statement.bind(found.outer_step.value, found.task, std::string(metrics[i].name),
                                         found.figures[i], found.islands));
    ATOLL_RETURN_IF_ERROR(statement.run());
  }
  return transaction.commit();
}

Result<std::map<OuterStep, std::vector<double>>> HubStore::evaluations(const EvaluationTask& task) {
  const auto metrics = metrics_of(task.kind);
  std::map<OuterStep, std::vector<double>> found;
  ATOLL_ASSIGN_OR_RETURN(
      Statement statement,
      database_.prepare("SELECT outer_step, value FROM evaluation WHERE task = ? AND metric = ? ORDER BY outer_step"));
  for (const TaskMetric& metric : metrics) {
    statement.reset();
    ATOLL_RETURN_IF_ERROR(statement.bind(task.name, std::string(metric.name)));
    for (;;) {
      ATOLL_ASSIGN_OR_RETURN(const bool row, statement.step());
      if (!row) break;
      found[OuterStep{static_cast<std::uint32_t>(statement.integer(0))}].push_back(statement.real(1));
    }
  }
  std::erase_if(found, [&](const auto& entry) { return entry.second.size() != metrics.size(); });
  return found;
}

}  // namespace atl
