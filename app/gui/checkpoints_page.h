// The page "Checkpoints": the states on this node's disk, to be verified and exported. Owned by a NodeView; GUI thread.
#pragma once

#include "app/gui/page.h"

class QProgressBar;
class QPushButton;
class QStackedWidget;
class QTableView;

namespace atl {

class Card;
struct CheckpointRow;
class EmptyState;
class FactsList;
class Notice;

class CheckpointsPage : public Page {
  Q_OBJECT

 public:
  explicit CheckpointsPage(Node& node, QWidget* parent = nullptr);

 protected:
  void refresh() override;

 private:
  QWidget* makeHeader();
  QWidget* makeChosen();
  const CheckpointRow* chosen() const;
  void showChosen();
  void exportModel();
  void copyHash();

  QPushButton* verify_;
  QPushButton* export_;
  QPushButton* copy_;
  QProgressBar* busy_;
  Notice* notice_;
  QStackedWidget* stack_;
  QTableView* table_;
  EmptyState* empty_;
  Card* chosen_card_;
  FactsList* chosen_;
};

}  // namespace atl
