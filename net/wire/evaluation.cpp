#include "net/wire/evaluation.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace atl {
namespace {

constexpr std::size_t kMaxTaskName = 64;
// A model that gives a text no chance at all has a perplexity that is no number; what is told of it is this.
constexpr double kWorstPerplexity = 1e300;

constexpr std::array<std::string_view, 3> kKinds = {"multiple_choice", "loglikelihood", "loglikelihood_rolling"};
constexpr std::array kOfChoices{TaskMetric{"acc"}, TaskMetric{"acc_norm"}, TaskMetric{"acc_bytes"}};
constexpr std::array kOfCloze{TaskMetric{"acc"}, TaskMetric{.name = "perplexity", .most = kWorstPerplexity}};
constexpr std::array kOfTexts{TaskMetric{.name = "word_perplexity", .most = kWorstPerplexity},
                              TaskMetric{.name = "byte_perplexity", .most = kWorstPerplexity},
                              TaskMetric{.name = "bits_per_byte", .most = kWorstPerplexity}};

}  // namespace

std::string_view task_kind_name(TaskKind kind) { return kKinds[static_cast<std::size_t>(kind)]; }

std::optional<TaskKind> task_kind_named(std::string_view name) {
  const auto found = std::ranges::find(kKinds, name);
  if (found == kKinds.end()) return std::nullopt;
  return static_cast<TaskKind>(found - kKinds.begin());
}

std::span<const TaskMetric> metrics_of(TaskKind kind) {
  switch (kind) {
    case TaskKind::kMultipleChoice: return kOfChoices;
    case TaskKind::kLogLikelihood: return kOfCloze;
    case TaskKind::kRolling: return kOfTexts;
  }
  return {};
}

std::string_view main_metric(TaskKind kind) { return kind == TaskKind::kRolling ? "bits_per_byte" : "acc"; }

bool are_figures_of(TaskKind kind, std::span<const double> figures) {
  const auto fits = [](double figure, const TaskMetric& metric) {
    return std::isfinite(figure) && figure >= 0 && figure <= metric.most;
  };
  return std::ranges::equal(figures, metrics_of(kind), fits);
}

bool is_task_name(std::string_view name) {
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           c == '.';
  };
  return !name.empty() && name.size() <= kMaxTaskName && name.front() != '.' && std::ranges::all_of(name, fits);
}

// Of a length that names of files within a run may have; who fetches it compares all of the hash.
std::string evaluation_file_name(const EvaluationTask& task) {
  constexpr std::size_t kDigits = 32;
  return "evaluation/" + task.sha256.substr(0, kDigits) + ".jsonl";
}

}  // namespace atl
