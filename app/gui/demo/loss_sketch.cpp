#include "app/gui/demo/loss_sketch.h"

#include <algorithm>
#include <cmath>

#include <QLocale>
#include <QPainter>
#include <QPainterPath>

#include "app/gui/look/colours.h"

namespace atl {
namespace {

QString shown(double loss) { return QLocale().toString(loss, 'f', 2); }

constexpr int kTicks = 5;

// 1, 2 or 5 of a power of ten, `least` at least.
double readable_step(double least) {
  const double power = std::pow(10, std::floor(std::log10(std::max(least, 1e-9))));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= least * (1 - 1e-9)) return factor * power;
  }
  return 10 * power;
}

struct Scale {
  double first = 0, last = 1, low = 0, high = 1;
  QRectF area;

  QPointF at(double round, double loss) const {
    return {area.left() + area.width() * (round - first) / (last - first),
            area.bottom() - area.height() * (loss - low) / (high - low)};
  }
};

Scale scale_of(const std::map<unsigned, double>& mean, const std::map<unsigned, double>& validation, QRectF area) {
  Scale scale{.first = 1e9, .last = 0, .low = 1e9, .high = -1e9, .area = area};
  for (const auto* series : {&mean, &validation}) {
    for (const auto& [round, loss] : *series) {
      scale.first = std::min<double>(scale.first, round);
      scale.last = std::max<double>(scale.last, round);
      scale.low = std::min(scale.low, loss);
      scale.high = std::max(scale.high, loss);
    }
  }
  scale.last = std::max(scale.last, scale.first + 1);
  const double margin = std::max(0.02, 0.05 * (scale.high - scale.low));
  scale.low -= margin;
  scale.high += margin;
  return scale;
}

}  // namespace

LossSketch::LossSketch(Unit unit, QWidget* parent) : QWidget(parent), unit_(unit) {
  setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Expanding);
  setMinimumHeight(120);
  setAccessibleName(tr("Loss over rounds: none yet"));
}

QSize LossSketch::sizeHint() const { return {480, 200}; }

void LossSketch::setLosses(const std::map<unsigned, double>& mean, const std::map<unsigned, double>& validation) {
  const auto finite = [](const std::map<unsigned, double>& series) {
    std::map<unsigned, double> kept;
    for (const auto& [round, loss] : series) {
      if (std::isfinite(loss) && loss > 0) kept[round] = loss;
    }
    return kept;
  };
  mean_ = finite(mean);
  validation_ = finite(validation);
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
  painter.setRenderHint(QPainter::Antialiasing);
  const Colours& colours = colours_of(palette());
  painter.setPen(colours.border);
  painter.setBrush(colours.surface);
  painter.drawRoundedRect(QRectF(rect()).adjusted(0.5, 0.5, -0.5, -0.5), 8, 8);
  const QFontMetrics metrics(font());
  const int left = metrics.horizontalAdvance("00.00") + 16;
  const QRectF area = QRectF(rect()).adjusted(left, 22 + metrics.height(), -14, -14 - metrics.height());
  painter.setPen(colours.muted);
  painter.drawText(QRectF(14, 10, width() - 28.0, metrics.height()), Qt::AlignLeft,
                   unit_ == Unit::kByte ? tr("Loss, nats per byte") : tr("Loss, nats per token"));
  painter.drawText(QRectF(14, height() - 8.0 - metrics.height(), width() - 28.0, metrics.height()), Qt::AlignRight,
                   tr("Round"));
  if (mean_.empty() && validation_.empty()) {
    painter.drawText(area, Qt::AlignCenter, tr("The first point comes with the first round."));
    return;
  }
  const Scale scale = scale_of(mean_, validation_, area);
  const double step = readable_step((scale.high - scale.low) / kTicks);
  for (double loss = std::ceil(scale.low / step) * step; loss <= scale.high; loss += step) {
    const double y = scale.at(scale.first, loss).y();
    painter.setPen(colours.grid);
    painter.drawLine(QPointF(area.left(), y), QPointF(area.right(), y));
    painter.setPen(colours.muted);
    painter.drawText(QRectF(0, y - metrics.height() / 2.0, left - 6.0, metrics.height()), Qt::AlignRight, shown(loss));
  }
  const double rounds = std::max(1.0, readable_step((scale.last - scale.first) / (2 * kTicks)));
  for (double round = std::ceil(scale.first / rounds) * rounds; round <= scale.last; round += rounds) {
    const double x = scale.at(round, scale.low).x();
    if (x > width() - 14.0 - 2 * metrics.horizontalAdvance(tr("Round"))) break;  // the caption stands there
    painter.drawText(QRectF(x - 40, height() - 8.0 - metrics.height(), 80, metrics.height()), Qt::AlignHCenter,
                     QLocale().toString(round, 'f', 0));
  }
  painter.setBrush(Qt::NoBrush);
  QPainterPath line;
  for (const auto& [round, loss] : mean_) {
    const QPointF point = scale.at(round, loss);
    line.elementCount() == 0 ? line.moveTo(point) : line.lineTo(point);
  }
  painter.setPen(QPen(colours.series[0], 2));
  painter.drawPath(line);
  painter.setPen(Qt::NoPen);
  painter.setBrush(colours.series[1]);
  for (const auto& [round, loss] : validation_) painter.drawEllipse(scale.at(round, loss), 3.5, 3.5);
  painter.setPen(colours.series[1]);
  painter.drawText(QRectF(14, 10, width() - 28.0, metrics.height()), Qt::AlignRight,
                   QString::fromUtf8("\u25CF ") + tr("validation"));
}

}  // namespace atl
