// This machine's hub: whether it serves, where it is reached, who takes part; invites, removing islands, starting and
// stopping. GUI thread.
#pragma once

#include <functional>

#include <QWidget>

#include "app/core/hub_model.h"

class QLabel;
class QPushButton;
class QTableView;

namespace atl {

class EmptyState;
class HubIslands;
class LossSketch;
class Notice;
class RunFigures;
class TaskSketch;

class HubPage : public QWidget {
  Q_OBJECT

 public:
  explicit HubPage(HubModel& hub, QWidget* parent = nullptr);

 private:
  QWidget* makeHeader();
  QWidget* makeReached();
  QWidget* makeIslands();
  void makeTable();
  void fitTable();
  void refresh();
  void showState(const HubState& state);
  void showNotice();
  void invite();
  void askToRemove();
  void askToStop();
  void askToGoBack();
  void ask(const QString& question, const QString& more, const QString& yes, std::function<void()> go);

  HubModel& hub_;
  HubIslands* islands_;
  QLabel* title_;
  Notice* notice_;
  QPushButton* go_back_;
  QWidget* reached_row_;
  QLabel* reached_;
  RunFigures* figures_;
  EmptyState* nobody_;
  QWidget* somebody_;  // the islands, how their loss fell and what tasks came to
  QTableView* table_;
  LossSketch* sketch_;
  TaskSketch* tasks_;  // of a run that asks some
  QPushButton* invite_;
  QPushButton* serve_;
  QPushButton* remove_;
};

}  // namespace atl
