#include "app/gui/demo/sketch.h"

#include <algorithm>
#include <cmath>

#include <QCoreApplication>
#include <QLocale>
#include <QPainterPath>

#include "app/gui/look/colours.h"

namespace atl {
namespace {

constexpr int kTicks = 5;

QString round_caption() { return QCoreApplication::translate("atl::LossSketch", "Round"); }

// 1, 2 or 5 of a power of ten, `least` at least.
double readable_step(double least) {
  const double power = std::pow(10, std::floor(std::log10(std::max(least, 1e-9))));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= least * (1 - 1e-9)) return factor * power;
  }
  return 10 * power;
}

int left_of(const QFontMetrics& metrics) { return metrics.horizontalAdvance("00.00") + 16; }

}  // namespace

SketchScale sketch_scale(const std::vector<const SketchSeries*>& series, QRectF area) {
  SketchScale scale{.first = 1e9, .last = 0, .low = 1e9, .high = -1e9, .area = area};
  for (const auto* points : series) {
    for (const auto& [round, value] : *points) {
      scale.first = std::min<double>(scale.first, round);
      scale.last = std::max<double>(scale.last, round);
      scale.low = std::min(scale.low, value);
      scale.high = std::max(scale.high, value);
    }
  }
  scale.last = std::max(scale.last, scale.first + 1);
  const double margin = std::max(0.02, 0.05 * (scale.high - scale.low));
  scale.low -= margin;
  scale.high += margin;
  return scale;
}

SketchSeries finite_points(const SketchSeries& series, double above) {
  SketchSeries kept;
  for (const auto& [round, value] : series) {
    if (std::isfinite(value) && value > above) kept[round] = value;
  }
  return kept;
}

QRectF paint_sketch_frame(QPainter& painter, const QWidget& widget, const QString& caption) {
  painter.setRenderHint(QPainter::Antialiasing);
  const Colours& colours = colours_of(widget.palette());
  painter.setPen(colours.border);
  painter.setBrush(colours.surface);
  painter.drawRoundedRect(QRectF(widget.rect()).adjusted(0.5, 0.5, -0.5, -0.5), 8, 8);
  const QFontMetrics metrics(widget.font());
  painter.setPen(colours.muted);
  painter.drawText(QRectF(14, 10, widget.width() - 28.0, metrics.height()), Qt::AlignLeft, caption);
  painter.drawText(QRectF(14, widget.height() - 8.0 - metrics.height(), widget.width() - 28.0, metrics.height()),
                   Qt::AlignRight, round_caption());
  return QRectF(widget.rect()).adjusted(left_of(metrics), 22 + metrics.height(), -14, -14 - metrics.height());
}

void paint_sketch_grid(QPainter& painter, const QWidget& widget, const SketchScale& scale,
                       const std::function<QString(double)>& shown) {
  const Colours& colours = colours_of(widget.palette());
  const QFontMetrics metrics(widget.font());
  const double step = readable_step((scale.high - scale.low) / kTicks);
  for (double value = std::ceil(scale.low / step) * step; value <= scale.high; value += step) {
    const double y = scale.at(scale.first, value).y();
    painter.setPen(colours.grid);
    painter.drawLine(QPointF(scale.area.left(), y), QPointF(scale.area.right(), y));
    painter.setPen(colours.muted);
    painter.drawText(QRectF(0, y - metrics.height() / 2.0, left_of(metrics) - 6.0, metrics.height()), Qt::AlignRight,
                     shown(value));
  }
  const double rounds = std::max(1.0, readable_step((scale.last - scale.first) / (2 * kTicks)));
  for (double round = std::ceil(scale.first / rounds) * rounds; round <= scale.last; round += rounds) {
    const double x = scale.at(round, scale.low).x();
    if (x > widget.width() - 14.0 - 2 * metrics.horizontalAdvance(round_caption())) break;  // it stands there
    painter.drawText(QRectF(x - 40, widget.height() - 8.0 - metrics.height(), 80, metrics.height()), Qt::AlignHCenter,
                     QLocale().toString(round, 'f', 0));
  }
  painter.setBrush(Qt::NoBrush);
}

void paint_sketch_line(QPainter& painter, const SketchScale& scale, const SketchSeries& series, const QColor& colour) {
  QPainterPath line;
  for (const auto& [round, value] : series) {
    const QPointF point = scale.at(round, value);
    line.elementCount() == 0 ? line.moveTo(point) : line.lineTo(point);
  }
  painter.setPen(QPen(colour, 2));
  painter.drawPath(line);
}

}  // namespace atl
