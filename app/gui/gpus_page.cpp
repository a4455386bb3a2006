#include "app/gui/gpus_page.h"

#include <algorithm>

#include <QGridLayout>
#include <QLabel>
#include <QPointer>
#include <QVBoxLayout>

#include "app/core/node.h"
#include "app/gui/look/format.h"
#include "app/gui/parts/card.h"
#include "app/gui/parts/empty_state.h"
#include "app/gui/parts/gpu_panel.h"
#include "app/gui/parts/gpu_plot.h"
#include "app/gui/parts/notice.h"
#include "app/gui/parts/plain_label.h"

namespace atl {
namespace {

constexpr int kPanelWidth = 240;
constexpr std::size_t kMany = 4;  // more than these have little room each

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

bool have_one_name(const std::vector<GpuSample>& gpus) {
  return std::ranges::all_of(gpus, [&](const GpuSample& gpu) { return gpu.name == gpus.front().name; });
}

// Of what is known.
struct Sum {
  double sum = 0;
  std::size_t count = 0;
  void add(const std::optional<double>& value) {
    if (!value) return;
    sum += *value;
    ++count;
  }
};

}  // namespace

GpusPage::GpusPage(Node& node, QWidget* parent)
    : Page(node, parent), notice_(new Notice("gpus_notice")), none_(new EmptyState), some_(new QWidget) {
  QVBoxLayout* column = makeScrollingColumn();
  column->addWidget(notice_);
  column->addWidget(none_, 1);
  column->addWidget(some_, 1);
  auto* inner = new QVBoxLayout(some_);
  inner->setContentsMargins(0, 0, 0, 0);
  inner->setSpacing(12);
  auto* heading = new QHBoxLayout;
  heading->setSpacing(12);
  heading->addWidget(model_ = as_heading(make_plain_label("gpu_model"), 1.1));
  heading->addWidget(summary_ = make_plain_label("gpu_summary"), 1);
  model_->setWordWrap(false);
  summary_->setForegroundRole(QPalette::PlaceholderText);
  panels_grid_ = new QGridLayout;
  panels_grid_->setSpacing(12);
  plots_grid_ = new QGridLayout;
  plots_grid_->setSpacing(12);
  inner->addLayout(heading);
  inner->addLayout(panels_grid_);
  inner->addLayout(plots_grid_, 1);
  none_->say(
      "gpu", tr("No GPU in use here"),
      tr("This island computes on its processors. That is fine for small runs; a larger one names the GPUs that it "
         "wants in its node check. GPUs appear here once the trainer uses them."),
      tr("&Check this machine"));
  connect(none_, &EmptyState::acted, this, [this] { Q_EMIT pageWanted(PageId::kCheck); });
}

void GpusPage::build(const std::vector<GpuSample>& gpus) {
  std::vector<std::uint32_t> indices;
  indices.reserve(gpus.size());
  for (const GpuSample& gpu : gpus) indices.push_back(gpu.index);
  if (indices == indices_) return;
  indices_ = std::move(indices);
  qDeleteAll(panels_);
  panels_.clear();
  while (QLayoutItem* item = plots_grid_->takeAt(0)) {
    delete item->widget();
    delete item;
  }
  plots_.clear();
  legends_.clear();
  chosen_.reset();
  columns_ = 0;
  for (std::size_t i = 0; i < indices_.size(); ++i) {
    auto* panel = new GpuPanel(static_cast<int>(indices_[i]));
    panel->setChoosable(GpuPlot::spreads(indices_.size()));
    connect(panel, &GpuPanel::choiceWanted, this, [this, i] { choose(i); });
    connect(panel, &GpuPanel::pauseWanted, this, [this, i](bool wanted) { pause(indices_[i], wanted); });
    panels_.push_back(panel);
  }
  for (std::size_t field = 0; !indices_.empty() && field < std::size(kFields); ++field) {
    const int at = static_cast<int>(field);
    plots_grid_->addWidget(makePlot(field), at / 2, at % 2);
  }
  arrange();
}

QWidget* GpusPage::makePlot(std::size_t field) {
  const std::string name = kFields[field].name;
  const QString title = tr(kFields[field].title);
  auto* card = new Card(title);
  card->setMinimumHeight(190);
  auto* legend = new Legend(GpuPlot::legend(indices_, chosen_));
  card->addToHeader(legend);
  auto* plot = new GpuPlot(node().history(), name, title, text_of(name), indices_);
  plot->setWheelNeedsFocus(true);
  plot->setYFromZero(name != "temperature_celsius");
  card->body()->addWidget(plot);
  plots_.push_back(plot);
  legends_.push_back(legend);
  return card;
}

// Chosen once more, it is no longer.
void GpusPage::choose(std::size_t place) {
  chosen_ = chosen_ == place ? std::nullopt : std::optional(place);
  for (std::size_t i = 0; i < panels_.size(); ++i) panels_[i]->setChosen(chosen_ == i);
  for (GpuPlot* plot : plots_) plot->choose(chosen_);
  for (Legend* legend : legends_) legend->setEntries(GpuPlot::legend(indices_, chosen_));
}

void GpusPage::pause(std::uint32_t gpu, bool pause) {
  notice_->clear();
  const auto answered = [page = QPointer(this)](const Result<nlohmann::json>& result) {
    if (!page || result.ok()) return;
    page->notice_->say(Notice::Kind::kError, tr("It was not done."), QString::fromStdString(result.error().message));
  };
  pause ? node().pauseGpu(gpu, answered) : node().resumeGpu(gpu, answered);
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
    const bool little = panels_.size() > kMany && have_one_name(node().gpus());
    panels_[static_cast<std::size_t>(i)]->setRoom(count == 1 ? GpuPanel::Room::kWide
                                                  : little   ? GpuPanel::Room::kLittle
                                                             : GpuPanel::Room::kUsual);
  }
  for (int column = 0; column < panels_grid_->columnCount(); ++column) {
    panels_grid_->setColumnStretch(column, column < columns ? 1 : 0);
  }
}

