#include "app/gui/plot/bar_plot.h"

#include <algorithm>
#include <cmath>

namespace atl {
namespace {

double readable_width(double least) {
  const double power = std::pow(10, std::floor(std::log10(least)));
  for (const double factor : {1.0, 2.0, 2.5, 5.0}) {
    if (factor * power >= least * (1 - 1e-9)) return factor * power;
  }
  return 10 * power;
}

double quantile(const std::vector<double>& sorted, double share) {
  const double at = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (at - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

}  // namespace

BarPlot::BarPlot(const QString& name, const std::vector<BarKind>& kinds, const ValueText& text, QWidget* parent)
    : Plot(name, parent) {
  setAccessibleDescription(tr("Bars. Shift with the arrows reads values."));
  setYFromZero(true);
  setWheelNeedsFocus(true);
  setYText(text);
  for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
    const auto source = [this, kind](double from, double to, std::size_t) {
      std::vector<SeriesColumn> columns;
      for (std::size_t bar = 0; kind < values_.size() && bar < x_.size(); ++bar) {
        if (x_[bar] + width_ / 2 < from || x_[bar] - width_ / 2 > to) continue;
        const auto value = static_cast<float>(values_[kind][bar]);
        float under = 0;
        for (std::size_t below = 0; below < kind; ++below) under += static_cast<float>(values_[below][bar]);
        columns.push_back({.x = x_[bar], .mean = value, .low = under, .high = under + value});
      }
      return columns;
    };
    const CanvasLine look{
        .style = CanvasLine::Style::kBars, .colour = kinds[kind].colour, .bar_width = 1, .stacked = kind > 0};
    addLine({kinds[kind].name, look, source, text});
  }
}

void BarPlot::setBars(std::vector<double> x, double width, std::vector<std::vector<double>> values) {
  x_ = std::move(x);
  values_ = std::move(values);
  width_ = width;
  setBarWidth(0.86 * width);
  if (x_.empty()) return clearExtent();
  setExtent(x_.front() - width / 2, x_.back() + width / 2);
  refresh();
}

Distribution distribution_of(std::vector<double> values, int bars) {
  Distribution result;
  std::erase_if(values, [](double value) { return !std::isfinite(value) || value < 0; });
  if (values.empty()) return result;
  std::sort(values.begin(), values.end());
  result.median = quantile(values, 0.5);
  result.slow = quantile(values, 0.95);
  const double spread = values.back() - values.front();
  result.width = readable_width(spread > 0 ? spread / bars : std::max(values.back() / 10, 1e-3));
  const double begin = std::floor(values.front() / result.width) * result.width;
  const auto count = static_cast<std::size_t>(std::floor((values.back() - begin) / result.width)) + 1;
  result.counts.assign(count, 0);
  for (std::size_t bar = 0; bar < count; ++bar) {
    result.middles.push_back(begin + (static_cast<double>(bar) + 0.5) * result.width);
  }
  for (const double value : values) {
    const auto bar = static_cast<std::size_t>(std::floor((value - begin) / result.width));
    result.counts[std::min(bar, count - 1)] += 1;
  }
  return result;
}

}  // namespace atl
