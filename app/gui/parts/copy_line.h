// A command to be typed or copied: what it is for, its words in a terminal's letters, and a button that copies them.
// Owned by its page; GUI thread.
#pragma once

#include <QWidget>

class QLabel;

namespace atl {

class CopyLine : public QWidget {
  Q_OBJECT

 public:
  // `name`: of the label that holds the command.
  CopyLine(const char* name, const QString& purpose, const QString& command, QWidget* parent = nullptr);

 protected:
  void paintEvent(QPaintEvent* event) override;

 private:
  QWidget* field_;
  QLabel* command_;
};

}  // namespace atl
