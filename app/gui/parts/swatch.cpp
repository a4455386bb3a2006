#include "app/gui/parts/swatch.h"

#include <QPainter>

#include "app/gui/look/colours.h"

namespace atl {

Swatch::Swatch(int colour, QWidget* parent) : QWidget(parent), colour_(colour) { setFixedSize(12, 12); }

void Swatch::paintEvent(QPaintEvent*) {
  const Colours& colours = colours_of(palette());
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setPen(Qt::NoPen);
  painter.setBrush(colours.series[static_cast<std::size_t>(colour_) % colours.series.size()]);
  painter.drawRoundedRect(QRectF(rect()).adjusted(1, 1, -1, -1), 3, 3);
}

}  // namespace atl
