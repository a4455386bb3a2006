#include "app/core/series.h"

#include <algorithm>
#include <cmath>

namespace atl {
namespace {

constexpr std::size_t kFan = 8;
constexpr std::size_t kSampledSteps = 65;
// Points as they were written: so many usual steps without one are a gap. An all-reduce of a minute is none.
constexpr double kGapSteps = 58;
// Points that stand for many: an empty piece of the axis beside them is a gap.
constexpr double kGapWidths = 2;

bool is_finite(const SeriesPoint& point) {
  return std::isfinite(point.x) && std::isfinite(point.mean) && std::isfinite(point.low) && std::isfinite(point.high) &&
         point.count > 0;
}

template <class T>
void splice(std::vector<T>& values, std::size_t begin, std::size_t end, const std::vector<T>& in) {
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(begin);
  if (in.size() == end - begin) {
    std::ranges::copy(in, at);
    return;
  }
  const auto rest = values.erase(at, values.begin() + static_cast<std::ptrdiff_t>(end));
  values.insert(rest, in.begin(), in.end());
}

}  // namespace

void Series::Sum::add(float mean, float low_value, float high_value, float number) {
  weighted += static_cast<double>(mean) * number;
  count += number;
  low = empty ? low_value : std::min(low, low_value);
  high = empty ? high_value : std::max(high, high_value);
  empty = false;
}

std::size_t Series::memory_bytes() const {
  std::size_t bytes = x_.capacity() * sizeof(double) +
                      (mean_.capacity() + low_.capacity() + high_.capacity() + count_.capacity()) * sizeof(float);
  for (const Level& level : levels_) {
    bytes +=
        (level.mean.capacity() + level.low.capacity() + level.high.capacity() + level.count.capacity()) * sizeof(float);
  }
  return bytes;
}

std::size_t Series::index_from(double x) const {
  return static_cast<std::size_t>(std::ranges::lower_bound(x_, x) - x_.begin());
}

// ---- the pyramid

void Series::refresh(std::size_t level, std::size_t entry) {
  const Level* source = below(level);
  const auto& means = source != nullptr ? source->mean : mean_;
  const auto& lows = source != nullptr ? source->low : low_;
  const auto& highs = source != nullptr ? source->high : high_;
  const auto& counts = source != nullptr ? source->count : count_;
  Sum sum;
  const std::size_t end = std::min(entry * kFan + kFan, means.size());
  for (std::size_t i = entry * kFan; i < end; ++i) sum.add(means[i], lows[i], highs[i], counts[i]);
  Level& target = levels_[level];
  target.mean[entry] = static_cast<float>(sum.weighted / sum.count);
  target.low[entry] = sum.low;
  target.high[entry] = sum.high;
  target.count[entry] = static_cast<float>(sum.count);
}

// What covers points from this one on is made anew.
void Series::rebuild(std::size_t from) {
  std::size_t below_size = x_.size(), level = 0;
  for (; below_size > 1; ++level) {
    const std::size_t size = (below_size + kFan - 1) / kFan;
    if (level == levels_.size()) levels_.emplace_back();
    for (auto* values : {&levels_[level].mean, &levels_[level].low, &levels_[level].high, &levels_[level].count}) {
      values->resize(size);
    }
    from = std::min(from / kFan, size - 1);
    for (std::size_t entry = from; entry < size; ++entry) refresh(level, entry);
    below_size = size;
  }
  levels_.resize(level);
}

void Series::append(const SeriesPoint& point) {
  if (!is_finite(point) || (!empty() && point.x < last())) return;
  x_.push_back(point.x);
  mean_.push_back(static_cast<float>(point.mean));
  low_.push_back(static_cast<float>(point.low));
  high_.push_back(static_cast<float>(point.high));
  count_.push_back(static_cast<float>(point.count));
  rebuild(size() - 1);
}

void Series::replace(double from, double to, std::span<const SeriesPoint> points) {
  if (!(from <= to)) return;
  const std::size_t begin = index_from(from);
  const auto end = static_cast<std::size_t>(std::ranges::upper_bound(x_, to) - x_.begin());
  std::vector<double> x;
  std::vector<float> mean, low, high, count;
  for (const SeriesPoint& point : points) {
    const bool fits = is_finite(point) && point.x >= from && point.x <= to && (x.empty() || point.x >= x.back());
    if (!fits) continue;
    x.push_back(point.x);
    mean.push_back(static_cast<float>(point.mean));
    low.push_back(static_cast<float>(point.low));
    high.push_back(static_cast<float>(point.high));
    count.push_back(static_cast<float>(point.count));
  }
  splice(x_, begin, end, x);
  splice(mean_, begin, end, mean);
  splice(low_, begin, end, low);
  splice(high_, begin, end, high);
  splice(count_, begin, end, count);
  rebuild(begin);
}

void Series::clear() { *this = Series(axis_); }

std::optional<double> Series::thin(std::size_t most) {
  most = std::max<std::size_t>(most, 16);
  std::optional<double> thinned;
  while (size() > most) {
    const std::size_t half = size() / 2 / kFan * kFan;
    std::vector<SeriesPoint> merged;
    for (std::size_t begin = 0; begin < half; begin += kFan) {
      const Sum all = sum(begin, begin + kFan);
      double x = 0;
      for (std::size_t i = begin; i < begin + kFan; ++i) x += x_[i] / kFan;
      x = std::clamp(x, x_[begin], x_[begin + kFan - 1]);
      merged.push_back(
          {.x = x, .mean = all.weighted / all.count, .low = all.low, .high = all.high, .count = all.count});
    }
    const double last = x_[half - 1];
    thinned = std::max(thinned.value_or(last), last);
    replace(x_.front(), last, merged);
  }
  return thinned;
}

// ---- views

// In a level's own indices.
void Series::add_entries(Sum& sum, std::size_t level, std::size_t begin, std::size_t end) const {
  const Level* source = below(level);
  for (std::size_t i = begin; i < end; ++i) {
    source != nullptr ? sum.add(source->mean[i], source->low[i], source->high[i], source->count[i])
                      : sum.add(mean_[i], low_[i], high_[i], count_[i]);
  }
}

// At most 14 entries of each level.
Series::Sum Series::sum(std::size_t begin, std::size_t end) const {
  Sum sum;
  for (std::size_t level = 0; begin < end; ++level) {
    const std::size_t up_begin = (begin + kFan - 1) / kFan, up_end = end / kFan;
    if (up_begin >= up_end || level == levels_.size()) {
      add_entries(sum, level, begin, end);
      break;
    }
    add_entries(sum, level, begin, up_begin * kFan);
    add_entries(sum, level, up_end * kFan, end);
    begin = up_begin;
    end = up_end;
  }
  return sum;
}

SeriesColumn Series::column(std::size_t begin, std::size_t end) const {
  const Sum all = sum(begin, end);
  return {.x = x_[begin],
          .mean = static_cast<float>(all.weighted / all.count),
          .low = all.low,
          .high = all.high,
          .gap_before = false};
}

double Series::usual_step(double from, double to) const {
  std::size_t begin = index_from(from), end = static_cast<std::size_t>(std::ranges::upper_bound(x_, to) - x_.begin());
  if (end < begin + 2) {
    begin = 0;
    end = size();
  }
  if (end < begin + 2) return 0;
  const std::size_t pairs = end - begin - 1, samples = std::min(pairs, kSampledSteps);
  std::vector<double> steps(samples);
  for (std::size_t i = 0; i < samples; ++i) {
    const std::size_t left = begin + i * pairs / samples;
    steps[i] = (x_[left + 1] - x_[left]) / ((static_cast<double>(count_[left]) + count_[left + 1]) / 2);
  }
  const auto middle = steps.begin() + static_cast<std::ptrdiff_t>(samples / 2);
  std::ranges::nth_element(steps, middle);
  return *middle;
}

// Between the point at `left` and the next one.
bool Series::is_gap(std::size_t left, double gap, double step) const {
  const double distance = x_[left + 1] - x_[left];
  if (gap > 0) return distance > gap;
  const double width = (static_cast<double>(count_[left]) + count_[left + 1]) / 2;
  return step > 0 && distance > step * (kGapSteps + kGapWidths * width);
}

// The first point at x or after it, of [first, end): near `first`, so that the search stays in the processor's cache.
std::size_t Series::border(std::size_t first, std::size_t end, double x) const {
  std::size_t step = 1;
  while (first + step < end && x_[first + step] < x) {
    first += step;
    step *= 2;
  }
  const auto at = x_.begin();
  const auto limit = at + static_cast<std::ptrdiff_t>(std::min(first + step + 1, end));
  return static_cast<std::size_t>(std::lower_bound(at + static_cast<std::ptrdiff_t>(first), limit, x) - at);
}

std::vector<SeriesColumn> Series::view(double from, double to, std::size_t columns, double gap) const {
  std::vector<SeriesColumn> seen;
  if (empty() || columns == 0 || !(from <= to)) return seen;
  const double step = gap > 0 ? 0 : usual_step(from, to);
  const std::size_t begin = index_from(from);
  const auto end = static_cast<std::size_t>(std::ranges::upper_bound(x_, to) - x_.begin());
  seen.reserve(std::min(columns, end - begin) + 2);
  const auto add = [&](std::size_t first, std::size_t past) {
    seen.push_back(column(first, past));
    seen.back().gap_before = seen.size() > 1 && is_gap(first - 1, gap, step);
  };
  if (begin > 0) add(begin - 1, begin);
  if (end - begin <= columns) {
    for (std::size_t i = begin; i < end; ++i) add(i, i + 1);
  } else {
    const double width = (to - from) / static_cast<double>(columns);
    std::size_t first = begin;
    for (std::size_t i = 0; i < columns && first < end; ++i) {
      const bool last = i + 1 == columns;
      const std::size_t past = last ? end : border(first, end, from + width * static_cast<double>(i + 1));
      if (past > first) add(first, past);
      first = past;
    }
  }
  if (end < size()) add(end, end + 1);
  return seen;
}

std::size_t Series::nearest(double x) const {
  const std::size_t after = index_from(x);
  if (after == 0) return 0;
  if (after == size()) return size() - 1;
  return x_[after] - x < x - x_[after - 1] ? after : after - 1;
}

SeriesPoint Series::at(std::size_t index) const {
  return {.x = x_[index], .mean = mean_[index], .low = low_[index], .high = high_[index], .count = count_[index]};
}

std::vector<SeriesPoint> smoothed(std::span<const SeriesPoint> points, double smoothing, double step) {
  std::vector<SeriesPoint> result(points.begin(), points.end());
  smoothing = std::clamp(smoothing, 0.0, 0.999);
  if (smoothing == 0) return result;
  double average = 0, weight = 0;
  for (std::size_t i = 0; i < result.size(); ++i) {
    const double steps = i == 0 || !(step > 0) ? 1 : (result[i].x - result[i - 1].x) / step;
    const double kept = std::pow(smoothing, std::max(steps, 0.0));
    average = kept * average + (1 - kept) * result[i].mean;
    weight = kept * weight + (1 - kept);
    // Two points at one place: the second adds nothing.
    const double value = weight > 0 ? average / weight : result[i].mean;
    result[i].mean = result[i].low = result[i].high = value;
  }
  return result;
}

}  // namespace atl
