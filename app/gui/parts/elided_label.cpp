#include "app/gui/parts/elided_label.h"

#include <QPainter>

#include "app/gui/look/format.h"

namespace atl {

ElidedLabel::ElidedLabel(QWidget* parent) : QLabel(parent) {
  setTextFormat(Qt::PlainText);
  setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Preferred);
}

QSize ElidedLabel::minimumSizeHint() const { return {40, QLabel::minimumSizeHint().height()}; }

void ElidedLabel::resizeEvent(QResizeEvent* event) {
  QLabel::resizeEvent(event);
  refreshToolTip();
}

void ElidedLabel::refreshToolTip() {
  shown_ = text();
  const bool cut = fontMetrics().horizontalAdvance(text()) > contentsRect().width();
  setToolTip(cut ? text::tool_tip(text()) : QString());
}

void ElidedLabel::paintEvent(QPaintEvent*) {
  if (shown_ != text()) refreshToolTip();
  QPainter painter(this);
  painter.setPen(palette().color(foregroundRole()));
  painter.drawText(contentsRect(), static_cast<int>(alignment()) | Qt::TextSingleLine,
                   fontMetrics().elidedText(text(), Qt::ElideRight, contentsRect().width()));
}

}  // namespace atl
