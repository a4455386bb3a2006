// Metrics of a node's history as lines of a plot: fetched as finely as the screen shows them, smoothed, with rounds
// marked. Owned by its page; GUI thread.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "app/core/history_model.h"
#include "app/core/rounds_model.h"
#include "app/gui/plot/plot.h"

namespace atl {

struct HistoryLine {
  std::string metric;  // as HistoryModel names it
  QString name;
  int colour = 0;
  bool points = false;    // few values: a dot each
  bool smoothed = false;  // follows the plot's smoothing, the raw values faint behind it
  ValueText text = compact_values();
};

// What there is of several metrics, from the first point of any to the last; empty: nothing.
std::optional<std::pair<double, double>> extent_of(HistoryModel& history, std::span<const std::string> metrics,
                                                   SeriesAxis axis);

class HistoryPlot;
// What the hub tells of the run since its first round: the mean loss of all islands, and the validations that this one
// did not make, as its own are drawn. Their indices among the histories.
inline constexpr int kAllIslandsColour = 2, kValidationColour = 1;
struct PastLines {
  int mean = 0, validation = 0;
};
PastLines add_past(HistoryPlot& plot);

class HistoryPlot : public Plot {
  Q_OBJECT

 public:
  HistoryPlot(HistoryModel& history, const QString& name, QWidget* parent = nullptr);

  void addHistory(const HistoryLine& line);
  const std::vector<HistoryLine>& histories() const { return histories_; }
  void setHistoryShown(int index, bool shown);
  void setAxis(SeriesAxis axis);
  SeriesAxis axis() const { return axis_; }
  void setSmoothing(double smoothing);  // 0 to 0.99
  // Where rounds ended, with their numbers; null: not.
  void markRounds(const RoundsModel* rounds);
  // Shows the same range as another one, whoever is moved.
  void follow(HistoryPlot& leader);
  // The newest part alone, in values of the axis; 0: all of it.
  void setWindow(double width);

  // Why a plot of these metrics shows nothing; empty where there is something to show.
  static QString messageOf(HistoryModel& history, std::span<const std::string> metrics, SeriesAxis axis);

 private:
  std::vector<std::string> metrics() const;
  void changed(const QString& metric);
  std::optional<std::pair<double, double>> extentOf() const;
  void refreshExtent();
  void refreshMessage();
  void want(double from, double to);

  HistoryModel& history_;
  SeriesAxis axis_ = SeriesAxis::kStep;
  double smoothing_ = 0;
  double window_ = 0;
  const RoundsModel* rounds_ = nullptr;
  std::vector<HistoryLine> histories_;
  std::vector<int> raw_, smooth_;  // indices of their lines; smooth -1: none
  HistoryPlot* leader_ = nullptr;
  std::vector<HistoryPlot*> followers_;  // siblings on a page: they live as long
};

}  // namespace atl
