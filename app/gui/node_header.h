// The line above every page of a node: its state as icon and word, run and round, how old that is, and what its owner
// may wish. Beneath it, when there is something to say, what happened and what to do. Owned by a NodeView; GUI thread.
#pragma once

#include <QTimer>
#include <QWidget>

#include "app/gui/island_text.h"
#include "app/gui/wish_dialog.h"

class QBoxLayout;
class QLabel;
class QMenu;
class QProgressBar;
class QPushButton;
class QToolButton;

namespace atl {

class Node;
class Notice;

class NodeHeader : public QWidget {
  Q_OBJECT

 public:
  explicit NodeHeader(Node& node, QWidget* parent = nullptr);

  // What else can be done with this node; the header shows it.
  QMenu* menu() const { return menu_; }
  // The page beneath says how far the round is: not twice.
  void setPageShowsRound(bool shows);
  // What is beneath says what happened and what to do: here is only said what went wrong with that.
  void setPageShowsAdvice(bool shows);
  void startAgent();

 Q_SIGNALS:
  void logsWanted();
  void joinWanted();  // with an invite

 protected:
  void changeEvent(QEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;

 private:
  QWidget* makeLine();
  QBoxLayout* makeButtons();
  QWidget* makeStep();
  void makeNotice();
  void makeMenu();
  void refresh();
  void refreshButtons();
  void refreshAdvice();
  void fitLine();
  void wish(WishDialog::Wish wish);
  void resume();
  void act();

  Node& node_;
  QBoxLayout* line_;
  QLabel* icon_;
  QLabel* state_;
  QLabel* run_;
  QWidget* step_holder_;
  QLabel* step_text_;
  QProgressBar* step_;
  bool page_shows_round_ = false, page_shows_advice_ = false;
  QLabel* age_;
  QPushButton* pause_;
  QPushButton* resume_;
  QPushButton* finish_;
  QToolButton* more_;
  QMenu* menu_;
  QAction* stop_;
  QAction* leave_;
  Notice* notice_;
  QPushButton* act_;
  text::Advice::Action action_ = text::Advice::Action::kNone;
  QString trouble_;  // of the last thing that was asked here; empty when it went well
  QTimer clock_;
};

}  // namespace atl
