// The page "Check": what this node can do, measured on demand; the rows of the last check stay. Owned by the main
// window; GUI thread.
#pragma once

#include <QTimer>
#include <QWidget>

class QLabel;
class QProgressBar;
class QPushButton;

namespace atl {

class CheckTable;
class CheckTopics;
class Node;
class Notice;

class CheckPage : public QWidget {
  Q_OBJECT

 public:
  explicit CheckPage(Node& node, QWidget* parent = nullptr);

 Q_SIGNALS:
  void startWanted();  // of this machine's agent, without which nothing is measured

 private:
  QWidget* makeHeader();
  void refresh();
  // The rows are of another run than the one that this machine is in now, or of before it was in any.
  bool isOfAnotherRun() const;
  QString lastCheck() const;

  Node& node_;
  QPushButton* quick_;
  QPushButton* full_;
  QPushButton* start_;
  QLabel* last_;
  QProgressBar* busy_;
  Notice* notice_;
  CheckTable* table_;
  CheckTopics* topics_;
  QTimer clock_;  // the last check's age
};

}  // namespace atl
