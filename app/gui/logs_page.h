// The page "Logs": what agent and trainer of the node wrote, filtered and followed. Owned by the main window; GUI
// thread.
#pragma once

#include <QWidget>

class QCheckBox;
class QComboBox;
class QLabel;
class QLineEdit;
class QListView;
class QPushButton;

namespace atl {

class LogFilter;
class Node;
class Notice;

class LogsPage : public QWidget {
  Q_OBJECT

 public:
  explicit LogsPage(Node& node, QWidget* parent = nullptr);

 protected:
  void showEvent(QShowEvent* event) override;
  void hideEvent(QHideEvent* event) override;

 private:
  QWidget* makeFilters();
  void makeList();
  void follow();
  void copy();
  void refresh();
  void toTheEnd();
  void openDiagnostics();

  Node& node_;
  LogFilter* filter_;
  QLineEdit* search_;
  QComboBox* level_;
  QComboBox* source_;
  QCheckBox* follow_;
  QPushButton* copy_;
  QListView* list_;
  QLabel* count_;
  Notice* notice_;
  bool at_end_ = true;
};

}  // namespace atl
