// Tasks as JSON Lines: what a model is asked, in the forms of lm-evaluation-harness's (docs/eval-tasks.md). Files are
// of others: bounded and checked, and an error names the line. Pure but for reading the file; any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "net/base/result.h"
#include "net/wire/evaluation.h"

namespace atl {

// One question.
struct TaskDocument {
  // What is scored: (context, continuation) for each choice, or one. Of kRolling: the text alone, as a continuation.
  std::vector<std::string> contexts, continuations;
  std::vector<std::string> choices;  // as they count for acc_norm and acc_bytes: without what joins them to a context
  std::vector<std::int64_t> gold;    // the right choices; one, mostly
};

struct Task {
  std::string name;
  TaskKind kind = TaskKind::kMultipleChoice;
  double version = 0;
  std::int64_t few_shot = 0;  // examples before each question; what the file says, for the report
  std::vector<TaskDocument> documents;
};

inline constexpr std::size_t kMaxTaskFile = std::size_t{1} << 30;  // bytes
inline constexpr std::size_t kMaxTaskLine = std::size_t{16} << 20;
inline constexpr std::uint64_t kMaxTaskText = std::uint64_t{4}
                                              << 30;  // that is asked: what a file says once may count often

// At most `limit` documents, the first ones; 0: all.
Result<Task> read_task(std::string_view text, std::string_view name, std::int64_t limit = 0);
// Of all contexts and continuations.
std::uint64_t text_bytes(const Task& task);
// Named as the file is, unless it names itself.
Result<Task> load_task(const std::filesystem::path& file, std::int64_t limit = 0);

}  // namespace atl