void GpusPage::resizeEvent(QResizeEvent* event) {
  Page::resizeEvent(event);
  arrange();
}

// What all of many have in common is said once.
void GpusPage::showSummary(const std::vector<GpuSample>& gpus) {
  const bool shown = gpus.size() > kMany;
  model_->setVisible(shown);
  summary_->setVisible(shown);
  if (!shown) return;
  Sum use, power, limit;
  double hottest = 0;
  for (const GpuSample& gpu : gpus) {
    use.add(gpu.utilisation);
    power.add(gpu.power_watts);
    limit.add(gpu.power_limit_watts);
    hottest = std::max(hottest, gpu.temperature_celsius.value_or(0));
  }
  const QString count = text::count(gpus.size());
  set_plain_text(model_, have_one_name(gpus) ? QString("%1 \u00D7 %2").arg(count, QString::fromStdString(gpus[0].name))
                                             : tr("%1 GPUs").arg(count));
  QStringList parts;
  if (use.count > 0) parts << tr("%1 in use").arg(text::percent(use.sum / static_cast<double>(use.count)));
  if (power.count > 0) {
    parts << (limit.count == power.count ? tr("%1 of %2").arg(text::watts(power.sum), text::watts(limit.sum))
                                         : text::watts(power.sum));
  }
  if (hottest > 0) parts << tr("the hottest %1").arg(text::celsius(hottest));
  set_plain_text(summary_, parts.join(" \u00B7 "));
}

void GpusPage::refresh() {
  if (!node().state()) return;
  const auto& gpus = node().gpus();
  none_->setVisible(gpus.empty());
  some_->setVisible(!gpus.empty());
  build(gpus);
  showSummary(gpus);
  const bool grey = !node().live();
  const std::vector<GpuPause>& pauses = node().state()->agent.paused_gpus;
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    const bool paused = std::ranges::find(pauses, gpus[i].index, &GpuPause::gpu) != pauses.end();
    panels_[i]->setPaused(paused, gpus.size() > 1 && !grey);
    panels_[i]->showSample(gpus[i]);
    panels_[i]->setGreyed(grey);
  }
  for (std::size_t i = 0; i < plots_.size(); ++i) {
    plots_[i]->setGreyed(grey);
    plots_[i]->setYUpTo(most_of(kFields[i].name, gpus));
  }
}

}  // namespace atl
