// What a demo came to: figures, and a sample of what its model writes. GUI thread.
#pragma once

#include <QWidget>

class QFormLayout;
class QLabel;
class QPlainTextEdit;
class QPushButton;

namespace atl {

class LossSketch;
class DemoRunner;

class DemoSummaryView : public QWidget {
  Q_OBJECT

 public:
  explicit DemoSummaryView(DemoRunner& runner, QWidget* parent = nullptr);

  void showOutcome();

 Q_SIGNALS:
  void againWanted();

 private:
  void add(const QString& caption, const QString& text);
  void addFigures();
  void openModel();

  DemoRunner& runner_;
  QLabel* title_;
  QPushButton* open_;
  QFormLayout* figures_;
  LossSketch* loss_;
  QPlainTextEdit* sample_;
};

}  // namespace atl
