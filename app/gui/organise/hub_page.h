// This machine's hub: whether it serves, where it is reached, who takes part; invites, removing islands, starting and
// stopping. GUI thread.
#pragma once

#include <functional>

#include <QWidget>

#include "app/core/hub_model.h"

class QFormLayout;
class QLabel;
class QPushButton;
class QTableView;

namespace atl {

class HubIslands;
class Notice;

class HubPage : public QWidget {
  Q_OBJECT

 public:
  explicit HubPage(HubModel& hub, QWidget* parent = nullptr);

 private:
  QWidget* makeHeader();
  QWidget* makeFacts();
  void makeTable();
  void refresh();
  void showFacts(const HubState& state);
  void invite();
  void askToRemove();
  void askToStop();
  void ask(const QString& question, const QString& more, const QString& yes, std::function<void()> go);

  HubModel& hub_;
  HubIslands* islands_;
  QLabel* title_;
  Notice* notice_;
  QWidget* facts_;
  QLabel *reached_, *round_, *loss_, *present_;
  QTableView* table_;
  QPushButton* invite_;
  QPushButton* serve_;
  QPushButton* remove_;
};

}  // namespace atl
