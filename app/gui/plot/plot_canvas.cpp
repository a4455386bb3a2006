#include "app/gui/plot/plot_canvas.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <QEvent>

#include "app/gui/look/colours.h"
#include "app/gui/plot/axis_tickers.h"

namespace atl {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kBandShare = 0.16;
constexpr std::size_t kManyLines = 3;  // more than these cover each other

QColor sheer(QColor colour) {
  colour.setAlphaF(0.7F);
  return colour;
}

// The library draws at once whenever its size changes, and a layout that settles changes it several times in one turn
// of the event loop. Where its axes are is known at once; the drawing waits for the last size.
class CalmPlot final : public QCustomPlot {
 public:
  using QCustomPlot::QCustomPlot;

 protected:
  void resizeEvent(QResizeEvent*) override {
    setViewport(rect());
    updateLayout();
    replot(rpQueuedReplot);
  }
};

}  // namespace

struct PlotCanvas::Chart {
  struct Line {
    CanvasLine spec;
    QCPGraph* graph = nullptr;
    QCPGraph* strips = nullptr;  // the band
    QCPBars* bars = nullptr;
  };

  explicit Chart(QWidget* parent) : plot(new CalmPlot(parent)) {
    plot->setAttribute(Qt::WA_TransparentForMouseEvents);
    plot->setFocusPolicy(Qt::NoFocus);
    // A stroke a segment: one stroke for the whole of a jagged line takes many times as long.
    plot->setPlottingHints(QCP::phCacheLabels | QCP::phFastPolylines);
    plot->addLayer("bands", plot->layer("main"), QCustomPlot::limBelow);
    plot->addLayer("marks", plot->layer("bands"), QCustomPlot::limBelow);
    marks = add_graph("marks");
    marks->setAntialiased(false);
    QCPAxisRect* rect = plot->axisRect();
    rect->setAutoMargins(QCP::msLeft | QCP::msBottom);
    rect->setMargins(QMargins(0, 4, 18, 0));
    rect->setMinimumMargins(QMargins(0, 0, 0, 0));
    for (QCPAxis* axis : {plot->xAxis, plot->yAxis}) {
      axis->setTickPen(Qt::NoPen);
      axis->setTickLength(0, 0);
      axis->setSubTicks(false);
      axis->setTickLabelPadding(6);
      axis->grid()->setSubGridVisible(false);
    }
    plot->xAxis->grid()->setVisible(false);
    plot->yAxis->setBasePen(Qt::NoPen);
  }

  QCPGraph* add_graph(const char* layer) {
    QCPGraph* graph = plot->addGraph();
    graph->setLayer(QString(layer));
    graph->setAdaptiveSampling(false);  // it comes cut down to pixels
    return graph;
  }
  // The line, with a break before each gap.
  void fill(QCPGraph& graph, std::span<const SeriesColumn> columns) const {
    QVector<QCPGraphData> data;
    data.reserve(static_cast<qsizetype>(columns.size()) + 8);
    for (std::size_t i = 0; i < columns.size(); ++i) {
      if (i > 0 && columns[i].gap_before) data.push_back({(columns[i - 1].x + columns[i].x) / 2, kNaN});
      data.push_back({columns[i].x, logarithmic && !(columns[i].mean > 0) ? kNaN : double{columns[i].mean}});
    }
    graph.data()->set(data, /*alreadySorted=*/true);
  }

