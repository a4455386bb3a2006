// What an evaluation came to, written as lm-evaluation-harness writes it (v0.4, loggers/evaluation_tracker.py), so that
// what reads its files reads these; and as a table for people. Pure, but for write_report; any thread.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

#include "net/base/result.h"
#include "trainer/evaluate/evaluate_tasks.h"

namespace atl {

// How it was made.
struct EvaluationFacts {
  std::string model = {};      // where it came from
  std::string tokenizer = {};  // its kind
  std::string dtype = {};      // computed in: "float32", "bfloat16"
  std::string device = {};     // by: "cpu", "cuda:0"
  std::int64_t max_length = 0;
  std::int64_t batch = 1;
  std::int64_t limit = 0;  // documents of each task; 0: all
  int bootstrap = 0;
  double began = 0;  // seconds since 1970
  double seconds = 0;
};

// results, versions, configs, n-shot, n-samples, higher_is_better, config.
nlohmann::json report_json(const EvaluationFacts& facts, std::span<const EvaluatedTask> tasks);
// A line a metric.
std::string report_table(std::span<const EvaluatedTask> tasks);
// A line a document, with what was asked and how likely each answer was.
std::string sample_lines(const EvaluatedTask& task);

// Whether write_report can write there, before hours are spent on what it is to write. Makes the directory.
Status check_output(const std::filesystem::path& output);
// results_DATE.json in the directory, or the file itself where its name ends in .json; with samples also
// samples_TASK_DATE.jsonl beside it. The file of the results.
Result<std::filesystem::path> write_report(const std::filesystem::path& output, const EvaluationFacts& facts,
                                           std::span<const EvaluatedTask> tasks, bool samples);

}  // namespace atl
