// The page "Sync": the ring, the all-reduce that is under way or was last, how long they take, and the other islands.
// Owned by a NodeView; GUI thread.
#pragma once

#include <vector>

#include "app/gui/page.h"
#include "app/gui/plot/plot.h"

class QHBoxLayout;
class QLabel;
class QTableView;

namespace atl {

class BarPlot;
class Card;
class EmptyState;
class FactsList;
class Notice;
class PhaseBar;
class RingView;

class SyncPage : public Page {
  Q_OBJECT

 public:
  explicit SyncPage(Node& node, QWidget* parent = nullptr);

 protected:
  void refresh() override;

 private:
  QWidget* makeRing();
  QWidget* makePhases();
  QWidget* makeTimes();
  QHBoxLayout* makePlots();
  QWidget* makeIslands();
  void refreshRing();
  void refreshPhases();
  void refreshPlots();
  void refreshSlow();

  Card* ring_card_;
  RingView* ring_;
  QLabel* chunks_;
  std::vector<PlotMark> time_marks_;
  Card* phases_card_;
  PhaseBar* phases_;
  FactsList* facts_;
  Card* times_card_;
  BarPlot* times_;
  Card* use_card_;
  BarPlot* use_;
  BarPlot* islands_plot_;
  Notice* slow_;
  Card* islands_card_;
  QTableView* islands_;
};

}  // namespace atl