  // The band as an upright line a pixel: as one area the jagged outline of noise takes a hundred times as long.
  void fill_strips(QCPGraph& graph, std::span<const SeriesColumn> columns) const {
    const QCPRange x = plot->xAxis->range();
    const double pixel = x.size() / std::max(plot->axisRect()->width(), 1);
    QVector<QCPGraphData> segments;
    const auto add = [&segments](double at, double low, double high) {
      segments.push_back({at, low});
      segments.push_back({at, high});
      segments.push_back({at, kNaN});
    };
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const SeriesColumn& to = columns[i];
      if (i > 0 && !to.gap_before && in_band(columns[i - 1]) && in_band(to)) {
        const SeriesColumn& from = columns[i - 1];
        const double left = std::max(from.x, x.lower), right = std::min(to.x, x.upper);
        for (double at = left + pixel; at < right; at += pixel) {
          const double share = (at - from.x) / (to.x - from.x);
          add(at, between(from.low, to.low, share), between(from.high, to.high, share));
        }
      }
      if (in_band(to)) add(to.x, to.low, to.high);
    }
    graph.data()->set(segments, /*alreadySorted=*/true);
  }
  bool in_band(const SeriesColumn& column) const { return !logarithmic || column.low > 0; }
  // Straight on the screen.
  double between(double a, double b, double share) const {
    return logarithmic ? a * std::pow(b / a, share) : std::lerp(a, b, share);
  }
  // From edge to edge of the y axis, whatever it shows.
  void draw_marks() {
    const QCPRange y = plot->yAxis->range();
    QVector<QCPGraphData> segments;
    for (const double x : marked) {
      segments.push_back({x, y.lower});
      segments.push_back({x, y.upper});
      segments.push_back({x, kNaN});
    }
    marks->data()->set(segments, /*alreadySorted=*/true);
  }

  void give_ticks_room() const {
    const double room = plot->axisRect()->width();
    if (x_ticks) x_ticks->setRoom(room, plot->xAxis->tickLabelFont());
    if (x_times) x_times->setRoom(room);
  }

  QCustomPlot* plot;
  QSharedPointer<TextTicker> x_ticks;  // of the x axis: either these
  QSharedPointer<TimeTicker> x_times;  // or these
  QCPGraph* marks = nullptr;
  std::vector<double> marked;
  std::vector<Line> lines;
  ValueText x_text = compact_values();
  ValueText y_text = compact_values();
  bool logarithmic = false;
  bool greyed = false;
};

PlotCanvas::PlotCanvas(QWidget* parent) : QWidget(parent), chart_(std::make_unique<Chart>(this)) {
  setAttribute(Qt::WA_TransparentForMouseEvents);
  setXText(chart_->x_text);
  setYText(chart_->y_text);
  colourAll();
}

PlotCanvas::~PlotCanvas() = default;

int PlotCanvas::addLine(const CanvasLine& spec) {
  Chart::Line line{.spec = spec};
  if (spec.style == CanvasLine::Style::kBars) {
    line.bars = new QCPBars(chart_->plot->xAxis, chart_->plot->yAxis);
    line.bars->setWidthType(QCPBars::wtPlotCoords);
    line.bars->setWidth(spec.bar_width);
    line.bars->setAntialiased(false);
    if (spec.stacked && !chart_->lines.empty()) line.bars->moveAbove(chart_->lines.back().bars);
  } else {
    if (spec.band) {
      line.strips = chart_->add_graph("bands");
      line.strips->setAntialiased(false);
    }
    line.graph = chart_->add_graph("main");
  }
  chart_->lines.push_back(line);
  colourAll();
  return static_cast<int>(chart_->lines.size()) - 1;
}

void PlotCanvas::setBarWidth(int index, double width) {
  QCPBars* bars = chart_->lines[static_cast<std::size_t>(index)].bars;
  if (bars != nullptr) bars->setWidth(width);
}

void PlotCanvas::setLineShown(int index, bool shown) {
  const Chart::Line& line = chart_->lines[static_cast<std::size_t>(index)];
  for (QCPGraph* graph : {line.graph, line.strips}) {
    if (graph != nullptr) graph->setVisible(shown);
  }
  if (line.bars != nullptr) line.bars->setVisible(shown);
}

void PlotCanvas::setData(int index, std::span<const SeriesColumn> columns) {
  const Chart::Line& line = chart_->lines[static_cast<std::size_t>(index)];
  if (line.bars != nullptr) {
    QVector<QCPBarsData> bars;
    bars.reserve(static_cast<qsizetype>(columns.size()));
    for (const SeriesColumn& column : columns) bars.push_back({column.x, column.mean});
    line.bars->data()->set(bars, /*alreadySorted=*/true);
    return;
  }
  chart_->fill(*line.graph, columns);
  if (line.strips != nullptr) chart_->fill_strips(*line.strips, columns);
}

void PlotCanvas::setXRange(double from, double to) { chart_->plot->xAxis->setRange(from, to); }

void PlotCanvas::setYRange(double from, double to) {
  chart_->plot->yAxis->setRange(from, to);
  chart_->draw_marks();
}

void PlotCanvas::setMarks(std::span<const double> x) {
  chart_->marked.assign(x.begin(), x.end());
  chart_->draw_marks();
}

void PlotCanvas::setLogarithmic(bool on) {
  chart_->logarithmic = on;
  chart_->plot->yAxis->setScaleType(on ? QCPAxis::stLogarithmic : QCPAxis::stLinear);
  setYText(chart_->y_text);
}

