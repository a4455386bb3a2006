// What a person does with a plot: wheel, pointer and keyboard.
#include <algorithm>
#include <cmath>

#include <QKeyEvent>
#include <QMouseEvent>
#include <QWheelEvent>

#include "app/gui/plot/plot.h"
#include "app/gui/plot/plot_overlay.h"

namespace atl {
namespace {

constexpr double kZoomStep = 0.8;
constexpr double kPanStep = 0.1;
constexpr double kNotch = 120;         // of a wheel
constexpr double kNearestZoom = 1e-9;  // of what there is

}  // namespace

// `around` stays where it is.
void Plot::zoom(double factor, double around) {
  if (!extent_) return;
  const double all = std::max(extent_->second - extent_->first, 1e-9);
  const double width = (to_ - from_) * factor;
  if (width >= all) return showAll();
  if (width < all * kNearestZoom) return;
  double from = around - (around - from_) * factor;
  from = std::clamp(from, extent_->first, extent_->second - width);
  setRange(from, from + width);
}

// Where one looks: at the readout, or at the middle.
double Plot::middle() const { return cursor_ && *cursor_ >= from_ && *cursor_ <= to_ ? *cursor_ : (from_ + to_) / 2; }

void Plot::zoomIn() { zoom(kZoomStep, middle()); }
void Plot::zoomOut() { zoom(1 / kZoomStep, middle()); }

void Plot::pan(double share) {
  if (!extent_ || shows_all_) return;
  const double width = to_ - from_;
  const double from =
      std::clamp(from_ + share * width, extent_->first, std::max(extent_->first, extent_->second - width));
  setRange(from, from + width);
}

void Plot::read(std::optional<double> x) {
  if (cursor_ == x) return;
  cursor_ = x;
  overlay_->update();
}

// From one column to the next, for those who have no pointer.
void Plot::readNext(int direction) {
  const Line* longest = nullptr;
  for (const Line& line : lines_) {
    if (line.shown && (longest == nullptr || line.columns.size() > longest->columns.size())) longest = &line;
  }
  if (longest == nullptr || longest->columns.empty()) return;
  const auto& columns = longest->columns;
  if (!cursor_) {
    read(direction > 0 ? columns.front().x : columns.back().x);
  } else {
    const auto after = std::lower_bound(columns.begin(), columns.end(), *cursor_,
                                        [](const SeriesColumn& column, double x) { return column.x < x; });
    const auto at = static_cast<std::ptrdiff_t>(after - columns.begin()) + direction;
    read(columns[static_cast<std::size_t>(std::clamp<std::ptrdiff_t>(at, 0, std::ssize(columns) - 1))].x);
  }
  setAccessibleDescription(readout());
}

void Plot::wheelEvent(QWheelEvent* event) {
  const bool wanted = !wheel_needs_focus_ || hasFocus() || (event->modifiers() & Qt::ControlModifier);
  if (!wanted || event->angleDelta().isNull()) return event->ignore();  // the page scrolls
  if (event->angleDelta().x() != 0 && std::abs(event->angleDelta().x()) > std::abs(event->angleDelta().y())) {
    pan(-event->angleDelta().x() / kNotch * kPanStep);
  } else {
    zoom(std::pow(kZoomStep, event->angleDelta().y() / kNotch), canvas_->xAt(event->position().x()));
  }
  event->accept();
}

void Plot::mousePressEvent(QMouseEvent* event) {
  if (event->button() != Qt::LeftButton) return event->ignore();
  drag_from_ = event->position();
}

void Plot::mouseMoveEvent(QMouseEvent* event) {
  const QRectF area = canvas_->area();
  if (drag_from_ && (event->buttons() & Qt::LeftButton)) {
    const double moved = event->position().x() - drag_from_->x();
    drag_from_ = event->position();
    if (area.width() > 0) pan(-moved / area.width());
    setCursor(shows_all_ ? Qt::ArrowCursor : Qt::ClosedHandCursor);
  }
  read(area.contains(event->position()) ? std::optional(canvas_->xAt(event->position().x())) : std::nullopt);
}

void Plot::mouseReleaseEvent(QMouseEvent* event) {
  if (event->button() != Qt::LeftButton) return event->ignore();
  drag_from_.reset();
  unsetCursor();
}

void Plot::mouseDoubleClickEvent(QMouseEvent*) { showAll(); }

void Plot::leaveEvent(QEvent* event) {
  QWidget::leaveEvent(event);
  read(std::nullopt);
}

void Plot::keyPressEvent(QKeyEvent* event) {
  const bool reading = event->modifiers() & Qt::ShiftModifier;
  switch (event->key()) {
    case Qt::Key_Left: return reading ? readNext(-1) : pan(-kPanStep);
    case Qt::Key_Right: return reading ? readNext(1) : pan(kPanStep);
    case Qt::Key_Plus:
    case Qt::Key_Equal: return zoomIn();
    case Qt::Key_Minus: return zoomOut();
    case Qt::Key_Home: return showAll();
    case Qt::Key_End: return extent_ ? setRange(extent_->second - (to_ - from_), extent_->second) : void();
    case Qt::Key_Escape:
      if (cursor_) return read(std::nullopt);
      break;
    default: break;
  }
  QWidget::keyPressEvent(event);
}

void Plot::focusInEvent(QFocusEvent* event) {
  QWidget::focusInEvent(event);
  overlay_->update();
}

void Plot::focusOutEvent(QFocusEvent* event) {
  QWidget::focusOutEvent(event);
  read(std::nullopt);
  overlay_->update();
}

}  // namespace atl
