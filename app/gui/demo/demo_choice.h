// Before a demo: what it will do, how large, and whether what it needs is there. GUI thread.
#pragma once

#include <QWidget>

#include "app/gui/demo/demo_runner.h"

class QCheckBox;
class QLineEdit;
class QPushButton;
class QSpinBox;

namespace atl {

class Notice;

class DemoChoice : public QWidget {
  Q_OBJECT

 public:
  explicit DemoChoice(QWidget* parent = nullptr);

  DemoWish wish() const;
  void setPossible(bool here);               // false: the node is another machine
  void showProblem(const QString& problem);  // of the last demo; empty: none

 Q_SIGNALS:
  void startWanted();

 private:
  QWidget* makeOptions();
  void chooseText();
  void refresh();

  bool here_ = true;
  QString problem_;
  QSpinBox* islands_;
  QSpinBox* minutes_;
  QCheckBox* kill_;
  QLineEdit* text_;
  Notice* notice_;
  QPushButton* start_;
};

}  // namespace atl
