#include "trainer/evaluate/task_scores.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "trainer/evaluate/white_space.h"

namespace atl {
namespace {

constexpr int kMostRoundsPerSeed = 1000;

double mean_of(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// With Bessel's correction.
double deviation_of(std::span<const double> values) {
  const double mean = mean_of(values);
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return std::sqrt(squares / static_cast<double>(values.size() - 1));
}

std::optional<double> error_of_mean(std::span<const double> values) {
  if (values.size() < 2) return std::nullopt;
  return deviation_of(values) / std::sqrt(static_cast<double>(values.size()));
}

// Of exp(-mean), over samples drawn with replacement.
std::optional<double> bootstrapped_perplexity_error(std::span<const double> values, int rounds) {
  if (rounds < 2) return std::nullopt;
  std::vector<double> drawn;
  const auto count = static_cast<double>(values.size());
  const int rounds_per_seed = std::min(rounds, kMostRoundsPerSeed);
  for (int seed = 0; seed < rounds / rounds_per_seed; ++seed) {
    PythonRandom random(static_cast<std::uint32_t>(seed));
    for (int round = 0; round < rounds_per_seed; ++round) {
      double sum = 0;
      for (std::size_t i = 0; i < values.size(); ++i) {
        sum += values[static_cast<std::size_t>(std::floor(random.uniform() * count))];
      }
      drawn.push_back(std::exp(-(sum / count)));
    }
  }
  return deviation_of(drawn);
}

// The number of the first of the largest.
template <class Value>
std::int64_t likeliest(std::size_t count, Value&& value) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < count; ++i) {
    if (value(i) > value(best)) best = i;
  }
  return static_cast<std::int64_t>(best);
}

DocumentScores score_choices(const TaskDocument& document, std::span<const LogLikelihood> likelihoods) {
  const auto right = [&](auto&& length) {
    const std::int64_t chosen = likeliest(likelihoods.size(), [&](std::size_t i) {
      return likelihoods[i].sum / static_cast<double>(length(document.choices[i]));
    });
    return std::ranges::find(document.gold, chosen) == document.gold.end() ? 0.0 : 1.0;
  };
  return {{right([](const std::string&) { return 1; }), right([](const std::string& c) { return characters(c); }),
           right([](const std::string& c) { return c.size(); })}};
}

// Of one metric, over documents.
std::vector<double> column(std::span<const DocumentScores> documents, std::size_t metric) {
  std::vector<double> values;
  for (const DocumentScores& document : documents) values.push_back(document.values[metric]);
  return values;
}

void score_rolling(const Task& task, TaskScores& scores) {
  double words = 0, bytes = 0, sum = 0;
  for (std::size_t i = 0; i < task.documents.size(); ++i) {
    const std::string& text = task.documents[i].continuations.front();
    words += static_cast<double>(split_count(text));
    bytes += static_cast<double>(text.size());
    sum += scores.documents[i].values.front();
  }
  scores.metrics = {{"word_perplexity", std::exp(-sum / words), std::nullopt, false},
                    {"byte_perplexity", std::exp(-sum / bytes), std::nullopt, false},
                    {"bits_per_byte", -sum / bytes / std::numbers::ln2, std::nullopt, false}};
}

}  // namespace

TaskScores score_task(const Task& task, std::span<const std::vector<LogLikelihood>> likelihoods, int bootstrap) {
  TaskScores scores;
  for (std::size_t i = 0; i < task.documents.size(); ++i) {
    const LogLikelihood& first = likelihoods[i].front();
    switch (task.kind) {
      case TaskKind::kMultipleChoice:
        scores.documents.push_back(score_choices(task.documents[i], likelihoods[i]));
        break;
      case TaskKind::kLogLikelihood: scores.documents.push_back({{first.greedy ? 1.0 : 0.0, first.sum}}); break;
      case TaskKind::kRolling: scores.documents.push_back({{first.sum}}); break;
    }
  }
  const auto mean_metric = [&](const char* name, std::size_t metric) {
    const std::vector<double> values = column(scores.documents, metric);
    scores.metrics.push_back({name, mean_of(values), error_of_mean(values), true});
  };
  switch (task.kind) {
    case TaskKind::kMultipleChoice:
      mean_metric("acc", 0);
      mean_metric("acc_norm", 1);
      mean_metric("acc_bytes", 2);
      break;
    case TaskKind::kLogLikelihood: {
      mean_metric("acc", 0);
      const std::vector<double> sums = column(scores.documents, 1);
      scores.metrics.push_back(
          {"perplexity", std::exp(-mean_of(sums)), bootstrapped_perplexity_error(sums, bootstrap), false});
      break;
    }
    case TaskKind::kRolling: score_rolling(task, scores); break;
  }
  return scores;
}

// The Mersenne twister (Matsumoto and Nishimura, 1998), seeded by a key of one number: their init_by_array, which
// Python calls even for a single number.
PythonRandom::PythonRandom(std::uint32_t seed) : state_(624), at_(624) {
  constexpr std::size_t n = 624;
  state_[0] = 19650218u;
  for (std::size_t i = 1; i < n; ++i) {
    state_[i] = 1812433253u * (state_[i - 1] ^ (state_[i - 1] >> 30)) + static_cast<std::uint32_t>(i);
  }
  std::size_t i = 1;
  const auto step = [&] {
    if (++i < n) return;
    state_[0] = state_[n - 1];
    i = 1;
  };
  for (std::size_t k = 0; k < n; ++k, step()) {
    state_[i] = (state_[i] ^ ((state_[i - 1] ^ (state_[i - 1] >> 30)) * 1664525u)) + seed;
  }
  for (std::size_t k = 1; k < n; ++k, step()) {
    state_[i] = (state_[i] ^ ((state_[i - 1] ^ (state_[i - 1] >> 30)) * 1566083941u)) - static_cast<std::uint32_t>(i);
  }
  state_[0] = 0x80000000u;
}

std::uint32_t PythonRandom::next() {
  constexpr std::size_t n = 624, m = 397;
  if (at_ == n) {
    for (std::size_t i = 0; i < n; ++i) {
      const std::uint32_t y = (state_[i] & 0x80000000u) | (state_[(i + 1) % n] & 0x7fffffffu);
      state_[i] = state_[(i + m) % n] ^ (y >> 1) ^ ((y & 1u) != 0 ? 0x9908b0dfu : 0u);
    }
    at_ = 0;
  }
  std::uint32_t y = state_[at_++];
  y ^= y >> 11;
  y ^= (y << 7) & 0x9d2c5680u;
  y ^= (y << 15) & 0xefc60000u;
  return y ^ (y >> 18);
}

// 53 bits.
double PythonRandom::uniform() {
  const std::uint32_t high = next() >> 5, low = next() >> 6;
  return (high * 67108864.0 + low) / 9007199254740992.0;
}

}  // namespace atl
