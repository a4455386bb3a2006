// A demo under way: its islands, its loss, and what the command says. GUI thread.
#pragma once

#include <QTimer>
#include <QWidget>

class QCheckBox;
class QLabel;
class QPlainTextEdit;
class QProgressBar;
class QPushButton;
class QTableWidget;

namespace atl {

class DemoRunner;
class LossSketch;

class DemoProgress : public QWidget {
  Q_OBJECT

 public:
  explicit DemoProgress(DemoRunner& runner, QWidget* parent = nullptr);

 private:
  void makeTable();
  void refresh();
  void showIslands();

  DemoRunner& runner_;
  QLabel* what_;
  QProgressBar* bar_;
  QTableWidget* islands_;
  LossSketch* loss_;
  QCheckBox* details_;
  QPlainTextEdit* output_;
  QPushButton* stop_;
  QTimer clock_;
};

}  // namespace atl
