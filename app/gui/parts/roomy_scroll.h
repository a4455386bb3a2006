// Holds a page that may want more room than its window has: then it is scrolled, both ways, and nothing on it is
// squeezed or out of reach. A page that has room does not notice. GUI thread.
#pragma once

#include <QScrollArea>

namespace atl {

class RoomyScroll : public QScrollArea {
  Q_OBJECT

 public:
  explicit RoomyScroll(QWidget* content, QWidget* parent = nullptr);

  QSize minimumSizeHint() const override;
  QSize sizeHint() const override;

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;

 private:
  void giveHeight();
};

}  // namespace atl
