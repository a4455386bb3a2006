// Lines over steps, tokens or time that a person moves about in: wheel and + - zoom, drag and arrows pan, Home shows
// all of it, the pointer (or Shift with the arrows) reads values. Lines are asked for what is on the screen alone, so a
// million points cost no more than a thousand. GUI thread.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include <QImage>
#include <QWidget>

#include "app/core/series.h"
#include "app/gui/plot/plot_canvas.h"

namespace atl {

class PlotOverlay;

// What a line shows between two values of x, in at most so many columns.
using LineSource = std::function<std::vector<SeriesColumn>(double from, double to, std::size_t columns)>;

struct PlotLine {
  QString name;
  CanvasLine look;
  LineSource source;
  ValueText text = compact_values();
};

struct PlotMark {  // a thin line across, with a number or a text on top
  double x = 0;
  std::optional<std::uint32_t> number = {};
  QString text = {};
};
using MarkSource = std::function<std::vector<PlotMark>(double from, double to)>;

class Plot : public QWidget {
  Q_OBJECT

 public:
  // `name`: what it shows, for those who cannot see it.
  explicit Plot(const QString& name, QWidget* parent = nullptr);

  int addLine(PlotLine line);
  int lineCount() const { return static_cast<int>(lines_.size()); }
  const PlotLine& line(int index) const { return lines_[static_cast<std::size_t>(index)].line; }
  void setLineShown(int index, bool shown);
  bool isLineShown(int index) const { return lines_[static_cast<std::size_t>(index)].shown; }
  void setMarks(MarkSource marks);

  void setXTime();
  void setXText(ValueText text, const QString& caption);
  void setYText(ValueText text);
  void setLogarithmic(bool on);
  void setYFromZero(bool on) { from_zero_ = on; }
  void setYUpTo(double least) { y_up_to_ = least; }              // at least
  void setWheelNeedsFocus(bool on) { wheel_needs_focus_ = on; }  // where the page itself scrolls

  // All that there is. A view that shows all of it, or its end, goes along as it grows.
  void setExtent(double from, double to);
  void clearExtent();
  void setRange(double from, double to);
  void showAll();
  void zoomIn();
  void zoomOut();
  double from() const { return from_; }
  double to() const { return to_; }
  bool showsAll() const { return shows_all_; }

  void refresh();  // the data are others: asks the lines again, once per turn of the event loop
  const QString& message() const { return message_; }
  void setMessage(const QString& message);  // in the place of lines: loading, nothing yet, what went wrong
  void setGreyed(bool greyed);
  QString readout() const;  // what is said of the place under the pointer; empty: nowhere
  QImage picture(double scale) const;

 Q_SIGNALS:
  void rangeChanged(double from, double to);

 protected:
  void resizeEvent(QResizeEvent* event) override;
  void changeEvent(QEvent* event) override;
  void showEvent(QShowEvent* event) override;
  void wheelEvent(QWheelEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mouseReleaseEvent(QMouseEvent* event) override;
  void mouseDoubleClickEvent(QMouseEvent* event) override;
  void leaveEvent(QEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void focusInEvent(QFocusEvent* event) override;
  void focusOutEvent(QFocusEvent* event) override;
  QSize sizeHint() const override { return {420, 220}; }
  QSize minimumSizeHint() const override { return {220, 120}; }
  void setBarWidth(double width);

 private:
  friend class PlotOverlay;
  struct Line {
    PlotLine line;
    bool shown = true;
    std::vector<SeriesColumn> columns = {};  // as drawn
  };

  void load();
  void bridgeSmallGaps(std::vector<SeriesColumn>& columns) const;
  void loadMarks();
  void fitY();
  void showY(double low, double high);
  void zoom(double factor, double around);
  void pan(double share);
  void read(std::optional<double> x);
  void readNext(int direction);
  double middle() const;
  std::size_t columnCount() const;

  PlotCanvas* canvas_;
  PlotOverlay* overlay_;
  std::vector<Line> lines_;
  MarkSource mark_source_;
  std::vector<PlotMark> marks_;
  ValueText x_text_ = compact_values();
  QString x_caption_, message_;
  bool x_time_ = false, logarithmic_ = false, from_zero_ = false, wheel_needs_focus_ = false;
  std::optional<std::pair<double, double>> extent_;
  double from_ = 0, to_ = 1, y_up_to_ = 0;
  bool shows_all_ = true, load_due_ = false;
  std::optional<double> cursor_;      // x under the pointer
  std::optional<QPointF> drag_from_;  // where the last move of a drag ended
};

}  // namespace atl
