#include "trainer/evaluate/eval_report.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "net/base/file.h"
#include "net/base/json_text.h"
#include "net/base/printable.h"

namespace atl {
namespace {

using nlohmann::json;

// What the harness calls results that went through no filter.
constexpr const char* kFilter = "none";

const char* kind_name(TaskKind kind) {
  return kind == TaskKind::kMultipleChoice  ? "multiple_choice"
         : kind == TaskKind::kLogLikelihood ? "loglikelihood"
                                            : "loglikelihood_rolling";
}

json metrics_json(const EvaluatedTask& task) {
  json metrics{{"name", task.task.name},
               {"alias", task.task.name},
               {"sample_len", static_cast<std::int64_t>(task.task.documents.size())}};
  for (const Metric& metric : task.scores.metrics) {
    metrics[fmt::format("{},{}", metric.name, kFilter)] = metric.value;
    json& error = metrics[fmt::format("{}_stderr,{}", metric.name, kFilter)];
    error = metric.standard_error ? json(*metric.standard_error) : json("N/A");
  }
  return metrics;
}

json task_config(const EvaluatedTask& task) {
  json list = json::array();
  for (const Metric& metric : task.scores.metrics) {
    list.push_back({{"metric", metric.name}, {"higher_is_better", metric.higher_is_better}});
  }
  return {{"task", task.task.name},
          {"output_type", kind_name(task.task.kind)},
          {"num_fewshot", task.task.few_shot},
          {"metric_list", list},
          {"metadata", {{"version", task.task.version}}}};
}

// A file's name of a task's.
std::string file_name(std::string name) {
  std::ranges::replace_if(
      name, [](unsigned char c) { return std::isalnum(c) == 0 && c != '-' && c != '_'; }, '_');
  return name;
}

bool is_file(const std::filesystem::path& output) { return output.extension() == ".json"; }

std::filesystem::path directory_of(const std::filesystem::path& output) {
  const std::filesystem::path directory = is_file(output) ? output.parent_path() : output;
  return directory.empty() ? "." : directory;
}

std::string date_of(double seconds) {
  const auto when = fmt::gmtime(static_cast<std::time_t>(seconds));
  const auto micro = static_cast<int>((seconds - std::floor(seconds)) * 1e6);
  return fmt::format("{:%Y-%m-%dT%H-%M-%S}.{:06d}", when, micro);
}

}  // namespace

json report_json(const EvaluationFacts& facts, std::span<const EvaluatedTask> tasks) {
  json report{{"results", json::object()},  {"group_subtasks", json::object()}, {"configs", json::object()},
              {"versions", json::object()}, {"n-shot", json::object()},         {"higher_is_better", json::object()},
              {"n-samples", json::object()}};
  for (const EvaluatedTask& task : tasks) {
    const std::string& name = task.task.name;
    const auto count = static_cast<std::int64_t>(task.task.documents.size());
    report["results"][name] = metrics_json(task);
    report["group_subtasks"][name] = json::array();
    report["configs"][name] = task_config(task);
    report["versions"][name] = task.task.version;
    report["n-shot"][name] = task.task.few_shot;
    report["n-samples"][name] = {{"original", count}, {"effective", count}};
    for (const Metric& metric : task.scores.metrics) {
      report["higher_is_better"][name][metric.name] = metric.higher_is_better;
    }
  }
  report["config"] = {
      {"model", "atoll"},
      {"model_args", {{"pretrained", facts.model}, {"max_length", facts.max_length}, {"dtype", facts.dtype}}},
      {"batch_size", facts.batch},
      {"device", facts.device},
      {"limit", facts.limit == 0 ? json() : json(facts.limit)},
      {"bootstrap_iters", facts.bootstrap}};
  report["date"] = facts.began;
  report["max_length"] = facts.max_length;
  report["tokenizer"] = facts.tokenizer;
  report["model_name"] = facts.model;
  report["model_source"] = "atoll";
  report["total_evaluation_time_seconds"] = fmt::format("{}", facts.seconds);
  return report;
}

std::string report_table(std::span<const EvaluatedTask> tasks) {
  std::size_t width = 4;
  for (const EvaluatedTask& task : tasks) width = std::max(width, task.task.name.size());
  std::string table =
      fmt::format("{:<{}}  {:>9}  {:<15}  {:>10}  {:>8}\n", "task", width, "questions", "metric", "value", "stderr");
  for (const EvaluatedTask& task : tasks) {
    bool first = true;
    for (const Metric& metric : task.scores.metrics) {
      table += fmt::format("{:<{}}  {:>9}  {:<15}  {:>10.4f}  {:>8}\n", first ? printable(task.task.name) : "", width,
                           first ? std::to_string(task.task.documents.size()) : "", metric.name, metric.value,
                           metric.standard_error ? fmt::format("{:.4f}", *metric.standard_error) : "");
      first = false;
    }
  }
  return table;
}

std::string sample_lines(const EvaluatedTask& task) {
  std::string lines;
  const bool choices = task.task.kind == TaskKind::kMultipleChoice;
  for (std::size_t i = 0; i < task.task.documents.size(); ++i) {
    const TaskDocument& document = task.task.documents[i];
    json arguments = json::object(), answers = json::array();
    for (std::size_t c = 0; c < document.continuations.size(); ++c) {
      json& pair = arguments[fmt::format("gen_args_{}", c)];
      pair = task.task.kind == TaskKind::kRolling
                 ? json{{"arg_0", document.continuations[c]}}
                 : json{{"arg_0", document.contexts[c]}, {"arg_1", document.continuations[c]}};
      const LogLikelihood& answer = task.likelihoods[i][c];
      answers.push_back(json::array({answer.sum, answer.greedy}));
    }
    json line{{"doc_id", i},
              {"target", choices ? json(document.gold) : json(document.continuations.front())},
              {"arguments", arguments},
              {"filtered_resps", answers},
              {"filter", kFilter}};
    const auto& values = task.scores.documents[i].values;
    for (std::size_t m = 0; m < values.size(); ++m) line[task.scores.metrics[m].name] = values[m];
    lines += dump_json(line) + "\n";
  }
  return lines;
}

Status check_output(const std::filesystem::path& output) {
  const std::filesystem::path directory = directory_of(output);
  ATOLL_RETURN_IF_ERROR(make_directories(directory));
  return ::access(directory.c_str(), W_OK | X_OK) == 0 ? ok_status() : Status(errno_error("write to", directory));
}

Result<std::filesystem::path> write_report(const std::filesystem::path& output, const EvaluationFacts& facts,
                                           std::span<const EvaluatedTask> tasks, bool samples) {
  ATOLL_RETURN_IF_ERROR(check_output(output));
  const std::filesystem::path directory = directory_of(output);
  const std::string date = date_of(facts.began);
  const auto file = is_file(output) ? output : directory / fmt::format("results_{}.json", date);
  // Names are of others: a path, a file's stem, which need not be UTF-8.
  const std::string text = report_json(facts, tasks).dump(2, ' ', false, json::error_handler_t::replace) + "\n";
  ATOLL_RETURN_IF_ERROR(write_file_atomically(file, text, FileMode::kPublic));
  std::set<std::string> taken;
  for (const EvaluatedTask& task : tasks) {
    if (!samples) break;
    std::string name = file_name(task.task.name);
    while (!taken.insert(name).second) name += '_';  // of two whose other characters differ
    const auto lines = directory / fmt::format("samples_{}_{}.jsonl", name, date);
    ATOLL_RETURN_IF_ERROR(write_file_atomically(lines, sample_lines(task), FileMode::kPublic));
  }
  return file;
}

}  // namespace atl
