// A line of text that gives way: what does not fit is cut with dots, and a tool tip shows all of it. GUI thread.
#pragma once

#include <QLabel>

namespace atl {

class ElidedLabel : public QLabel {
  Q_OBJECT

 public:
  explicit ElidedLabel(QWidget* parent = nullptr);

  QSize sizeHint() const override { return minimumSizeHint(); }  // it takes what its layout gives
  QSize minimumSizeHint() const override;

 protected:
  void paintEvent(QPaintEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;

 private:
  void refreshToolTip();

  QString shown_;
};

}  // namespace atl
