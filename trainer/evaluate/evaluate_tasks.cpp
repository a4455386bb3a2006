#include "trainer/evaluate/evaluate_tasks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace atl {

Result<TokenTask> tokenise_task(const Task& task, ModelText& text, std::int64_t max_length) {
  TokenTask tokens;
  const auto add = [&](std::size_t document, TokenPair pair) {
    tokens.pairs.push_back(std::move(pair));
    tokens.document.push_back(document);
  };
  const auto in_document = [&](std::size_t i, const Error& error) {
    return error.with_context(fmt::format("task {}, document {}", task.name, i + 1));
  };
  for (std::size_t i = 0; i < task.documents.size(); ++i) {
    const TaskDocument& document = task.documents[i];
    if (task.kind == TaskKind::kRolling) {
      ATOLL_ASSIGN_OR_RETURN(std::vector<TokenPair> windows,
                             rolling_windows(text, document.continuations.front(), max_length));
      if (windows.empty()) return in_document(i, {ErrorCode::kInvalidArgument, "the tokenizer makes no token of it"});
      for (TokenPair& window : windows) add(i, std::move(window));
      continue;
    }
    for (std::size_t c = 0; c < document.continuations.size(); ++c) {
      auto pair = encode_pair(text, document.contexts[c], document.continuations[c]);
      if (!pair.ok()) return in_document(i, pair.error());
      if (std::ssize(pair->continuation) > max_length) {
        return in_document(i,
                           {ErrorCode::kInvalidArgument,
                            fmt::format("a continuation of {} tokens is longer than the context of {} that the model "
                                        "is given; leave the document out, or raise --max-length",
                                        pair->continuation.size(), max_length)});
      }
      add(i, std::move(*pair));
    }
  }
  return tokens;
}

Result<TokenTasks> tokenise_tasks(std::vector<Task> tasks, ModelText& text, std::int64_t max_length) {
  TokenTasks all;
  all.max_length = max_length;
  for (const Task& task : tasks) {
    ATOLL_ASSIGN_OR_RETURN(TokenTask tokens, tokenise_task(task, text, max_length));
    all.capacity = std::max(all.capacity, longest_input(tokens.pairs, max_length));
    all.pairs = std::max(all.pairs, std::ssize(tokens.pairs));
    all.tokens.push_back(std::move(tokens));
  }
  all.tasks = std::move(tasks);
  return all;
}

Result<EvaluatedTask> evaluate_task(InferenceEngine& engine, Task task, const TokenTask& tokens,
                                    std::int64_t max_length, int bootstrap,
                                    const std::function<void(std::size_t done, std::size_t of)>& progress) {
  const auto told = [&](std::size_t done) {
    if (progress) progress(done, tokens.pairs.size());
  };
  auto likelihoods = log_likelihoods(engine, tokens.pairs, max_length, told);
  if (!likelihoods.ok()) return likelihoods.error().with_context(fmt::format("task {}", task.name));
  EvaluatedTask result{std::move(task), {}, {}};
  result.likelihoods.resize(result.task.documents.size());
  for (std::size_t i = 0; i < tokens.pairs.size(); ++i) {
    auto& of_document = result.likelihoods[tokens.document[i]];
    const LogLikelihood& likelihood = (*likelihoods)[i];
    if (!std::isfinite(likelihood.sum)) {
      return Error{
          ErrorCode::kNonFinite,
          fmt::format("task {}, document {}: what the model says is not finite: its weights are damaged, or too "
                      "large for this precision",
                      result.task.name, tokens.document[i] + 1)};
    }
    if (result.task.kind == TaskKind::kRolling && !of_document.empty()) {
      of_document.front().sum += likelihood.sum;
      of_document.front().greedy = of_document.front().greedy && likelihood.greedy;
    } else {
      of_document.push_back(likelihood);
    }
  }
  result.scores = score_task(result.task, result.likelihoods, bootstrap);
  return result;
}

}  // namespace atl
