// What a run asks of its outer states: tasks as `atoll eval` takes them (docs/eval-tasks.md), each a file that the hub
// serves and every island verifies, and what their answers come to. Plain values; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace atl {

enum class TaskKind : std::uint8_t {
  kMultipleChoice,  // which of several continuations, or contexts, is likeliest
  kLogLikelihood,   // is the continuation what the model would have said itself
  kRolling,         // how likely is a whole text
};
std::string_view task_kind_name(TaskKind kind);  // as a task file says it: "multiple_choice", ...
std::optional<TaskKind> task_kind_named(std::string_view name);

// What a kind of task is scored by, as lm-evaluation-harness names it: from 0 to `most`.
struct TaskMetric {
  std::string_view name;
  double most = 1;
};
std::span<const TaskMetric> metrics_of(TaskKind kind);
// The one that is drawn over rounds: accuracy, or bits per byte of a whole text.
std::string_view main_metric(TaskKind kind);
// One figure for each metric of the kind, within its bounds.
bool are_figures_of(TaskKind kind, std::span<const double> figures);

struct EvaluationTask {
  std::string name;  // is_task_name
  TaskKind kind = TaskKind::kMultipleChoice;
  std::uint64_t documents = 0;  // questions
  std::uint64_t bytes = 0;      // of its file
  std::string sha256;           // of its file, hex
};
// 1 to 64 of A-Z a-z 0-9 . _ -, the first no dot.
bool is_task_name(std::string_view name);

struct RunEvaluation {
  std::uint32_t every = 0;  // rounds; 0, and no tasks: nothing is asked
  std::vector<EvaluationTask> tasks;

  bool is_due(std::uint32_t round) const { return every > 0 && round % every == 0; }
};
inline constexpr std::size_t kMaxEvaluationTasks = 16;
inline constexpr std::uint64_t kMaxEvaluationBytes = 64u << 20;  // of all their files
inline constexpr std::uint64_t kMaxEvaluationText = 256u << 20;  // that they ask, with what is before each question

// Of a file, among those that the hub serves beside the dataset.
std::string evaluation_file_name(const EvaluationTask& task);

}  // namespace atl
