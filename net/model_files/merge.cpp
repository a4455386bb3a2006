#include "net/model_files/merge.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <iterator>
#include <numeric>

#include "net/base/parallel.h"

namespace atl {
namespace {

// mergekit's bounds: models closer than this angle are interpolated linearly; norms and weights below these are none.
constexpr double kNearlyParallel = 0.9995;
constexpr double kNoNorm = 1e-8;
constexpr double kNoWeight = 1e-8;
constexpr double kNothing = 1e-7;  // an absolute sum

constexpr std::size_t kBins = std::size_t{1} << 16;  // of half of a value's bits
constexpr std::uint32_t kNowhere = kBins;
using Histogram = std::vector<std::uint64_t>;

// IEEE-754 floats without their sign are in the order of their bits.
std::uint32_t magnitude_bits(float value) { return std::bit_cast<std::uint32_t>(value) & 0x7fffffffu; }

// splitmix64's output function (Steele, Lea, Flood, OOPSLA 2014).
std::uint64_t mixed(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15u;

// The bin in which the k-th largest value is; `k` becomes its place within, from 1.
std::uint32_t bin_of_largest(const Histogram& histogram, std::uint64_t& k) {
  std::size_t bin = histogram.size() - 1;
  for (; bin > 0 && histogram[bin] < k; --bin) k -= histogram[bin];
  return static_cast<std::uint32_t>(bin);
}

double sum_of(const std::vector<double>& parts) { return std::accumulate(parts.begin(), parts.end(), 0.0); }

Error unusable(std::string_view what) { return Error{ErrorCode::kInvalidArgument, std::string(what)}; }

bool is_ties(MergeMethod method) { return method == MergeMethod::kTies || method == MergeMethod::kDareTies; }

}  // namespace

std::string_view name_of(MergeMethod method) { return kMergeMethodNames[static_cast<std::size_t>(method)]; }

std::optional<MergeMethod> parse_merge_method(std::string_view name) {
  const auto found = std::ranges::find(kMergeMethodNames, name);
  if (found == std::end(kMergeMethodNames)) return std::nullopt;
  return static_cast<MergeMethod>(found - std::begin(kMergeMethodNames));
}

bool needs_base(MergeMethod method) { return method != MergeMethod::kLinear && method != MergeMethod::kSlerp; }
bool has_density(MergeMethod method) { return method == MergeMethod::kTies || draws(method); }
bool draws(MergeMethod method) { return method == MergeMethod::kDareLinear || method == MergeMethod::kDareTies; }

bool MergeRecipe::normalizes() const {
  return normalize.value_or(method == MergeMethod::kLinear || method == MergeMethod::kTies);
}

Status MergeRecipe::validate() const {
  if (weights.empty()) return unusable("there is no model to merge");
  if (method == MergeMethod::kSlerp && weights.size() != 2) return unusable("slerp is between two models");
  if (!std::ranges::all_of(weights, [](double weight) { return std::isfinite(weight); })) {
    return unusable("a weight is no finite number");
  }
  if (!std::isfinite(lambda) || !std::isfinite(t)) return unusable("lambda and t must be finite numbers");
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  if (method == MergeMethod::kLinear && normalizes() && std::abs(sum) < kNoWeight) {
    return unusable("the weights add up to 0, by which linear would divide; give others, or --no-normalize");
  }
  if (!has_density(method)) return ok_status();
  if (densities.size() != weights.size()) return unusable("each model needs a density");
  const bool in_range = std::ranges::all_of(densities, [](double density) { return density > 0 && density <= 1; });
  return in_range ? ok_status() : Status(unusable("a density must be more than 0, and 1 at most"));
}

std::uint64_t dare_key(std::uint64_t seed, std::size_t model, std::size_t parameter) {
  std::uint64_t key = 0;
  for (const std::uint64_t part : {seed, std::uint64_t{model}, std::uint64_t{parameter}}) {
    key = mixed((key ^ part) + kGolden);
  }
  return key;
}

bool dare_keeps(std::uint64_t key, std::int64_t element, double density) {
  const std::uint64_t bits = mixed(key + (static_cast<std::uint64_t>(element) + 1) * kGolden);
  return static_cast<double>(bits >> 11) * 0x1p-53 < density;
}

ParameterMerge::ParameterMerge(const MergeRecipe& recipe, const MergeInput& input, std::int64_t numel,
                               std::size_t index)
    : recipe_(recipe), input_(input), numel_(numel), index_(index), kept_(recipe.weights.size()) {
  if (recipe_.method == MergeMethod::kLinear) {
    const double sum = std::accumulate(recipe_.weights.begin(), recipe_.weights.end(), 0.0);
    for (const double weight : recipe_.weights) coefficients_.push_back(recipe_.normalizes() ? weight / sum : weight);
  }
  if (recipe_.method == MergeMethod::kSlerp) find_angle();
  for (std::size_t model = 0; has_density(recipe_.method) && model < models(); ++model) {
    if (recipe_.densities[model] >= 1) continue;
    draws(recipe_.method) ? find_scale(model) : find_largest(model);
  }
}

std::size_t ParameterMerge::pieces() const {
  return static_cast<std::size_t>((numel_ + kPieceNumel - 1) / kPieceNumel);
}

std::vector<float> ParameterMerge::values(std::size_t input, std::size_t piece) const {
  const std::int64_t first = static_cast<std::int64_t>(piece) * kPieceNumel;
  std::vector<float> values(static_cast<std::size_t>(std::min(kPieceNumel, numel_ - first)));
  input_(input, first, values);
  return values;
}

std::vector<float> ParameterMerge::difference(std::size_t model, std::size_t piece) const {
  std::vector<float> difference = values(model, piece);
  std::ranges::transform(difference, values(models(), piece), difference.begin(), std::minus{});
  return difference;
}

// Sums of pieces are added up in their order, whoever computed them: so they are the same on any machine.
void ParameterMerge::find_angle() {
  std::vector<double> squares_a(pieces()), squares_b(pieces()), products(pieces());
  parallel_for(pieces(), [&](std::size_t piece) {
    const std::vector<float> a = values(0, piece), b = values(1, piece);
    for (std::size_t i = 0; i < a.size(); ++i) {
      squares_a[piece] += double{a[i]} * double{a[i]};
      squares_b[piece] += double{b[i]} * double{b[i]};
      products[piece] += double{a[i]} * double{b[i]};
    }
  });
  const auto norm_of = [](const std::vector<double>& squares) {
    const double norm = std::sqrt(sum_of(squares));
    return norm > kNoNorm ? norm : 1.0;
  };
  const double t = recipe_.t;
  const double cosine = std::clamp(sum_of(products) / (norm_of(squares_a) * norm_of(squares_b)), -1.0, 1.0);
  if (std::abs(cosine) > kNearlyParallel) {
    coefficients_ = {1 - t, t};
    return;
  }
  const double angle = std::acos(cosine);
  coefficients_ = {std::sin((1 - t) * angle) / std::sin(angle), std::sin(t * angle) / std::sin(angle)};
}

// Of all values of a difference; `bin_of` says where one counts: below kBins, or anything else for nowhere.
template <class BinOf>
std::vector<std::uint64_t> ParameterMerge::histogram(std::size_t model, const BinOf& bin_of) const {
  const std::size_t groups = std::min(parallel_threads(), pieces());  // of pieces, with a histogram each
  std::vector<Histogram> parts(groups, Histogram(kBins));
  parallel_for(groups, [&](std::size_t group) {
    for (std::size_t piece = group; piece < pieces(); piece += groups) {
      for (const float value : difference(model, piece)) {
        const std::uint32_t bin = bin_of(magnitude_bits(value));
        if (bin < kBins) ++parts[group][bin];
      }
    }
  });
  Histogram sum(kBins);
  for (const Histogram& part : parts) std::ranges::transform(sum, part, sum.begin(), std::plus{});
  return sum;
}

// The k-th largest magnitude by its upper half, then by its lower half; of values as large as it the first stay.
void ParameterMerge::find_largest(std::size_t model) {
  auto k = static_cast<std::uint64_t>(recipe_.densities[model] * static_cast<double>(numel_));
  k = std::max<std::uint64_t>(1, k);
  const std::uint32_t upper = bin_of_largest(histogram(model, [](std::uint32_t bits) { return bits >> 16; }), k);
  const Histogram within =
      histogram(model, [&](std::uint32_t bits) { return bits >> 16 == upper ? bits & 0xffffu : kNowhere; });
  const std::uint32_t lower = bin_of_largest(within, k);
  Kept& kept = kept_[model];
  kept.least = upper << 16 | lower;
  if (within[lower] == k) return;
  kept.equals.emplace(pieces());
  parallel_for(pieces(), [&](std::size_t piece) {
    for (const float value : difference(model, piece)) (*kept.equals)[piece] += magnitude_bits(value) == kept.least;
  });
  for (std::uint64_t& equals : *kept.equals) {
    equals = std::min(k, equals);
    k -= equals;
  }
}

void ParameterMerge::find_scale(std::size_t model) {
  const std::uint64_t key = dare_key(recipe_.seed, model, index_);
  std::vector<double> all(pieces()), drawn(pieces());
  parallel_for(pieces(), [&](std::size_t piece) {
    std::int64_t element = static_cast<std::int64_t>(piece) * kPieceNumel;
    for (const float value : difference(model, piece)) {
      const double magnitude = std::abs(double{value});
      all[piece] += magnitude;
      if (dare_keeps(key, element++, recipe_.densities[model])) drawn[piece] += magnitude;
    }
  });
  const double sum = sum_of(all), sum_drawn = sum_of(drawn);
  if (sum >= kNothing && sum_drawn >= kNothing) kept_[model].scale = sum / sum_drawn;
}

void ParameterMerge::sparsify(std::size_t model, std::int64_t first, std::span<float> difference) const {
  if (!has_density(recipe_.method) || recipe_.densities[model] >= 1) return;
  const Kept& kept = kept_[model];
  if (draws(recipe_.method)) {
    const std::uint64_t key = dare_key(recipe_.seed, model, index_);
    const auto scale = static_cast<float>(kept.scale);
    for (std::size_t i = 0; i < difference.size(); ++i) {
      const bool keeps = dare_keeps(key, first + static_cast<std::int64_t>(i), recipe_.densities[model]);
      difference[i] = keeps ? difference[i] * scale : 0.0f;
    }
    return;
  }
  std::uint64_t equals =
      kept.equals ? (*kept.equals)[static_cast<std::size_t>(first / kPieceNumel)] : difference.size();
  for (float& value : difference) {
    const std::uint32_t bits = magnitude_bits(value);
    const bool stays = bits > kept.least || (bits == kept.least && equals > 0);
    if (stays && bits == kept.least) --equals;
    if (!stays) value = 0;
  }
}

void ParameterMerge::merge_weighted(std::int64_t first, std::span<float> out) const {
  std::vector<double> sum(out.size());
  for (std::size_t model = 0; model < models(); ++model) {
    const std::vector<float> given = values(model, static_cast<std::size_t>(first / kPieceNumel));
    for (std::size_t i = 0; i < out.size(); ++i) sum[i] += coefficients_[model] * double{given[i]};
  }
  std::ranges::transform(sum, out.begin(), [](double value) { return static_cast<float>(value); });
}

void ParameterMerge::merge_differences(std::int64_t first, std::span<float> out) const {
  const auto piece = static_cast<std::size_t>(first / kPieceNumel);
  const std::vector<float> base = values(models(), piece);
  std::vector<std::vector<float>> weighted;
  for (std::size_t model = 0; model < models(); ++model) {
    weighted.push_back(difference(model, piece));
    sparsify(model, first, weighted.back());
    for (float& value : weighted.back()) value *= static_cast<float>(recipe_.weights[model]);
  }
  const bool elects = is_ties(recipe_.method);
  for (std::size_t i = 0; i < out.size(); ++i) {
    float all = 0;  // in fp32, in this order: of values that cancel out, its sign is mergekit's
    for (const auto& each : weighted) all += each[i];
    double sum = 0, divisor = 0;
    for (std::size_t model = 0; model < models(); ++model) {
      const float value = weighted[model][i];
      if (elects && !(all >= 0 ? value > 0 : value < 0)) continue;
      sum += double{value};
      divisor += recipe_.weights[model];
    }
    if (recipe_.normalizes() && std::abs(divisor) >= kNoWeight) sum /= divisor;
    out[i] = static_cast<float>(double{base[i]} + recipe_.lambda * sum);
  }
}

void ParameterMerge::merge(std::int64_t first, std::span<float> out) const {
  needs_base(recipe_.method) ? merge_differences(first, out) : merge_weighted(first, out);
}

}  // namespace atl
