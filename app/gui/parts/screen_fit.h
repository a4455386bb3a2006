// A window's size and place on its screen: as large as wanted where there is room, never larger than the screen, never
// beyond its edge; again when the screen changes beneath it or it wants another size. Child of the window; GUI thread.
#pragma once

#include <QObject>
#include <QRect>

class QWidget;

namespace atl {

// The same frame, made smaller and moved so that it lies within the room that there is.
QRect frame_within(const QRect& room, QRect frame);

class ScreenFit : public QObject {
  Q_OBJECT

 public:
  // Resizes it at once; once it is shown, its frame counts, too.
  ScreenFit(QWidget& window, QSize wanted);
  // A window of Qt's, which chooses its size itself.
  explicit ScreenFit(QWidget& window);

  // It shows more than before, or less.
  void resize(QSize wanted);
  // Soon, once its layout has given it the size that it must have.
  void fitSoon();

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void fit();

  QWidget& window_;
  bool watches_screen_ = false;
};

}  // namespace atl
