#include "app/gui/demo/loss_sketch.h"

#include <QLocale>

#include "app/gui/look/colours.h"

namespace atl {
namespace {

QString shown(double loss) { return QLocale().toString(loss, 'f', 2); }

}  // namespace

LossSketch::LossSketch(Unit unit, QWidget* parent) : QWidget(parent), unit_(unit) {
  setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Expanding);
  setMinimumHeight(120);
  setAccessibleName(tr("Loss over rounds: none yet"));
}

QSize LossSketch::sizeHint() const { return {480, 200}; }

void LossSketch::setLosses(const SketchSeries& mean, const SketchSeries& validation) {
  mean_ = finite_points(mean, 0);
  validation_ = finite_points(validation, 0);
  if (!mean_.empty()) {
    setAccessibleName(tr("Loss over rounds: from %1 in round %2 to %3 in round %4")
                          .arg(shown(mean_.begin()->second))
                          .arg(mean_.begin()->first)
                          .arg(shown(mean_.rbegin()->second))
                          .arg(mean_.rbegin()->first));
  }
  update();
}

void LossSketch::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  const Colours& colours = colours_of(palette());
  const QRectF area =
      paint_sketch_frame(painter, *this, unit_ == Unit::kByte ? tr("Loss, nats per byte") : tr("Loss, nats per token"));
  if (mean_.empty() && validation_.empty()) {
    painter.drawText(area, Qt::AlignCenter, tr("The first point comes with the first round."));
    return;
  }
  const SketchScale scale = sketch_scale({&mean_, &validation_}, area);
  paint_sketch_grid(painter, *this, scale, shown);
  paint_sketch_line(painter, scale, mean_, colours.series[0]);
  painter.setPen(Qt::NoPen);
  painter.setBrush(colours.series[1]);
  for (const auto& [round, loss] : validation_) painter.drawEllipse(scale.at(round, loss), 3.5, 3.5);
  painter.setPen(colours.series[1]);
  painter.drawText(QRectF(14, 10, width() - 28.0, QFontMetrics(font()).height()), Qt::AlignRight,
                   QString::fromUtf8("\u25CF ") + tr("validation"));
}

}  // namespace atl
