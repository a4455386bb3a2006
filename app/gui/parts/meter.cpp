#include "app/gui/parts/meter.h"

#include <algorithm>

#include <QPainter>

#include "app/gui/look/fonts.h"

namespace atl {
namespace {

constexpr int kBarHeight = 6;

}  // namespace

Meter::Meter(const QString& caption, QWidget* parent) : QWidget(parent), caption_(caption) {
  setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
  setReading(-1, QString("\u2013"));
}

void Meter::setReading(double share, const QString& text, Tone tone) {
  share_ = share;
  text_ = text;
  tone_ = tone;
  setAccessibleName(tr("%1: %2").arg(caption_, text));
  update();
}

void Meter::setGreyed(bool greyed) {
  greyed_ = greyed;
  update();
}

QSize Meter::sizeHint() const { return {180, QFontMetrics(small_font(font())).height() + kBarHeight + 6}; }

void Meter::paintEvent(QPaintEvent*) {
  const Colours& colours = colours_of(palette());
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setFont(small_font(font()));
  const QFontMetrics metrics(painter.font());
  const QRect row(0, 0, width(), metrics.height());
  painter.setPen(greyed_ ? colours.faint : colours.text);
  painter.drawText(row, Qt::AlignRight | Qt::AlignVCenter, text_);
  painter.setPen(colours.muted);
  const int room = width() - metrics.horizontalAdvance(text_) - 8;
  painter.drawText(row, Qt::AlignVCenter, metrics.elidedText(caption_, Qt::ElideRight, room));
  QRectF bar(0, metrics.height() + 3, width(), kBarHeight);
  painter.setPen(Qt::NoPen);
  painter.setBrush(mixed(colours.surface, colours.text, 0.1));
  painter.drawRoundedRect(bar, kBarHeight / 2.0, kBarHeight / 2.0);
  if (share_ <= 0) return;
  bar.setWidth(std::max(double{kBarHeight}, bar.width() * std::min(share_, 1.0)));
  painter.setBrush(greyed_ ? colours.outline : colours.of(tone_));
  painter.drawRoundedRect(bar, kBarHeight / 2.0, kBarHeight / 2.0);
}

}  // namespace atl
