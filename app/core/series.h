// One metric's history for plots: points with their gaps, and a pyramid of least, greatest and mean over them, so that
// a view of any width costs what its pixels cost, not what its points cost. Plain values, not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace atl {

enum class SeriesAxis { kTime, kStep, kTokens };  // seconds since 1970; inner steps; tokens

struct SeriesPoint {
  double x = 0;  // on the series' axis
  double mean = 0, low = 0, high = 0;
  double count = 1;  // written points in it
};

// One column of pixels.
struct SeriesColumn {
  double x = 0;  // of its first point
  float mean = 0, low = 0, high = 0;
  bool gap_before = false;  // draw no line from the column before
};

class Series {
 public:
  explicit Series(SeriesAxis axis) : axis_(axis) {}

  SeriesAxis axis() const { return axis_; }
  std::size_t size() const { return x_.size(); }
  bool empty() const { return x_.empty(); }
  double first() const { return x_.front(); }
  double last() const { return x_.back(); }
  std::size_t memory_bytes() const;

  // O(log n). A point before the last one, or that is not finite, is dropped.
  void append(const SeriesPoint& point);
  // In place of all that lies in [from, to]: what a finer query brought. Sorted by x.
  void replace(double from, double to, std::span<const SeriesPoint> points);
  void clear();
  // Makes room: of the older half each eight points become one, until there are no more than so many (at least 16). The
  // last x that was thinned; empty: none.
  std::optional<double> thin(std::size_t most);

  // What lies in [from, to] in at most `columns` columns, and the nearest point to each side of it. A step of more than
  // `gap` between neighbours is a gap; 0: many times the usual step.
  std::vector<SeriesColumn> view(double from, double to, std::size_t columns, double gap = 0) const;
  // Index of the point nearest to x.
  std::size_t nearest(double x) const;
  SeriesPoint at(std::size_t index) const;
  // The distance of neighbours that are points as they were written, as a few of those in [from, to] have it; 0 where
  // there is at most one.
  double usual_step(double from, double to) const;

 private:
  struct Level {  // each entry covers 8 of the level below
    std::vector<float> mean, low, high, count;
  };
  struct Sum {
    double weighted = 0, count = 0;
    float low = 0, high = 0;
    bool empty = true;
    void add(float mean, float low, float high, float count);
  };

  std::size_t index_from(double x) const;  // of the first point at x or after it
  const Level* below(std::size_t level) const { return level == 0 ? nullptr : &levels_[level - 1]; }
  void refresh(std::size_t level, std::size_t entry);
  void rebuild(std::size_t from);
  Sum sum(std::size_t begin, std::size_t end) const;
  void add_entries(Sum& sum, std::size_t level, std::size_t begin, std::size_t end) const;
  SeriesColumn column(std::size_t begin, std::size_t end) const;
  std::size_t border(std::size_t first, std::size_t end, double x) const;
  bool is_gap(std::size_t left, double gap, double step) const;

  SeriesAxis axis_;
  std::vector<double> x_;
  std::vector<float> mean_, low_, high_, count_;
  std::vector<Level> levels_;
};

// Exponential moving average whose weight falls with the distance on the x axis, not with the number of points, and
// which is unbiased from its first point on (Adam's correction). `smoothing` 0 (none) to 0.99, as TensorBoard's slider:
// the weight left after `step`, the usual distance between points.
std::vector<SeriesPoint> smoothed(std::span<const SeriesPoint> points, double smoothing, double step);

}  // namespace atl
