// Bars over numbers, stacked where there are several kinds: a distribution, or a figure a round. Nothing to be moved
// about in; the pointer and the arrows read values. Owned by its page; GUI thread.
#pragma once

#include "app/gui/plot/plot.h"

namespace atl {

struct BarKind {
  QString name;
  int colour = 0;
};

class BarPlot : public Plot {
  Q_OBJECT

 public:
  // `kinds`: from the bottom up.
  BarPlot(const QString& name, const std::vector<BarKind>& kinds, const ValueText& text, QWidget* parent = nullptr);

  // `x`: the middles of the bars, ascending; values[kind][bar].
  void setBars(std::vector<double> x, double width, std::vector<std::vector<double>> values);

 private:
  std::vector<double> x_;
  std::vector<std::vector<double>> values_;
  double width_ = 1;
};

// How values are distributed: at most `bars` of a width that people can read (1, 2, 2.5 or 5 of a power of ten).
struct Distribution {
  std::vector<double> middles;
  std::vector<double> counts;
  double width = 1;
  double median = 0, slow = 0;  // slow: 95 of 100 are faster
};
Distribution distribution_of(std::vector<double> values, int bars);

}  // namespace atl