void PlotCanvas::setXText(ValueText text) {
  chart_->x_text = std::move(text);
  chart_->x_ticks = QSharedPointer<TextTicker>::create(chart_->x_text);
  chart_->x_times.clear();
  chart_->plot->xAxis->setTicker(chart_->x_ticks);
}

void PlotCanvas::setXTime() {
  chart_->x_times = QSharedPointer<TimeTicker>::create();
  chart_->x_ticks.clear();
  chart_->plot->xAxis->setTicker(chart_->x_times);
}

void PlotCanvas::setYText(ValueText text) {
  chart_->y_text = std::move(text);
  if (chart_->logarithmic) {
    chart_->plot->yAxis->setTicker(QSharedPointer<LogTextTicker>::create(chart_->y_text));
  } else {
    chart_->plot->yAxis->setTicker(QSharedPointer<TextTicker>::create(chart_->y_text));
  }
}

void PlotCanvas::setXCaption(const QString& caption) { chart_->plot->xAxis->setLabel(caption); }

void PlotCanvas::setGreyed(bool greyed) {
  if (chart_->greyed == greyed) return;
  chart_->greyed = greyed;
  colourAll();
  draw();
}

void PlotCanvas::draw() {
  chart_->give_ticks_room();
  chart_->plot->replot(QCustomPlot::rpQueuedReplot);
}

QRectF PlotCanvas::area() const { return chart_->plot->axisRect()->rect(); }
double PlotCanvas::xAt(double pixel) const { return chart_->plot->xAxis->pixelToCoord(pixel); }
QPointF PlotCanvas::pixelOf(double x, double y) const {
  return {chart_->plot->xAxis->coordToPixel(x), chart_->plot->yAxis->coordToPixel(y)};
}

QPixmap PlotCanvas::picture(double scale) const { return chart_->plot->toPixmap(width(), height(), scale); }

void PlotCanvas::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  chart_->plot->setGeometry(rect());
}

// A window may come up on, or move to, a screen of another scale.
void PlotCanvas::showEvent(QShowEvent* event) {
  QWidget::showEvent(event);
  chart_->plot->setBufferDevicePixelRatio(devicePixelRatioF());
  colourAll();
}

void PlotCanvas::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  if (event->type() == QEvent::PaletteChange || event->type() == QEvent::FontChange) {
    colourAll();
    draw();
  }
}

void PlotCanvas::colourAll() {
  const Colours& colours = colours_of(palette());
  chart_->plot->setBackground(colours.surface);  // of the card: the library's pixels are opaque
  QFont small = font();
  small.setPointSizeF(small.pointSizeF() * 0.88);
  for (QCPAxis* axis : {chart_->plot->xAxis, chart_->plot->yAxis}) {
    axis->setTickLabelFont(small);
    axis->setLabelFont(small);
    axis->setTickLabelColor(colours.muted);
    axis->setLabelColor(colours.muted);
    axis->grid()->setPen(colours.grid);
    axis->grid()->setZeroLinePen(colours.grid);
  }
  chart_->plot->xAxis->setBasePen(colours.border);
  chart_->marks->setPen(QPen(mixed(colours.surface, colours.border, 0.8), 1));
  for (const Chart::Line& line : chart_->lines) {
    const QColor full = colours.series[static_cast<std::size_t>(line.spec.colour) % colours.series.size()];
    const QColor colour = chart_->greyed ? colours.faint : full;
    const QColor soft = mixed(colours.surface, colour, kBandShare);
    if (line.bars != nullptr) {
      line.bars->setBrush(mixed(colours.surface, colour, 0.85));
      line.bars->setPen(Qt::NoPen);
      continue;
    }
    // Where a point has several of the screen's pixels, neighbours overlap a little rather than leave some bare.
    const double width = devicePixelRatioF() > 1 ? 1.25 : 1;
    if (line.strips != nullptr) line.strips->setPen(QPen(soft, width, Qt::SolidLine, Qt::FlatCap));
    switch (line.spec.style) {
      case CanvasLine::Style::kFaintLine: line.graph->setPen(QPen(mixed(colours.surface, colour, 0.4), 1)); break;
      case CanvasLine::Style::kPoints:
        line.graph->setPen(QPen(mixed(colours.surface, colour, 0.5), 1));
        line.graph->setScatterStyle({QCPScatterStyle::ssDisc, QPen(colour, 1), QBrush(colour), 5});
        break;
      default: line.graph->setPen(chart_->lines.size() > kManyLines ? QPen(sheer(colour), 1.1) : QPen(colour, 1.6));
    }
  }
}

}  // namespace atl
