// plot_libraries qcustomplot|charts all|view [POINTS]: first paint, frames of panning and zooming, and memory of a
// plotting library that draws a noisy line with its band. `all`: it is given every point and decides itself; `view`: it
// is given what a thousand columns of pixels need, as the app does. Drawn in software; processor time of this thread.
#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>

#include <QApplication>
#include <QtCharts/QAreaSeries>
#include <QtCharts/QChart>
#include <QtCharts/QChartView>
#include <QtCharts/QLineSeries>
#include <QtCharts/QValueAxis>

#include "app/core/series.h"
#include "app/gui/plot/qcustomplot_include.h"

using namespace atl;

namespace {

constexpr int kWidth = 1040;
constexpr int kHeight = 420;
constexpr std::size_t kColumns = 1040;

double thread_ms() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return 1e3 * static_cast<double>(now.tv_sec) + 1e-6 * static_cast<double>(now.tv_nsec);
}

double resident_mib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

Series noisy(std::size_t points) {
  Series series(SeriesAxis::kStep);
  std::uint32_t random = 1;
  for (std::size_t i = 0; i < points; ++i) {
    random = random * 1664525 + 1013904223;
    const double noise = static_cast<double>(random >> 8) / (1 << 24) - 0.5;
    const double value = 2 + 8 * std::exp(-5.0 * static_cast<double>(i) / static_cast<double>(points)) + 0.4 * noise;
    series.append({.x = static_cast<double>(i), .mean = value, .low = value - 0.1, .high = value + 0.1});
  }
  return series;
}

class Candidate {
 public:
  virtual ~Candidate() = default;
  virtual QWidget& widget() = 0;
  virtual void set_data(const std::vector<SeriesColumn>& columns) = 0;
  virtual void set_range(double from, double to) = 0;
};

class CustomPlot : public Candidate {
 public:
  CustomPlot() : line_(plot_.addGraph()), low_(plot_.addGraph()), high_(plot_.addGraph()) {
    low_->setPen(Qt::NoPen);
    high_->setPen(Qt::NoPen);
    high_->setBrush(QColor(11, 118, 140, 40));
    high_->setChannelFillGraph(low_);
    line_->setPen(QPen(QColor(11, 118, 140), 1.6));
    plot_.yAxis->setRange(1, 11);
  }
  QWidget& widget() override { return plot_; }
  void set_data(const std::vector<SeriesColumn>& columns) override {
    QVector<QCPGraphData> mean, low, high;
    for (const SeriesColumn& column : columns) {
      mean.push_back({column.x, column.mean});
      low.push_back({column.x, column.low});
      high.push_back({column.x, column.high});
    }
    line_->data()->set(mean, true);
    low_->data()->set(low, true);
    high_->data()->set(high, true);
  }
  void set_range(double from, double to) override {
    plot_.xAxis->setRange(from, to);
    plot_.replot(QCustomPlot::rpQueuedRefresh);
  }

 private:
  QCustomPlot plot_;
  QCPGraph* line_;
  QCPGraph* low_;
  QCPGraph* high_;
};

class Charts : public Candidate {
 public:
  Charts() : chart_(new QChart), view_(chart_), x_(new QValueAxis), y_(new QValueAxis) {
    line_ = new QLineSeries;
    low_ = new QLineSeries;
    high_ = new QLineSeries;
    auto* band = new QAreaSeries(high_, low_);
    chart_->addAxis(x_, Qt::AlignBottom);
    chart_->addAxis(y_, Qt::AlignLeft);
    y_->setRange(1, 11);
    for (QAbstractSeries* series : {static_cast<QAbstractSeries*>(band), static_cast<QAbstractSeries*>(line_)}) {
      chart_->addSeries(series);
      series->attachAxis(x_);
      series->attachAxis(y_);
    }
    view_.setRenderHint(QPainter::Antialiasing);
  }
  QWidget& widget() override { return view_; }
  void set_data(const std::vector<SeriesColumn>& columns) override {
    QList<QPointF> mean, low, high;
    for (const SeriesColumn& column : columns) {
      mean.push_back({column.x, column.mean});
      low.push_back({column.x, column.low});
      high.push_back({column.x, column.high});
    }
    line_->replace(mean);
    low_->replace(low);
    high_->replace(high);
  }
  void set_range(double from, double to) override { x_->setRange(from, to); }

 private:
  QChart* chart_;
  QChartView view_;
  QValueAxis* x_;
  QValueAxis* y_;
  QLineSeries* line_;
  QLineSeries* low_;
  QLineSeries* high_;
};

void paint(Candidate& candidate) {
  QCoreApplication::processEvents();
  candidate.widget().repaint();
}

// Something else than the ground is where the line must be.
bool drew_something(Candidate& candidate) {
  const QImage image = candidate.widget().grab().toImage();
  const QRgb ground = image.pixel(image.width() - 2, image.height() / 4);
  for (int y = image.height() / 8; y < image.height() * 7 / 8; ++y) {
    if (image.pixel(image.width() / 2, y) != ground) return true;
  }
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  if (qEnvironmentVariableIsEmpty("QT_QPA_PLATFORM")) qputenv("QT_QPA_PLATFORM", "offscreen");
  QApplication app(argc, argv);
  const bool usage = argc < 3 || (std::strcmp(argv[1], "qcustomplot") && std::strcmp(argv[1], "charts")) ||
                     (std::strcmp(argv[2], "all") && std::strcmp(argv[2], "view"));
  if (usage) return std::fprintf(stderr, "usage: plot_libraries qcustomplot|charts all|view [POINTS]\n"), 2;
  const bool view = std::strcmp(argv[2], "view") == 0;
  const std::size_t points = argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 1'000'000;
  const Series series = noisy(points);
  const double last = series.last();
  const double before = resident_mib();

  std::unique_ptr<Candidate> candidate;
  const double begin = thread_ms();
  if (std::strcmp(argv[1], "charts") == 0) {
    candidate = std::make_unique<Charts>();
  } else {
    candidate = std::make_unique<CustomPlot>();
  }
  candidate->widget().resize(kWidth, kHeight);
  candidate->set_data(series.view(0, last, view ? kColumns : points));
  candidate->set_range(0, last);
  candidate->widget().show();
  paint(*candidate);
  const double first = thread_ms() - begin;
  if (!drew_something(*candidate)) return std::fprintf(stderr, "nothing was drawn\n"), 1;

  std::vector<double> frames;
  for (int i = 0; i < 60; ++i) {  // zoom in, then pan
    const double width = i < 30 ? last * std::pow(0.9, i) : last / 10;
    const double from = i < 30 ? (last - width) / 2 : (i - 30) / 30.0 * (last - width);
    const double frame = thread_ms();
    if (view) candidate->set_data(series.view(from, from + width, kColumns));
    candidate->set_range(from, from + width);
    paint(*candidate);
    frames.push_back(thread_ms() - frame);
  }
  std::sort(frames.begin(), frames.end());
  std::printf("%s %s %zu points: first paint %.1f ms, frame %.1f ms (median), %.1f ms (95 of 100), +%.0f MiB\n",
              argv[1], argv[2], points, first, frames[30], frames[57], resident_mib() - before);
  return 0;
}
