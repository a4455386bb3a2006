#include "app/gui/plot/plot.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

#include <QEvent>
#include <QPainter>
#include <QTimer>

#include "app/gui/plot/plot_overlay.h"
#include "app/gui/plot/readout.h"

namespace atl {
namespace {

constexpr double kHeadroom = 0.06;  // of the y range, above and beneath
constexpr double kLeastGap = 6;     // pixels
constexpr double kLeastMark = 10;   // pixels between two marks

struct Extremes {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
  void take(double value) {
    if (!std::isfinite(value)) return;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  bool empty() const { return !(high >= low); }
};

}  // namespace

Plot::Plot(const QString& name, QWidget* parent)
    : QWidget(parent), canvas_(new PlotCanvas(this)), overlay_(new PlotOverlay(*this)) {
  setAccessibleName(name);
  setAccessibleDescription(
      tr("Plot. Plus and minus zoom, arrows pan, Home shows all, Shift with arrows reads values."));
  setFocusPolicy(Qt::StrongFocus);
  setMouseTracking(true);
}

int Plot::addLine(PlotLine line) {
  canvas_->addLine(line.look);
  lines_.push_back({.line = std::move(line)});
  refresh();
  return lineCount() - 1;
}

void Plot::setLineShown(int index, bool shown) {
  lines_[static_cast<std::size_t>(index)].shown = shown;
  canvas_->setLineShown(index, shown);
  refresh();
}

void Plot::setBarWidth(double width) {
  for (int i = 0; i < lineCount(); ++i) canvas_->setBarWidth(i, width);
}

void Plot::setMarks(MarkSource marks) {
  mark_source_ = std::move(marks);
  refresh();
}

void Plot::setXTime() {
  x_time_ = true;
  x_caption_.clear();
  canvas_->setXTime();
  canvas_->setXCaption({});
}

void Plot::setXText(ValueText text, const QString& caption) {
  x_time_ = false;
  x_text_ = text;
  x_caption_ = caption;
  canvas_->setXText(std::move(text));
  canvas_->setXCaption(caption);
}

void Plot::setYText(ValueText text) { canvas_->setYText(std::move(text)); }

void Plot::setLogarithmic(bool on) {
  if (logarithmic_ == on) return;
  logarithmic_ = on;
  canvas_->setLogarithmic(on);
  refresh();
}

void Plot::setExtent(double from, double to) {
  if (!(to >= from)) return;
  const auto before = std::exchange(extent_, std::pair(from, to));
  const double width = to_ - from_;
  if (shows_all_ || !before) {
    setRange(from, to);
    shows_all_ = true;
  } else if (to > before->second && to_ >= before->second - width * 1e-6) {
    setRange(to_ + to - before->second - width, to_ + to - before->second);  // its end was seen
  }
}

void Plot::clearExtent() {
  extent_.reset();
  shows_all_ = true;
  cursor_.reset();
  refresh();
}

void Plot::setRange(double from, double to) {
  if (!(to >= from) || !std::isfinite(from) || !std::isfinite(to)) return;
  if (to == from) to = from + 1;
  if (from == from_ && to == to_) return;
  from_ = from;
  to_ = to;
  shows_all_ = extent_ && from <= extent_->first && to >= extent_->second;
  refresh();
  Q_EMIT rangeChanged(from_, to_);
}

void Plot::showAll() {
  shows_all_ = true;
  if (extent_) setRange(extent_->first, extent_->second);
  shows_all_ = true;
}

void Plot::refresh() {
  if (load_due_ || !isVisible()) return;  // showEvent asks again
  load_due_ = true;
  QTimer::singleShot(0, this, [this] {
    load_due_ = false;
    load();
  });
}

void Plot::setMessage(const QString& message) {
  if (message_ == message) return;
  message_ = message;
  canvas_->setVisible(message.isEmpty());
  overlay_->update();
  refresh();
}

void Plot::setGreyed(bool greyed) { canvas_->setGreyed(greyed); }

std::size_t Plot::columnCount() const { return static_cast<std::size_t>(std::clamp(width(), 16, 4000)); }

void Plot::load() {
  canvas_->setXRange(from_, to_);
  for (std::size_t i = 0; i < lines_.size(); ++i) {
    Line& line = lines_[i];
    line.columns =
        line.shown && line.line.source ? line.line.source(from_, to_, columnCount()) : std::vector<SeriesColumn>();
    bridgeSmallGaps(line.columns);
    canvas_->setData(static_cast<int>(i), line.columns);
  }
  fitY();
  loadMarks();
  canvas_->draw();
  overlay_->update();
}

// A gap of a few pixels is no news: lines lead over it.
void Plot::bridgeSmallGaps(std::vector<SeriesColumn>& columns) const {
  const double least = kLeastGap * (to_ - from_) / static_cast<double>(columnCount());
  for (std::size_t i = 1; i < columns.size(); ++i) {
    columns[i].gap_before = columns[i].gap_before && columns[i].x - columns[i - 1].x > least;
  }
}

void Plot::loadMarks() {
  marks_ = mark_source_ ? mark_source_(from_, to_) : std::vector<PlotMark>();
  const double least = kLeastMark * (to_ - from_) / static_cast<double>(columnCount());
  std::vector<double> drawn;
  for (const PlotMark& mark : marks_) {
    if (drawn.empty() || mark.x - drawn.back() >= least) drawn.push_back(mark.x);
  }
  canvas_->setMarks(drawn);
}

// To what is on the screen. Beyond its edges lie columns that lines lead to: they count not. A band counts as far as it
// does not press the line that it is of to the edge.
void Plot::fitY() {
  Extremes line_seen;
  Extremes band_seen;
  for (const Line& line : lines_) {
    const bool bars = line.line.look.style == CanvasLine::Style::kBars;  // they say by `high` how high they are stacked
    for (const SeriesColumn& column : line.columns) {
      if (column.x < from_ || column.x > to_) continue;
      if (!logarithmic_ || column.mean > 0) line_seen.take(bars ? double{column.high} : double{column.mean});
      if (!line.line.look.band) continue;
      if (!logarithmic_ || column.low > 0) band_seen.take(double{column.low});
      band_seen.take(double{column.high});
    }
  }
  Extremes seen = line_seen;
  const double spread = line_seen.high - line_seen.low;
  if (!band_seen.empty()) {
    seen.low = spread > 0 ? std::max(band_seen.low, line_seen.low - spread) : band_seen.low;
    seen.high = spread > 0 ? std::min(band_seen.high, line_seen.high + spread) : band_seen.high;
  }
  showY(seen.low, seen.high);
}

void Plot::showY(double low, double high) {
  if (!(high >= low)) std::tie(low, high) = logarithmic_ ? std::pair(1.0, 10.0) : std::pair(0.0, 1.0);
  if (logarithmic_) {
    const double room = std::pow(std::max(high / low, 1.02), kHeadroom);
    return canvas_->setYRange(low / room, high * room);
  }
  if (from_zero_) low = std::min(low, 0.0);
  if (y_up_to_ > 0) high = std::max(high, y_up_to_);
  const double room = high > low ? kHeadroom * (high - low) : std::max(std::abs(high) * 0.05, 1e-9);
  canvas_->setYRange(from_zero_ && low == 0 ? 0 : low - room, high + room);
}

QString Plot::readout() const {
  if (!cursor_) return {};
  QStringList parts;
  for (const Line& line : lines_) {
    const SeriesColumn* column = line.shown ? column_near(line.columns, *cursor_, to_ - from_) : nullptr;
    if (column != nullptr) parts << line.line.name + " " + readout_value(*column, line.line.look.band, line.line.text);
  }
  if (parts.isEmpty()) return {};
  return readout_x(*cursor_, x_time_, x_text_, x_caption_) + ": " + parts.join(", ");
}

QImage Plot::picture(double scale) const {
  QPixmap lines = canvas_->picture(scale);
  QPixmap whole(lines.size());
  whole.fill(palette().color(QPalette::Base));
  lines.setDevicePixelRatio(1);
  QPainter painter(&whole);
  painter.drawPixmap(0, 0, lines);
  painter.scale(scale, scale);
  overlay_->paintNumbers(painter);
  painter.end();
  return whole.toImage();
}

void Plot::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  canvas_->setGeometry(rect());
  overlay_->setGeometry(rect());
  refresh();
}

void Plot::showEvent(QShowEvent* event) {
  QWidget::showEvent(event);
  refresh();
}

void Plot::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  if (event->type() == QEvent::PaletteChange) overlay_->update();
}

}  // namespace atl
