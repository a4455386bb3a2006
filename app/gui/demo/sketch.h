// What sketches over rounds share, a few lines for a glance: their scale, frame and grid. GUI thread.
#pragma once

#include <functional>
#include <map>
#include <vector>

#include <QPainter>
#include <QWidget>

namespace atl {

using SketchSeries = std::map<unsigned, double>;  // by round

struct SketchScale {
  double first = 0, last = 1, low = 0, high = 1;
  QRectF area;

  QPointF at(double round, double value) const {
    return {area.left() + area.width() * (round - first) / (last - first),
            area.bottom() - area.height() * (value - low) / (high - low)};
  }
};

// Of at least one point.
SketchScale sketch_scale(const std::vector<const SketchSeries*>& series, QRectF area);
SketchSeries finite_points(const SketchSeries& series, double above);  // what can be drawn

// The frame of the widget with a caption; where lines go.
QRectF paint_sketch_frame(QPainter& painter, const QWidget& widget, const QString& caption);
void paint_sketch_grid(QPainter& painter, const QWidget& widget, const SketchScale& scale,
                       const std::function<QString(double)>& shown);
void paint_sketch_line(QPainter& painter, const SketchScale& scale, const SketchSeries& series, const QColor& colour);

}  // namespace atl
