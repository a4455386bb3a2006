#include "trainer/evaluate/sampler.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace atl {
namespace {

// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): neighbouring seeds give unlike ones.
std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

constexpr std::size_t kFirstSorted = 64;

struct Likelier {
  std::span<const float> logits;
  bool operator()(std::int32_t a, std::int32_t b) const {
    const float x = logits[static_cast<std::size_t>(a)], y = logits[static_cast<std::size_t>(b)];
    return x != y ? x > y : a < b;
  }
};

}  // namespace

Sampler::Sampler(const Sampling& sampling, std::uint64_t text)
    : sampling_(sampling), random_(mixed(sampling.seed + mixed(text))) {}

// The likeliest are sorted a piece at a time, each as long as all before: most texts need the first few alone, and a
// vocabulary may have a quarter of a million.
std::size_t Sampler::nucleus(std::span<const float> logits, std::size_t kept, double& total) {
  const double wanted = sampling_.top_p * total;
  std::size_t sorted = 0, taken = 0;
  double sum = 0;
  while (taken < kept && (taken == 0 || sum < wanted)) {
    if (taken == sorted) {
      const std::size_t more = std::min(kept, std::max(kFirstSorted, 2 * sorted));
      const auto at = [&](std::size_t place) { return order_.begin() + static_cast<std::ptrdiff_t>(place); };
      std::partial_sort(at(sorted), at(more), order_.end(), Likelier{logits});
      sorted = more;
    }
    sum += weights_[static_cast<std::size_t>(order_[taken++])];
  }
  total = sum;
  return taken;
}

std::int32_t Sampler::draw(std::span<const float> logits) {
  order_.resize(logits.size());
  std::iota(order_.begin(), order_.end(), 0);
  const Likelier likelier{logits};
  const std::int32_t likeliest = *std::ranges::min_element(order_, likelier);
  if (sampling_.temperature <= 0) return likeliest;
  std::size_t kept = order_.size();
  if (sampling_.top_k > 0) kept = std::min(kept, static_cast<std::size_t>(sampling_.top_k));
  if (kept < order_.size()) {
    std::ranges::nth_element(order_, order_.begin() + static_cast<std::ptrdiff_t>(kept), likelier);
    order_.resize(kept);
    std::ranges::sort(order_);  // whatever way they were found in
  }
  const auto largest = static_cast<double>(logits[static_cast<std::size_t>(likeliest)]);
  weights_.resize(logits.size());
  double total = 0;
  for (const std::int32_t token : order_) {
    const auto at = static_cast<std::size_t>(token);
    weights_[at] = std::exp((static_cast<double>(logits[at]) - largest) / sampling_.temperature);
    total += weights_[at];
  }
  if (sampling_.top_p < 1) kept = nucleus(logits, kept, total);
  // Not std::discrete_distribution: its results differ between standard libraries.
  double rest = static_cast<double>(random_() >> 11) * 0x1.0p-53 * total;
  for (const std::int32_t token : std::span(order_).first(kept)) {
    rest -= weights_[static_cast<std::size_t>(token)];
    if (rest < 0) return token;
  }
  return likeliest;
}

}  // namespace atl
