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

 private:
  QWidget* makeHeader();
  void refresh();

  Node& node_;
  QPushButton* quick_;
  QPushButton* full_;
  QLabel* last_;
  QProgressBar* busy_;
  Notice* notice_;
  CheckTable* table_;
  CheckTopics* topics_;
  QTimer clock_;  // the last check's age
};

}  // namespace atl
