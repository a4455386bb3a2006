// What a model's log-likelihoods on a task come to: lm-evaluation-harness's metrics and standard errors, by its
// formulas (v0.4, api/task.py, api/metrics.py), bootstrapped from the same random numbers. Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "net/evaluate/task_file.h"
#include "trainer/evaluate/log_likelihood.h"

namespace atl {

struct Metric {
  std::string name;
  double value = 0;
  std::optional<double> standard_error;  // none: the harness has no formula for it
  bool higher_is_better = true;
};

// Of one document: by metric, in the order of Metric.
struct DocumentScores {
  std::vector<double> values;
};

struct TaskScores {
  std::vector<Metric> metrics;
  std::vector<DocumentScores> documents;
};

inline constexpr int kBootstrapRounds = 100'000;  // the harness's default

// `likelihoods`: of each document's pairs; of kRolling one, the sum over its windows. bootstrap: rounds, of more than a
// thousand the whole thousands; below 2: no standard errors that need them.
//   multiple_choice: acc, acc_norm (by characters of the choice), acc_bytes (by its bytes)
//   loglikelihood: acc (greedy), perplexity
//   loglikelihood_rolling: word_perplexity, byte_perplexity, bits_per_byte
TaskScores score_task(const Task& task, std::span<const std::vector<LogLikelihood>> likelihoods,
                      int bootstrap = kBootstrapRounds);

// Python's random.Random(seed): the numbers that it draws. For whole numbers of 32 bits.
class PythonRandom {
 public:
  explicit PythonRandom(std::uint32_t seed);
  double uniform();  // random()

 private:
  std::uint32_t next();
  std::vector<std::uint32_t> state_;
  std::size_t at_;
};

}  // namespace atl
