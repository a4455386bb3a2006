#include "app/gui/plot/history_lines.h"

#include <algorithm>
#include <cmath>

#include "net/base/round_words.h"

namespace atl {
namespace {

constexpr double kForgotten = 1e-3;         // weight at which what was before no longer counts
constexpr std::size_t kRunUpColumns = 800;  // for what lies before the left edge
constexpr double kDottedGap = 5;
constexpr std::size_t kMarkedRounds = 2000;  // newest ones; more would be a grey plane

}  // namespace

std::vector<SeriesColumn> smoothed_columns(const Series& series, double from, double to, std::size_t columns,
                                           double smoothing) {
  std::vector<SeriesColumn> shown = series.view(from, to, columns);
  if (shown.size() < 2 || !(smoothing > 0)) return shown;
  const double whole = series.last() - series.first();
  const double usual = whole / static_cast<double>(std::max<std::size_t>(series.size() - 1, 1));
  const double step = std::max(usual, whole / 1000);
  const double reach = step * std::log(kForgotten) / std::log(smoothing);
  std::vector<SeriesPoint> points;
  if (from > series.first()) {
    for (const SeriesColumn& column : series.view(std::max(series.first(), from - reach), from, kRunUpColumns)) {
      if (column.x < shown.front().x) points.push_back({.x = column.x, .mean = double{column.mean}});
    }
  }
  const std::size_t run_up = points.size();
  for (const SeriesColumn& column : shown) points.push_back({.x = column.x, .mean = double{column.mean}});
  const std::vector<SeriesPoint> smooth = smoothed(points, smoothing, step);
  for (std::size_t i = 0; i < shown.size(); ++i) {
    shown[i].mean = shown[i].low = shown[i].high = static_cast<float>(smooth[run_up + i].mean);
  }
  return shown;
}

std::vector<SeriesColumn> dotted_columns(const Series& series, double from, double to, std::size_t columns) {
  std::vector<SeriesColumn> shown = series.view(from, to, columns);
  std::vector<double> distances;
  for (std::size_t i = 1; i < shown.size(); ++i) distances.push_back(shown[i].x - shown[i - 1].x);
  if (distances.size() < 3) return shown;
  const auto middle = distances.begin() + static_cast<std::ptrdiff_t>(distances.size() / 2);
  std::nth_element(distances.begin(), middle, distances.end());
  for (std::size_t i = 1; i < shown.size(); ++i) {
    shown[i].gap_before = shown[i].x - shown[i - 1].x > kDottedGap * *middle;
  }
  return shown;
}

std::vector<PlotMark> round_marks(const Series& syncs, const std::vector<RoundRow>& rounds, double from, double to) {
  std::vector<PlotMark> marks;
  // The newest round that was synchronised belongs to the newest point, and so on backwards.
  std::vector<std::uint32_t> numbers;
  for (const RoundRow& row : rounds) {
    if (row.ended && row.sync_seconds) numbers.push_back(static_cast<std::uint32_t>(round_number(row.round)));
  }
  const std::size_t count = std::min(syncs.size(), kMarkedRounds);
  for (std::size_t back = 0; back < count; ++back) {
    const SeriesPoint point = syncs.at(syncs.size() - 1 - back);
    if (point.x < from) break;
    if (point.count > 1) break;  // merged with age: no longer a round a point
    if (point.x > to) continue;
    marks.push_back({point.x, back < numbers.size() ? std::optional(numbers[back]) : std::nullopt});
  }
  std::reverse(marks.begin(), marks.end());
  return marks;
}

}  // namespace atl
