#include "net/mesh/norm_watch.h"

#include <algorithm>

namespace atl {
namespace {

// The upper one of two in the middle. `values` is not empty.
template <class Values>
double median(Values values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

void remember(std::deque<double>& past, double norm, std::size_t most) {
  past.push_back(norm);
  if (past.size() > most) past.pop_front();
}

}  // namespace

std::optional<double> NormWatch::limit(const IslandId& island, std::vector<double> others) const {
  if (bound_ == 0) return std::nullopt;
  double reference = 0, bound = bound_;
  if (others.size() >= 2) {
    reference = median(std::move(others));
    // Newcomers' first steps are short, and may be those of most.
    if (run_past_.size() >= kLeastPast) reference = std::max(reference, median(run_past_));
  } else {
    bound *= kAgainstOne;
    bool knows_past = false;
    const auto own = past_.find(island);
    for (const std::deque<double>* past : {own == past_.end() ? nullptr : &own->second, &run_past_}) {
      if (past == nullptr || past->size() < kLeastPast) continue;
      reference = std::max(reference, median(*past));
      knows_past = true;
    }
    if (!knows_past) return std::nullopt;
    for (const double other : others) reference = std::max(reference, other);
  }
  // Norms of nothing (a learning rate of 0) bound nothing.
  return reference > 0 ? std::optional(bound * reference) : std::nullopt;
}

void NormWatch::accepted(const IslandId& island, double norm) {
  remember(past_[island], norm, kOwnPast);
  remember(run_past_, norm, kRunPast);
}

}  // namespace atl
