#include "app/gui/parts/roomy_scroll.h"

#include <algorithm>

#include <QEvent>
#include <QLayout>

namespace atl {
namespace {

constexpr QSize kLeast{160, 100};

}  // namespace

RoomyScroll::RoomyScroll(QWidget* content, QWidget* parent) : QScrollArea(parent) {
  setFrameShape(QFrame::NoFrame);
  setWidgetResizable(true);
  setFocusPolicy(Qt::NoFocus);  // what it holds takes the focus, and is scrolled to
  setWidget(content);
  content->setAutoFillBackground(false);  // the ground is the window's
  viewport()->setAutoFillBackground(false);
  setFocusProxy(content);
  content->installEventFilter(this);
  giveHeight();
}

QSize RoomyScroll::minimumSizeHint() const { return kLeast; }
QSize RoomyScroll::sizeHint() const { return widget()->sizeHint(); }

bool RoomyScroll::eventFilter(QObject* watched, QEvent* event) {
  const bool filtered = QScrollArea::eventFilter(watched, event);
  if (watched == widget() && event->type() == QEvent::LayoutRequest) giveHeight();
  return filtered;
}

void RoomyScroll::resizeEvent(QResizeEvent* event) {
  giveHeight();
  QScrollArea::resizeEvent(event);
}

// Lines that are broken want the more height the narrower they are, which a scroll area does not ask for by itself.
void RoomyScroll::giveHeight() {
  const QLayout* layout = widget()->layout();
  if (layout == nullptr || !layout->hasHeightForWidth()) return;
  const int width = std::max(maximumViewportSize().width(), layout->totalMinimumSize().width());
  const int height = layout->totalMinimumHeightForWidth(width);
  if (widget()->minimumHeight() != height) widget()->setMinimumHeight(height);
}

}  // namespace atl
