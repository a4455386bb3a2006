// How one reading of all GPUs went in the last hour. Of a few GPUs a line each; of many their mean, a band from the
// least to the greatest, and besides the line of one that a person chose. Owned by its page; GUI thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "app/core/history_model.h"
#include "app/gui/parts/legend.h"
#include "app/gui/plot/plot.h"

namespace atl {

class GpuPlot : public Plot {
  Q_OBJECT

 public:
  // `field`: of gpu.sample. `gpus`: their indices, as nvidia-smi counts.
  GpuPlot(HistoryModel& history, const std::string& field, const QString& title, const ValueText& text,
          std::span<const std::uint32_t> gpus, QWidget* parent = nullptr);

  // More lines than these cover each other.
  static constexpr std::size_t kMostLines = 3;
  static constexpr int kMeanColour = 0, kChosenColour = 1;  // of Colours::series
  static bool spreads(std::size_t gpus) { return gpus > kMostLines; }
  // `chosen`: its place among them.
  static std::vector<LegendEntry> legend(std::span<const std::uint32_t> gpus, std::optional<std::size_t> chosen);

  void choose(std::optional<std::size_t> place);

 protected:
  QSize sizeHint() const override { return {420, 150}; }  // four share a page with the panels above them

 private:
  std::vector<SeriesColumn> lineOf(std::size_t place, double from, double to, std::size_t columns);
  std::vector<SeriesColumn> spread(double from, double to, std::size_t columns);
  void changed(const QString& metric);
  void refreshExtent();
  void refreshMessage();
  void want(double from, double to);

  HistoryModel& history_;
  std::vector<std::string> metrics_;  // one a GPU
  std::optional<std::size_t> chosen_;
  int chosen_line_ = -1;  // -1: each GPU has its own line
};

}  // namespace atl
