// At the wizard's left: its steps, those that are done, and the one that is shown. GUI thread.
#pragma once

#include <QStringList>
#include <QWidget>

namespace atl {

class WizardSteps : public QWidget {
  Q_OBJECT

 public:
  explicit WizardSteps(QStringList names, QWidget* parent = nullptr);

  void setCurrent(int step);  // from 0
  void setAllDone(bool done);
  QSize sizeHint() const override;
  QSize minimumSizeHint() const override { return sizeHint(); }

 protected:
  void paintEvent(QPaintEvent* event) override;

 private:
  int rowHeight() const;

  const QStringList names_;
  int current_ = 0;
  bool all_done_ = false;
};

}  // namespace atl
