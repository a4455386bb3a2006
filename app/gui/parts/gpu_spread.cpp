#include "app/gui/parts/gpu_spread.h"

#include <algorithm>

namespace atl {
namespace {

// One line, looked at from left to right.
struct Walk {
  const std::vector<SeriesColumn>& columns;
  std::size_t next = 0;  // first column that is right of the place

  void go_to(double x) {
    while (next < columns.size() && columns[next].x <= x) ++next;
  }
  const SeriesColumn* here(double x) const {
    if (next == 0) return nullptr;
    const SeriesColumn& last = columns[next - 1];
    const bool goes_on = next < columns.size() && !columns[next].gap_before;
    return last.x == x || goes_on ? &last : nullptr;
  }
  // It leads to this place from one further left.
  bool leads_to(double x) const { return columns[next - 1].x < x || (next > 1 && !columns[next - 1].gap_before); }
};

std::vector<double> places_of(std::span<const std::vector<SeriesColumn>> lines) {
  std::vector<double> places;
  for (const auto& line : lines) {
    for (const SeriesColumn& column : line) places.push_back(column.x);
  }
  std::ranges::sort(places);
  places.erase(std::unique(places.begin(), places.end()), places.end());
  return places;
}

}  // namespace

std::vector<SeriesColumn> spread_of(std::span<const std::vector<SeriesColumn>> lines) {
  std::vector<Walk> walks;
  for (const auto& line : lines) walks.push_back({line});
  std::vector<SeriesColumn> spread;
  for (const double x : places_of(lines)) {
    SeriesColumn all{.x = x};
    double sum = 0;
    int count = 0;
    bool led_to = false;
    for (Walk& walk : walks) {
      walk.go_to(x);
      const SeriesColumn* one = walk.here(x);
      if (one == nullptr) continue;
      all.low = count == 0 ? one->low : std::min(all.low, one->low);
      all.high = count == 0 ? one->high : std::max(all.high, one->high);
      sum += double{one->mean};
      ++count;
      led_to = led_to || walk.leads_to(x);
    }
    all.mean = static_cast<float>(sum / count);
    all.gap_before = !led_to && !spread.empty();
    spread.push_back(all);
  }
  return spread;
}

}  // namespace atl
