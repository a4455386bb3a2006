#include "app/gui/organise/task_sketch.h"

#include <algorithm>

#include <QLocale>

#include "app/gui/look/colours.h"
#include "net/base/printable.h"

namespace atl {
namespace {

constexpr std::size_t kMostNameBytes = 24;  // in a legend of several

QString percent(double accuracy) { return QLocale().toString(100 * accuracy, 'f', 0) + QStringLiteral(" %"); }

}  // namespace

TaskSketch::TaskSketch(QWidget* parent) : QWidget(parent) {
  setObjectName("tasks");
  setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Expanding);
  setMinimumHeight(120);
}

void TaskSketch::setEvaluations(const std::vector<HubState::Evaluation>& evaluations) {
  tasks_.clear();
  QStringList newest;
  for (const HubState::Evaluation& evaluation : evaluations) {
    if (evaluation.metric != "acc" || tasks_.size() == std::size(Colours{}.series)) continue;
    Task task{QString::fromStdString(printable(evaluation.task, kMostNameBytes)), {}};
    for (const auto& point : evaluation.points) task.accuracy[point.outer_step] = point.value;
    task.accuracy = finite_points(task.accuracy, -1);
    if (!task.accuracy.empty()) {
      newest << tr("%1 %2 after round %3")
                    .arg(task.name, percent(task.accuracy.rbegin()->second))
                    .arg(task.accuracy.rbegin()->first);
    }
    tasks_.push_back(std::move(task));
  }
  setAccessibleName(newest.isEmpty() ? tr("Accuracy on tasks: none yet")
                                     : tr("Accuracy on tasks: %1").arg(newest.join(", ")));
  update();
}

// From the right, in the caption's line.
void TaskSketch::paintLegend(QPainter& painter) const {
  const Colours& colours = colours_of(palette());
  const QFontMetrics metrics(font());
  double right = width() - 14.0;
  for (std::size_t i = tasks_.size(); i-- > 0;) {
    const QString text = QString::fromUtf8("\u25CF ") + tasks_[i].name;
    const double wide = metrics.horizontalAdvance(text);
    painter.setPen(colours.series[i]);
    painter.drawText(QRectF(right - wide, 10, wide, metrics.height()), Qt::AlignRight, text);
    right -= wide + 14;
  }
}

void TaskSketch::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  const QRectF area = paint_sketch_frame(painter, *this, tr("Accuracy"));
  std::vector<const SketchSeries*> series;
  for (const Task& task : tasks_) series.push_back(&task.accuracy);
  if (std::ranges::all_of(series, [](const auto* points) { return points->empty(); })) {
    painter.drawText(area, Qt::AlignCenter, tr("The first point comes with the first evaluation."));
    return;
  }
  const SketchScale scale = sketch_scale(series, area);
  paint_sketch_grid(painter, *this, scale, percent);
  const Colours& colours = colours_of(palette());
  for (std::size_t i = 0; i < tasks_.size(); ++i) {
    paint_sketch_line(painter, scale, tasks_[i].accuracy, colours.series[i]);
    painter.setPen(Qt::NoPen);
    painter.setBrush(colours.series[i]);
    for (const auto& [round, accuracy] : tasks_[i].accuracy) painter.drawEllipse(scale.at(round, accuracy), 3.0, 3.0);
    painter.setBrush(Qt::NoBrush);
  }
  paintLegend(painter);
}

}  // namespace atl
