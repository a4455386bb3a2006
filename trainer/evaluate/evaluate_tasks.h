// Asks a model the questions of tasks. One thread.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "net/base/result.h"
#include "net/evaluate/task_file.h"
#include "trainer/engine/inference_engine.h"
#include "trainer/evaluate/log_likelihood.h"
#include "trainer/evaluate/model_text.h"
#include "trainer/evaluate/task_scores.h"

namespace atl {

// A task as tokens.
struct TokenTask {
  std::vector<TokenPair> pairs;       // of all documents, one after the other
  std::vector<std::size_t> document;  // of each pair
};
// kInvalidArgument names the document that leaves nothing to score, or more than max_length tokens at once.
Result<TokenTask> tokenise_task(const Task& task, ModelText& text, std::int64_t max_length);

// Several, and what a model must hold to be asked them.
struct TokenTasks {
  std::vector<Task> tasks;
  std::vector<TokenTask> tokens;  // of each
  std::int64_t max_length = 0;    // of a context, tokens
  std::int64_t capacity = 1;      // tokens that a text needs at most
  std::int64_t pairs = 1;         // of the largest task
};
Result<TokenTasks> tokenise_tasks(std::vector<Task> tasks, ModelText& text, std::int64_t max_length);

struct EvaluatedTask {
  Task task;
  // Of each document's choices; of a rolling one's windows, their sum.
  std::vector<std::vector<LogLikelihood>> likelihoods;
  TaskScores scores;
};

// `tokens`: of the task. `progress(done, of)`: pairs; may be empty. kNonFinite: what the model says is no number.
Result<EvaluatedTask> evaluate_task(InferenceEngine& engine, Task task, const TokenTask& tokens,
                                    std::int64_t max_length, int bootstrap,
                                    const std::function<void(std::size_t done, std::size_t of)>& progress);

}  // namespace atl
