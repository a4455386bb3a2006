#include "app/gui/parts/screen_fit.h"

#include <algorithm>

#include <QEvent>
#include <QScreen>
#include <QTimer>
#include <QWidget>
#include <QWindow>

namespace atl {

QRect frame_within(const QRect& room, QRect frame) {
  frame.setSize(frame.size().boundedTo(room.size()));
  frame.moveLeft(std::clamp(frame.left(), room.left(), room.left() + room.width() - frame.width()));
  frame.moveTop(std::clamp(frame.top(), room.top(), room.top() + room.height() - frame.height()));
  return frame;
}

ScreenFit::ScreenFit(QWidget& window, QSize wanted) : ScreenFit(window) { resize(wanted); }

ScreenFit::ScreenFit(QWidget& window) : QObject(&window), window_(window) { window_.installEventFilter(this); }

void ScreenFit::resize(QSize wanted) {
  window_.resize(wanted.boundedTo(window_.screen()->availableGeometry().size()));
  fitSoon();
}

void ScreenFit::fitSoon() {
  if (window_.isVisible()) QTimer::singleShot(0, this, &ScreenFit::fit);
}

bool ScreenFit::eventFilter(QObject* watched, QEvent* event) {
  // After the window system has given it its frame and its place.
  if (watched == &window_ && event->type() == QEvent::Show) QTimer::singleShot(0, this, &ScreenFit::fit);
  return QObject::eventFilter(watched, event);
}

void ScreenFit::fit() {
  if (!window_.isVisible() || window_.isMaximized() || window_.isFullScreen()) return;
  if (!watches_screen_ && window_.windowHandle() != nullptr) {
    watches_screen_ = true;
    connect(window_.windowHandle(), &QWindow::screenChanged, this,
            [this] { QTimer::singleShot(0, this, &ScreenFit::fit); });
  }
  const QRect frame = window_.frameGeometry();
  const QRect wanted = frame_within(window_.screen()->availableGeometry(), frame);
  if (wanted.size() != frame.size()) window_.resize(window_.size() + wanted.size() - frame.size());
  if (wanted.topLeft() != frame.topLeft()) window_.move(wanted.topLeft());
}

}  // namespace atl
