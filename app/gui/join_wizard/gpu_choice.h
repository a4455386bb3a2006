// Which of the node's GPUs the trainer may use: a tick for each that is known, else a line of text. GUI thread.
#pragma once

#include <vector>

#include <QString>
#include <QWidget>

#include "net/control/node_state.h"

class QCheckBox;
class QGridLayout;
class QLabel;
class QLineEdit;

namespace atl {

class GpuChoice : public QWidget {
  Q_OBJECT

 public:
  explicit GpuChoice(QWidget* parent = nullptr);

  // `none`: the node check found no GPU. What the person ticked stays.
  void setGpus(const std::vector<GpuSample>& gpus, bool none);
  void setValue(const QString& value);  // "all", "none", "0-3,6"
  QString value() const;
  // What is wrong with the text; empty when it can be used.
  QString problem() const;

 Q_SIGNALS:
  void edited();

 private:
  QGridLayout* grid_;
  std::vector<QCheckBox*> boxes_;
  QLabel* none_;
  QLineEdit* text_;
};

}  // namespace atl
