#include "app/gui/plot/history_plot.h"

#include <algorithm>

#include "app/gui/plot/history_lines.h"

namespace atl {

std::optional<std::pair<double, double>> extent_of(HistoryModel& history, std::span<const std::string> metrics,
                                                   SeriesAxis axis) {
  std::optional<std::pair<double, double>> extent;
  for (const std::string& metric : metrics) {
    const Series& series = history.series(metric, axis);
    if (series.empty()) continue;
    if (!extent) extent = {series.first(), series.last()};
    extent = {std::min(extent->first, series.first()), std::max(extent->second, series.last())};
  }
  return extent;
}

PastLines add_past(HistoryPlot& plot) {
  const int mean = static_cast<int>(plot.histories().size());
  plot.addHistory({.metric = kPastLossSeries,
                   .name = HistoryPlot::tr("All islands"),
                   .colour = kAllIslandsColour,
                   .text = loss_values()});
  plot.addHistory({.metric = kPastValidationSeries,
                   .name = HistoryPlot::tr("Validation by others"),
                   .colour = kValidationColour,
                   .points = true,
                   .text = loss_values()});
  return {mean, mean + 1};
}

HistoryPlot::HistoryPlot(HistoryModel& history, const QString& name, QWidget* parent)
    : Plot(name, parent), history_(history) {
  setAxis(SeriesAxis::kStep);
  connect(&history_, &HistoryModel::changed, this, &HistoryPlot::changed);
  connect(&history_, &HistoryModel::namesChanged, this, &HistoryPlot::refreshExtent);
  connect(this, &Plot::rangeChanged, this, &HistoryPlot::want);
}

void HistoryPlot::addHistory(const HistoryLine& line) {
  const std::string metric = line.metric;
  using Style = CanvasLine::Style;
  CanvasLine look{.style = line.points     ? Style::kPoints
                           : line.smoothed ? Style::kFaintLine
                                           : Style::kLine,
                  .colour = line.colour,
                  .band = !line.points};
  raw_.push_back(addLine({line.name, look,
                          [this, metric, dots = line.points](double from, double to, std::size_t columns) {
                            const Series& series = history_.series(metric, axis_);
                            return dots ? dotted_columns(series, from, to, columns) : series.view(from, to, columns);
                          },
                          line.text}));
  int smooth = -1;
  if (line.smoothed) {
    smooth = addLine({tr("%1, smoothed").arg(line.name),
                      {.style = Style::kLine, .colour = line.colour},
                      [this, metric](double from, double to, std::size_t columns) {
                        return smoothed_columns(history_.series(metric, axis_), from, to, columns, smoothing_);
                      },
                      line.text});
  }
  smooth_.push_back(smooth);
  histories_.push_back(line);
  refreshExtent();
}

void HistoryPlot::setHistoryShown(int index, bool shown) {
  const auto at = static_cast<std::size_t>(index);
  setLineShown(raw_[at], shown);
  if (smooth_[at] >= 0) setLineShown(smooth_[at], shown);
}

void HistoryPlot::setAxis(SeriesAxis axis) {
  axis_ = axis;
  switch (axis) {
    case SeriesAxis::kTime: setXTime(); break;
    case SeriesAxis::kStep: setXText(count_values(), tr("Step")); break;
    case SeriesAxis::kTokens: setXText(count_values(), tr("Tokens")); break;
  }
  clearExtent();
  refreshExtent();
}

void HistoryPlot::setSmoothing(double smoothing) {
  if (smoothing_ == smoothing) return;
  smoothing_ = smoothing;
  refresh();
}

void HistoryPlot::markRounds(const RoundsModel* rounds) {
  rounds_ = rounds;
  if (rounds == nullptr) return setMarks(nullptr);
  setMarks([this](double from, double to) {
    return round_marks(history_.series("sync_seconds", axis_), rounds_->rows(), from, to);
  });
}

void HistoryPlot::setWindow(double width) {
  window_ = width;
  clearExtent();
  refreshExtent();
}

void HistoryPlot::changed(const QString& metric) {
  const bool own = std::any_of(histories_.begin(), histories_.end(), [&metric](const HistoryLine& line) {
    return metric == QLatin1String(line.metric.c_str());
  });
  if (own) refreshExtent();
  if (own || (rounds_ != nullptr && metric == "sync_seconds")) refresh();
}

void HistoryPlot::follow(HistoryPlot& leader) {
  leader_ = &leader;
  leader.followers_.push_back(this);
  connect(&leader, &Plot::rangeChanged, this, &Plot::setRange);
  connect(this, &Plot::rangeChanged, &leader, &Plot::setRange);
  refreshExtent();
}

std::optional<std::pair<double, double>> HistoryPlot::extentOf() const {
  if (leader_ != nullptr) return leader_->extentOf();
  auto extent = extent_of(history_, metrics(), axis_);
  if (extent && window_ > 0) extent->first = std::max(extent->first, extent->second - window_);
  return extent;
}

void HistoryPlot::refreshExtent() {
  if (const auto extent = extentOf()) setExtent(extent->first, extent->second);
  refreshMessage();
  for (HistoryPlot* follower : followers_) follower->refreshExtent();
}

void HistoryPlot::refreshMessage() { setMessage(messageOf(history_, metrics(), axis_)); }

QString HistoryPlot::messageOf(HistoryModel& history, std::span<const std::string> metrics, SeriesAxis axis) {
  bool loading = false;
  for (const std::string& metric : metrics) {
    if (!history.series(metric, axis).empty()) return {};
    loading = loading || history.loading(metric, axis);
  }
  if (!history.problem().empty()) return QString::fromStdString(history.problem());
  return loading ? tr("Loading\u2026") : tr("Nothing yet: values come with the first steps.");
}

std::vector<std::string> HistoryPlot::metrics() const {
  std::vector<std::string> metrics;
  for (const HistoryLine& line : histories_) metrics.push_back(line.metric);
  return metrics;
}

// Ask for what the screen shows: smoothed lines also for what comes before it.
void HistoryPlot::want(double from, double to) {
  for (const HistoryLine& line : histories_) {
    history_.want(line.metric, axis_, line.smoothed && smoothing_ > 0 ? from - (to - from) : from, to, width());
  }
  if (rounds_ != nullptr) history_.want("sync_seconds", axis_, from, to, width());
}

}  // namespace atl
