// The one place that knows the plotting library (QCustomPlot): draws lines, bands, points and bars that were already
// cut down to what pixels show, on two axes. It has no will of its own; Plot and BarPlot tell it what to show. Owned by
// them; GUI thread.
#pragma once

#include <memory>
#include <span>

#include <QPixmap>
#include <QWidget>

#include "app/core/series.h"
#include "app/gui/plot/value_text.h"

namespace atl {

struct CanvasLine {
  enum class Style { kLine, kFaintLine, kPoints, kBars };
  Style style = Style::kLine;
  int colour = 0;        // of Colours::series
  bool band = false;     // between the least and the greatest value of a column
  double bar_width = 1;  // on the x axis
  bool stacked = false;  // on the bars that were added before
};

class PlotCanvas : public QWidget {
  Q_OBJECT

 public:
  explicit PlotCanvas(QWidget* parent = nullptr);
  ~PlotCanvas() override;

  int addLine(const CanvasLine& line);  // its index
  void setBarWidth(int line, double width);
  void setLineShown(int line, bool shown);
  void setXRange(double from, double to);
  void setYRange(double from, double to);
  void setData(int line, std::span<const SeriesColumn> columns);  // of the x range that was set
  void setMarks(std::span<const double> x);                       // thin lines across, behind everything
  void setLogarithmic(bool on);                                   // of y
  void setXText(ValueText text);
  void setXTime();  // x is seconds since 1970
  void setYText(ValueText text);
  void setXCaption(const QString& caption);
  void setGreyed(bool greyed);  // what is shown is no longer true

  void draw();  // with the next turn of the event loop

  // Of the widget's pixels.
  QRectF area() const;  // within the axes
  double xAt(double pixel) const;
  QPointF pixelOf(double x, double y) const;
  QPixmap picture(double scale) const;  // as it was drawn last

 protected:
  void resizeEvent(QResizeEvent* event) override;
  void changeEvent(QEvent* event) override;
  void showEvent(QShowEvent* event) override;

 private:
  struct Chart;
  void colourAll();

  std::unique_ptr<Chart> chart_;
};

}  // namespace atl
