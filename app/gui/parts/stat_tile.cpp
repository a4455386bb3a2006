#include "app/gui/parts/stat_tile.h"

#include <algorithm>
#include <cmath>

#include <QClipboard>
#include <QGuiApplication>
#include <QKeyEvent>
#include <QPainter>
#include <QPainterPath>

#include "app/gui/look/colours.h"
#include "app/gui/look/format.h"

namespace atl {
namespace {

constexpr int kPadding = 14;
constexpr int kTrendHeight = 26;

QFont scaled(QFont font, double factor) {
  font.setPointSizeF(font.pointSizeF() * factor);
  return font;
}

}  // namespace

StatTile::StatTile(const QString& caption, QWidget* parent) : QWidget(parent), caption_(caption) {
  setFocusPolicy(Qt::StrongFocus);
  setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
  setFigure(QString("\u2013"));
}

void StatTile::setFigure(const QString& value, const QString& unit, const QString& detail) {
  if (value == value_ && unit == unit_ && detail == detail_) return;
  value_ = value;
  unit_ = unit;
  detail_ = detail;
  setAccessibleName(spoken());
  setToolTip(text::tool_tip(detail));
  updateGeometry();
  update();
}

void StatTile::setTrend(std::vector<float> values) {
  if (values == trend_) return;
  trend_ = std::move(values);
  update();
}

void StatTile::setGreyed(bool greyed) {
  if (greyed_ == greyed) return;
  greyed_ = greyed;
  update();
}

QString StatTile::spoken() const {
  QString text = tr("%1: %2").arg(caption_, value_);
  if (!unit_.isEmpty()) text += " " + unit_;
  return detail_.isEmpty() ? text : text + ", " + detail_;
}

QFont StatTile::valueFont() const {
  QFont font = scaled(this->font(), 1.75);
  font.setWeight(QFont::DemiBold);
  return font;
}
QFont StatTile::smallFont() const { return scaled(font(), 0.9); }

QSize StatTile::sizeHint() const {
  const int height = QFontMetrics(smallFont()).height() * 2 + QFontMetrics(valueFont()).height() + 26;
  return {190, height};
}
// Nothing of it is cut; by steps, so that a figure that changes does not move its neighbours each time.
QSize StatTile::minimumSizeHint() const {
  constexpr int kStep = 16;
  const QFontMetrics small(smallFont());
  const int figure = QFontMetrics(valueFont()).horizontalAdvance(value_) + 5 + small.horizontalAdvance(unit_);
  const int wanted =
      std::max({figure, small.horizontalAdvance(caption_), small.horizontalAdvance(detail_)}) + 2 * kPadding;
  return {std::max(150, (wanted + kStep - 1) / kStep * kStep), sizeHint().height()};
}

void StatTile::keyPressEvent(QKeyEvent* event) {
  if (event->matches(QKeySequence::Copy)) return QGuiApplication::clipboard()->setText(spoken());
  QWidget::keyPressEvent(event);
}

void StatTile::paintEvent(QPaintEvent*) {
  const Colours& colours = colours_of(palette());
  QPainter painter(this);
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setPen(hasFocus() ? QPen(colours.accent, 2) : QPen(colours.border));
  painter.setBrush(colours.surface);
  const double line = hasFocus() ? 1 : 0.5;
  painter.drawRoundedRect(QRectF(rect()).adjusted(line, line, -line, -line), 8, 8);

  const QFontMetrics small(smallFont());
  const QFontMetrics large(valueFont());
  QRect row(kPadding, 10, width() - 2 * kPadding, small.height());
  painter.setFont(smallFont());
  painter.setPen(colours.muted);
  painter.drawText(row, Qt::AlignVCenter, small.elidedText(caption_, Qt::ElideRight, row.width()));
  row = QRect(kPadding, row.bottom() + 3, row.width(), large.height());
  painter.setFont(valueFont());
  painter.setPen(greyed_ ? colours.faint : colours.text);
  painter.drawText(row, Qt::AlignVCenter, large.elidedText(value_, Qt::ElideRight, row.width()));
  const int value_width = large.horizontalAdvance(value_);
  painter.setFont(smallFont());
  painter.setPen(colours.muted);
  const int baseline = row.top() + (row.height() - large.height()) / 2 + large.ascent();
  painter.drawText(row.left() + value_width + 5, baseline, unit_);
  const int used = value_width + 5 + small.horizontalAdvance(unit_);
  const int room = row.width() - used - 12;
  if (room > 36) {
    paintTrend(painter, QRectF(row.right() - std::min(room, 84) + 1, row.center().y() - kTrendHeight / 2.0,
                               std::min(room, 84), kTrendHeight));
  }
  row = QRect(kPadding, row.bottom() + 3, row.width(), small.height());
  painter.setPen(colours.muted);
  painter.drawText(row, Qt::AlignVCenter, small.elidedText(detail_, Qt::ElideRight, row.width()));
}

void StatTile::paintTrend(QPainter& painter, const QRectF& area) const {
  float low = INFINITY;
  float high = -INFINITY;
  for (const float value : trend_) {
    if (!std::isfinite(value)) continue;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  if (trend_.size() < 2 || !(high >= low)) return;
  QPainterPath path;
  bool down = false;
  for (std::size_t i = 0; i < trend_.size(); ++i) {
    if (!std::isfinite(trend_[i])) {
      down = false;
      continue;
    }
    const double x = area.left() + area.width() * static_cast<double>(i) / static_cast<double>(trend_.size() - 1);
    const double height = high > low ? double{trend_[i] - low} / double{high - low} : 0.5;
    const QPointF point(x, area.bottom() - 2 - height * (area.height() - 4));
    down ? path.lineTo(point) : path.moveTo(point);
    down = true;
  }
  const Colours& colours = colours_of(palette());
  painter.setBrush(Qt::NoBrush);
  painter.setPen(QPen(greyed_ ? colours.border : colours.series[0], 1.5));
  painter.drawPath(path);
}

}  // namespace atl
