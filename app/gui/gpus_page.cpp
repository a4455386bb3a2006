#include "app/gui/gpus_page.h"

#include <algorithm>

#include <QGridLayout>
#include <QVBoxLayout>

#include "app/core/node.h"
#include "app/gui/parts/card.h"
#include "app/gui/parts/empty_state.h"
#include "app/gui/parts/gpu_panel.h"
#include "app/gui/parts/legend.h"
#include "app/gui/plot/history_plot.h"

namespace atl {
namespace {

constexpr int kPanelWidth = 240;
constexpr double kHour = 3600;

struct Field {
  const char* name;  // of gpu.sample
  const char* title;
};
constexpr Field kFields[] = {{"utilisation", QT_TRANSLATE_NOOP("atl::GpusPage", "Utilisation, last hour")},
                             {"memory_bytes", QT_TRANSLATE_NOOP("atl::GpusPage", "Memory, last hour")},
                             {"power_watts", QT_TRANSLATE_NOOP("atl::GpusPage", "Power, last hour")},
                             {"temperature_celsius", QT_TRANSLATE_NOOP("atl::GpusPage", "Temperature, last hour")}};

ValueText text_of(const std::string& field) {
  if (field == "utilisation") return percent_values();
  if (field == "memory_bytes") return byte_values();
  return unit_values(field == "power_watts" ? "W" : "\u00B0C");
}

// Numbers alone: there may be many, and the panels above say what they are.
std::vector<LegendEntry> legend_of(std::size_t gpus) {
  std::vector<LegendEntry> entries;
  for (std::size_t i = 0; i < gpus; ++i) entries.push_back({QString::number(i), static_cast<int>(i)});
  return entries;
}

// What all of it would be, so that a line says how much is left.
double most_of(const std::string& field, const std::vector<GpuSample>& gpus) {
  if (field == "utilisation") return 1;
  double most = 0;
  for (const GpuSample& gpu : gpus) {
    if (field == "memory_bytes") most = std::max(most, gpu.memory_total_bytes.value_or(0));
    if (field == "power_watts") most = std::max(most, gpu.power_limit_watts.value_or(0));
  }
  return most;
}

}  // namespace

GpusPage::GpusPage(Node& node, QWidget* parent) : Page(node, parent), none_(new EmptyState), some_(new QWidget) {
  QVBoxLayout* column = makeScrollingColumn();
  column->addWidget(none_, 1);
  column->addWidget(some_, 1);
  auto* inner = new QVBoxLayout(some_);
  inner->setContentsMargins(0, 0, 0, 0);
  inner->setSpacing(12);
  panels_grid_ = new QGridLayout;
  panels_grid_->setSpacing(12);
  plots_grid_ = new QGridLayout;
  plots_grid_->setSpacing(12);
  inner->addLayout(panels_grid_);
  inner->addLayout(plots_grid_, 1);
  none_->say(
      "gpu", tr("No GPU in use here"),
      tr("This island computes on its processors. That is fine for small runs; a larger one names the GPUs that it "
         "wants in its node check. GPUs appear here once the trainer uses them."),
      tr("&Check this machine"));
  connect(none_, &EmptyState::acted, this, [this] { Q_EMIT pageWanted(PageId::kCheck); });
}

void GpusPage::build(std::size_t gpus) {
  if (gpus == panels_.size()) return;
  qDeleteAll(panels_);
  panels_.clear();
  while (QLayoutItem* item = plots_grid_->takeAt(0)) {
    delete item->widget();
    delete item;
  }
  plots_.clear();
  columns_ = 0;
  for (std::size_t i = 0; i < gpus; ++i) panels_.push_back(new GpuPanel(static_cast<int>(i)));
  if (gpus > 0) {
    for (const Field& field : kFields) {
      auto* card = new Card(tr(field.title));
      if (gpus > 1) card->addToHeader(new Legend(legend_of(gpus)));
      card->setMinimumHeight(190);
      card->body()->addWidget(makePlot(field.name, tr(field.title)));
      const int at = static_cast<int>(plots_.size()) - 1;
      plots_grid_->addWidget(card, at / 2, at % 2);
    }
  }
  arrange();
}

HistoryPlot* GpusPage::makePlot(const char* field, const QString& title) {
  auto* plot = new HistoryPlot(node().history(), title);
  plot->setAxis(SeriesAxis::kTime);
  plot->setWheelNeedsFocus(true);
  plot->setYText(text_of(field));
  plot->setYFromZero(std::string_view(field) != "temperature_celsius");
  plot->setWindow(kHour);
  for (std::size_t i = 0; i < panels_.size(); ++i) {
    const int gpu = static_cast<int>(i);
    plot->addHistory({.metric = QString("gpu.%1.%2").arg(i).arg(field).toStdString(),
                      .name = tr("GPU %1").arg(gpu),
                      .colour = gpu,
                      .text = text_of(field)});
  }
  plots_.push_back(plot);
  return plot;
}

// One GPU has the whole width; of many, as many stand beside each other as there is room for, in even rows.
void GpusPage::arrange() {
  const int count = static_cast<int>(panels_.size());
  if (count == 0) return;
  const int room = std::max(1, (width() - 40) / kPanelWidth);
  int columns = std::min(room, count);
  const int rows = (count + columns - 1) / columns;
  columns = (count + rows - 1) / rows;
  if (columns == columns_) return;
  columns_ = columns;
  for (GpuPanel* panel : panels_) panels_grid_->removeWidget(panel);
  for (int i = 0; i < count; ++i) {
    panels_grid_->addWidget(panels_[static_cast<std::size_t>(i)], i / columns, i % columns);
    panels_[static_cast<std::size_t>(i)]->setWide(count == 1);
  }
  for (int column = 0; column < panels_grid_->columnCount(); ++column) {
    panels_grid_->setColumnStretch(column, column < columns ? 1 : 0);
  }
}

void GpusPage::resizeEvent(QResizeEvent* event) {
  Page::resizeEvent(event);
  arrange();
}

void GpusPage::refresh() {
  if (!node().state()) return;
  const auto& gpus = node().state()->gpus;
  none_->setVisible(gpus.empty());
  some_->setVisible(!gpus.empty());
  build(gpus.size());
  const bool grey = !node().live();
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    panels_[i]->showSample(gpus[i]);
    panels_[i]->setGreyed(grey);
  }
  for (std::size_t i = 0; i < plots_.size(); ++i) {
    plots_[i]->setGreyed(grey);
    plots_[i]->setYUpTo(most_of(kFields[i].name, gpus));
  }
}

}  // namespace atl
