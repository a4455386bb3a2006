#include "app/gui/parts/gpu_plot.h"

#include <algorithm>

#include <fmt/format.h>

#include "app/gui/parts/gpu_spread.h"
#include "app/gui/plot/history_plot.h"

namespace atl {
namespace {

constexpr double kHour = 3600;

}  // namespace

GpuPlot::GpuPlot(HistoryModel& history, const std::string& field, const QString& title, const ValueText& text,
                 std::span<const std::uint32_t> gpus, QWidget* parent)
    : Plot(title, parent), history_(history) {
  for (const std::uint32_t gpu : gpus) metrics_.push_back(fmt::format("gpu.{}.{}", gpu, field));
  setXTime();
  setYText(text);
  if (spreads(gpus.size())) {
    addLine({tr("Mean"),
             {.colour = kMeanColour, .band = true},
             [this](double from, double to, std::size_t columns) { return spread(from, to, columns); },
             text});
    chosen_line_ = addLine({tr("Chosen GPU"),
                            {.colour = kChosenColour},
                            [this](double from, double to, std::size_t columns) {
                              return chosen_ ? lineOf(*chosen_, from, to, columns) : std::vector<SeriesColumn>();
                            },
                            text});
    setLineShown(chosen_line_, false);
  } else {
    for (std::size_t place = 0; place < gpus.size(); ++place) {
      addLine({tr("GPU %1").arg(gpus[place]),
               {.colour = static_cast<int>(place), .band = gpus.size() == 1},
               [this, place](double from, double to, std::size_t columns) { return lineOf(place, from, to, columns); },
               text});
    }
  }
  connect(&history_, &HistoryModel::changed, this, &GpuPlot::changed);
  connect(&history_, &HistoryModel::namesChanged, this, &GpuPlot::refreshMessage);
  connect(this, &Plot::rangeChanged, this, &GpuPlot::want);
  refreshExtent();
}

std::vector<LegendEntry> GpuPlot::legend(std::span<const std::uint32_t> gpus, std::optional<std::size_t> chosen) {
  std::vector<LegendEntry> entries;
  if (!spreads(gpus.size())) {
    for (std::size_t place = 0; gpus.size() > 1 && place < gpus.size(); ++place) {
      entries.push_back({tr("GPU %1").arg(gpus[place]), static_cast<int>(place)});
    }
    return entries;
  }
  entries = {{tr("Mean"), kMeanColour}, {tr("Least to greatest"), kMeanColour, /*band=*/true}};
  if (chosen) entries.push_back({tr("GPU %1").arg(gpus[*chosen]), kChosenColour});
  return entries;
}

void GpuPlot::choose(std::optional<std::size_t> place) {
  if (chosen_line_ < 0 || place == chosen_) return;
  chosen_ = place;
  setLineShown(chosen_line_, place.has_value());
}

std::vector<SeriesColumn> GpuPlot::lineOf(std::size_t place, double from, double to, std::size_t columns) {
  if (place >= metrics_.size()) return {};
  return history_.series(metrics_[place], SeriesAxis::kTime).view(from, to, columns);
}

std::vector<SeriesColumn> GpuPlot::spread(double from, double to, std::size_t columns) {
  std::vector<std::vector<SeriesColumn>> lines;
  for (std::size_t place = 0; place < metrics_.size(); ++place) lines.push_back(lineOf(place, from, to, columns));
  return spread_of(lines);
}

void GpuPlot::changed(const QString& metric) {
  const bool own =
      std::ranges::any_of(metrics_, [&metric](const std::string& one) { return metric == QLatin1String(one.c_str()); });
  if (!own) return;
  refreshExtent();
  refresh();
}

void GpuPlot::refreshExtent() {
  const auto extent = extent_of(history_, metrics_, SeriesAxis::kTime);
  if (extent) setExtent(std::max(extent->first, extent->second - kHour), extent->second);
  refreshMessage();
}

void GpuPlot::refreshMessage() { setMessage(HistoryPlot::messageOf(history_, metrics_, SeriesAxis::kTime)); }

void GpuPlot::want(double from, double to) {
  for (const std::string& metric : metrics_) history_.want(metric, SeriesAxis::kTime, from, to, width());
}

}  // namespace atl
