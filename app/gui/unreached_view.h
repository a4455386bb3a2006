// In the place of the pages, of a machine of which nothing is known yet: no agent runs there, or it cannot be reached.
// Says why, and what can be done. Owned by a NodeView; GUI thread.
#pragma once

#include <QWidget>

class QLabel;

namespace atl {

class Card;
class Node;
class WayButton;

class UnreachedView : public QWidget {
  Q_OBJECT

 public:
  explicit UnreachedView(Node& node, QWidget* parent = nullptr);

  void refresh();

 Q_SIGNALS:
  void startWanted();  // the agent of this machine
  void retryWanted();

 protected:
  void changeEvent(QEvent* event) override;

 private:
  QWidget* makeCommands(bool here);
  void showIcon();

  Node& node_;
  QLabel* icon_;
  QLabel* title_;
  QLabel* text_;
  WayButton* start_;
  WayButton* retry_;
  QWidget* commands_;
  Card* problem_card_;
  QLabel* problem_;
};

}  // namespace atl
