#include "app/gui/plot/plot_overlay.h"

#include <algorithm>
#include <cmath>

#include <QLocale>
#include <QPainter>

#include "app/gui/look/colours.h"
#include "app/gui/plot/plot.h"
#include "app/gui/plot/readout.h"

namespace atl {
namespace {

constexpr double kLabelApart = 46;  // pixels between two numbers of marks at least

// 1, 2, 5, 10, ...: of things that are `apart` pixels from each other.
std::uint32_t numbered_every(double apart, double wanted) {
  std::uint32_t every = 1;
  for (std::uint32_t power = 1; power <= 1'000'000; power *= 10) {
    for (const std::uint32_t factor : {1u, 2u, 5u}) {
      every = power * factor;
      if (apart * every >= wanted) return every;
    }
  }
  return every;
}

}  // namespace

PlotOverlay::PlotOverlay(Plot& plot) : QWidget(&plot), plot_(plot) {
  setAttribute(Qt::WA_TransparentForMouseEvents);
  setFocusPolicy(Qt::NoFocus);
}

void PlotOverlay::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  const Colours& colours = colours_of(palette());
  if (!plot_.message_.isEmpty()) {
    painter.setPen(colours.muted);
    painter.drawText(rect().adjusted(8, 0, -8, 0), Qt::AlignCenter | Qt::TextWordWrap, plot_.message_);
  } else {
    paintNumbers(painter);
    paintReadout(painter);
  }
  if (plot_.hasFocus()) {
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(QPen(colours.accent, 2));
    painter.setBrush(Qt::NoBrush);
    painter.drawRoundedRect(QRectF(rect()).adjusted(1, 1, -1, -1), 6, 6);
  }
}

// Every fifth, tenth, ... as there is room.
void PlotOverlay::paintNumbers(QPainter& painter) const {
  if (plot_.marks_.empty()) return;
  const QRectF area = plot_.canvas_->area();
  QFont small = font();
  small.setPointSizeF(small.pointSizeF() * 0.82);
  painter.setFont(small);
  painter.setPen(colours_of(palette()).muted);
  const double span = plot_.marks_.back().x - plot_.marks_.front().x;
  const double apart = area.width() * span / std::max(plot_.to_ - plot_.from_, 1e-12) /
                       static_cast<double>(std::max<std::size_t>(plot_.marks_.size() - 1, 1));
  const std::uint32_t every = numbered_every(apart, kLabelApart);
  for (const PlotMark& mark : plot_.marks_) {
    if (mark.text.isEmpty() && (!mark.number || *mark.number % every != 0)) continue;
    const QString number = mark.text.isEmpty() ? QLocale().toString(*mark.number) : mark.text;
    const double x = plot_.canvas_->pixelOf(mark.x, 0).x();
    const double width = painter.fontMetrics().horizontalAdvance(number);
    if (x < area.left() || x > area.right()) continue;
    if (!mark.text.isEmpty()) {  // over bars, which would hide a line behind them
      painter.setPen(QPen(colours_of(palette()).text, 1, Qt::DotLine));
      painter.drawLine(QPointF(std::round(x) + 0.5, area.top()), QPointF(std::round(x) + 0.5, area.bottom()));
      painter.setPen(colours_of(palette()).muted);
    }
    if (x + width + 6 > area.right()) continue;
    painter.drawText(QPointF(x + 4, area.top() + painter.fontMetrics().ascent() + 1), number);
  }
}

std::vector<PlotOverlay::ReadoutRow> PlotOverlay::readoutRows() const {
  const Colours& colours = colours_of(palette());
  std::vector<ReadoutRow> rows;
  for (const Plot::Line& line : plot_.lines_) {
    if (!line.shown) continue;
    const SeriesColumn* column = column_near(line.columns, *plot_.cursor_, plot_.to_ - plot_.from_);
    if (column == nullptr) continue;
    const auto colour = colours.series[static_cast<std::size_t>(line.line.look.colour) % colours.series.size()];
    rows.push_back({line.line.name, readout_value(*column, line.line.look.band, line.line.text), colour});
  }
  return rows;
}

void PlotOverlay::paintReadout(QPainter& painter) const {
  if (!plot_.cursor_) return;
  const std::vector<ReadoutRow> rows = readoutRows();
  const QRectF area = plot_.canvas_->area();
  const double x = std::round(plot_.canvas_->pixelOf(*plot_.cursor_, 0).x()) + 0.5;
  if (rows.empty() || x < area.left() || x > area.right()) return;
  painter.setPen(colours_of(palette()).outline);
  painter.drawLine(QPointF(x, area.top()), QPointF(x, area.bottom()));
  paintReadoutBox(painter, x, readout_x(*plot_.cursor_, plot_.x_time_, plot_.x_text_, plot_.x_caption_), rows);
}

void PlotOverlay::paintReadoutBox(QPainter& painter, double x, const QString& title,
                                  const std::vector<ReadoutRow>& rows) const {
  const Colours& colours = colours_of(palette());
  painter.setFont(font());
  const QFontMetricsF metrics(font());
  double names = 0;
  double values = 0;
  for (const ReadoutRow& row : rows) {
    names = std::max(names, metrics.horizontalAdvance(row.name));
    values = std::max(values, metrics.horizontalAdvance(row.value));
  }
  const double line = metrics.height() + 3;
  const double width = std::max(metrics.horizontalAdvance(title), 14 + names + 16 + values) + 20;
  const QRectF area = plot_.canvas_->area();
  QRectF box(x + 10, area.top() + 6, width, line * (static_cast<double>(rows.size()) + 1) + 13);
  if (box.right() > area.right()) box.moveRight(x - 10);
  if (box.left() < 2) box.moveLeft(2);
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setPen(colours.border);
  painter.setBrush(colours.raised);
  painter.drawRoundedRect(box.adjusted(0.5, 0.5, -0.5, -0.5), 6, 6);
  double y = box.top() + 6;
  painter.setPen(colours.muted);
  painter.drawText(QRectF(box.left() + 10, y, width - 20, line), Qt::AlignVCenter, title);
  for (const ReadoutRow& row : rows) {
    y += line;
    painter.setPen(Qt::NoPen);
    painter.setBrush(row.colour);
    painter.drawRoundedRect(QRectF(box.left() + 10, y + line / 2 - 4, 8, 8), 2, 2);
    painter.setPen(colours.text);
    painter.drawText(QRectF(box.left() + 24, y, names + 8, line), Qt::AlignVCenter, row.name);
    painter.drawText(QRectF(box.left() + 24, y, width - 34, line), Qt::AlignVCenter | Qt::AlignRight, row.value);
  }
}

}  // namespace atl
