// The page "Overview": how training goes on this node, at a glance. Owned by a NodeView; GUI thread.
#pragma once

#include "app/gui/page.h"

class QHBoxLayout;
class QProgressBar;
class QLabel;
class QTableView;

namespace atl {

class AlertsList;
class Card;
class EmptyState;
class FactsList;
class HistoryPlot;
class StatTile;
struct NodeState;

class OverviewPage : public Page {
  Q_OBJECT

 public:
  explicit OverviewPage(Node& node, QWidget* parent = nullptr);

 protected:
  void refresh() override;
  void resizeEvent(QResizeEvent* event) override;

 private:
  QWidget* makeTiles();
  QWidget* makeRound();
  QWidget* makeLoss();
  QWidget* makeFacts();
  QWidget* makeRounds();
  void refreshTiles(const NodeState& state);
  void refreshRound(const NodeState& state);
  void refreshFacts(const NodeState& state);
  void refreshTrends();
  void fitLoss();

  StatTile* loss_;
  StatTile* speed_;
  StatTile* use_;
  StatTile* next_;
  Card* round_;
  QProgressBar* step_;
  QLabel* step_text_;
  QHBoxLayout* beneath_;  // the tiles and the round: the loss and the facts
  Card* loss_card_;
  HistoryPlot* plot_;
  FactsList* contribution_;
  FactsList* machine_;
  AlertsList* alerts_;
  QTableView* rounds_;
  QLabel* no_rounds_;
  qint64 trends_due_ = 0;  // milliseconds of the monotonic clock
};

}  // namespace atl
