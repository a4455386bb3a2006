#include "app/gui/training_page.h"

#include <QApplication>
#include <QCheckBox>
#include <QComboBox>
#include <QFileDialog>
#include <QHBoxLayout>
#include <QLabel>
#include <QPointer>
#include <QSlider>
#include <QThreadPool>
#include <QToolButton>
#include <QVBoxLayout>

#include "app/core/node.h"
#include "app/gui/look/format.h"
#include "app/gui/look/icons.h"
#include "app/gui/parts/card.h"
#include "app/gui/parts/notice.h"
#include "app/gui/parts/plain_label.h"
#include "app/gui/parts/screen_fit.h"
#include "app/gui/parts/swatch.h"
#include "app/gui/plot/csv_export.h"
#include "app/gui/plot/history_plot.h"

namespace atl {
namespace {

constexpr int kFirstSmoothing = 60;  // hundredths
constexpr double kPictureScale = 2;

QToolButton* make_tool(const char* name, const char* icon_name, const QString& what) {
  auto* button = new QToolButton;
  button->setObjectName(name);
  button->setIcon(icon(icon_name));
  button->setIconSize(QSize(18, 18));
  button->setAutoRaise(true);
  button->setFocusPolicy(Qt::StrongFocus);
  button->setAccessibleName(what);
  button->setToolTip(what);
  return button;
}

QString file_name(Node& node, const char* ending) {
  const auto& state = node.state();
  QString run = state ? QString::fromStdString(state->island.run_name) : QString();
  for (QChar& letter : run) {
    if (!letter.isLetterOrNumber() && letter != '-') letter = '_';
  }
  return (run.isEmpty() ? QString("atoll") : run) + ending;
}

}  // namespace

TrainingPage::TrainingPage(Node& node, QWidget* parent) : Page(node, parent) {
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(20, 6, 20, 16);
  column->setSpacing(10);
  QWidget* loss = makeLoss();  // tools move it
  column->addWidget(makeTools());
  column->addWidget(notice_ = new Notice("training_notice"));
  column->addWidget(loss, 3);
  auto* row = new QHBoxLayout;
  row->setSpacing(12);
  small_ = {makeSmall(row, "learning_rate", tr("Learning rate"), 2),
            makeSmall(row, "gradient_norm", tr("Gradient norm"), 5),
            makeSmall(row, "tokens_per_second", tr("Tokens per second"), 3)};
  column->addLayout(row, 2);
  connect(&node.rounds(), &RoundsModel::changed, loss_, &Plot::refresh);
  setSmoothing(smoothing_->value());
}

QWidget* TrainingPage::makeTools() {
  auto* tools = new QWidget;
  auto* row = new QHBoxLayout(tools);
  row->setContentsMargins(0, 0, 0, 0);
  row->setSpacing(8);
  makeLook(row);
  row->addStretch();
  makeMoving(row);
  row->addSpacing(8);
  makeExport(row);
  return tools;
}

void TrainingPage::makeLook(QHBoxLayout* row) {
  axis_ = new QComboBox;
  axis_->setObjectName("axis");
  axis_->addItem(tr("over steps"), static_cast<int>(SeriesAxis::kStep));
  axis_->addItem(tr("over tokens"), static_cast<int>(SeriesAxis::kTokens));
  axis_->addItem(tr("over time"), static_cast<int>(SeriesAxis::kTime));
  axis_->setAccessibleName(tr("What the curves run over"));
  connect(axis_, &QComboBox::currentIndexChanged, this,
          [this] { setAxis(static_cast<SeriesAxis>(axis_->currentData().toInt())); });
  row->addWidget(axis_);
  auto* caption = new QLabel(tr("&Smoothing"));
  smoothing_ = new QSlider(Qt::Horizontal);
  smoothing_->setObjectName("smoothing");
  smoothing_->setRange(0, 99);
  smoothing_->setValue(kFirstSmoothing);
  smoothing_->setFixedWidth(130);
  smoothing_->setAccessibleName(tr("Smoothing"));
  caption->setBuddy(smoothing_);
  smoothing_text_ = new QLabel;
  smoothing_text_->setMinimumWidth(fontMetrics().horizontalAdvance("0.00 "));
  connect(smoothing_, &QSlider::valueChanged, this, &TrainingPage::setSmoothing);
  row->addSpacing(6);
  row->addWidget(caption);
  row->addWidget(smoothing_);
  row->addWidget(smoothing_text_);
  logarithmic_ = new QCheckBox(tr("&Logarithmic"));
  logarithmic_->setObjectName("logarithmic");
  logarithmic_->setAccessibleName(tr("Logarithmic loss axis"));
  connect(logarithmic_, &QCheckBox::toggled, this, [this](bool on) { loss_->setLogarithmic(on); });
  rounds_ = new QCheckBox(tr("Roun&ds"));
  rounds_->setObjectName("rounds");
  rounds_->setChecked(true);
  rounds_->setAccessibleName(tr("Mark the rounds"));
  connect(rounds_, &QCheckBox::toggled, this, [this](bool on) { loss_->markRounds(on ? &node().rounds() : nullptr); });
  row->addWidget(logarithmic_);
  row->addWidget(rounds_);
}

void TrainingPage::makeMoving(QHBoxLayout* row) {
  auto* in = make_tool("zoom_in", "zoom_in", tr("Zoom in (+)"));
  auto* out = make_tool("zoom_out", "zoom_out", tr("Zoom out (-)"));
  auto* all = make_tool("zoom_all", "zoom_all", tr("Show all (Home)"));
  connect(in, &QToolButton::clicked, loss_, &Plot::zoomIn);
  connect(out, &QToolButton::clicked, loss_, &Plot::zoomOut);
  connect(all, &QToolButton::clicked, loss_, &Plot::showAll);
  for (QToolButton* button : {in, out, all}) row->addWidget(button);
}

void TrainingPage::makeExport(QHBoxLayout* row) {
  auto* csv = make_tool("csv", "table", tr("Export what is shown as CSV\u2026"));
  auto* png = make_tool("png", "image", tr("Export the loss plot as PNG\u2026"));
  connect(csv, &QToolButton::clicked, this, &TrainingPage::exportCsv);
  connect(png, &QToolButton::clicked, this, &TrainingPage::exportPng);
  row->addWidget(csv);
  row->addWidget(png);
}

QWidget* TrainingPage::makeLoss() {
  auto* card = new Card(tr("Loss, nats per token"));
  loss_ = new HistoryPlot(node().history(), tr("Loss"));
  loss_->setObjectName("loss_plot");
  loss_->addHistory(
      {.metric = "loss_nats", .name = tr("Training"), .colour = 0, .smoothed = true, .text = loss_values()});
  loss_->addHistory(
      {.metric = "validation_loss_nats", .name = tr("Validation"), .colour = 1, .points = true, .text = loss_values()});
  const PastLines past = add_past(*loss_);
  loss_->markRounds(&node().rounds());
  addSwitch(card, {0}, tr("Training"));
  addSwitch(card, {past.mean}, tr("All islands"));
  addSwitch(card, {1, past.validation}, tr("Validation"));
  card->body()->addWidget(loss_);
  return card;
}

// Also the legend: the line's colour beside its name.
void TrainingPage::addSwitch(Card* card, const std::vector<int>& histories, const QString& text) {
  auto* box = new QCheckBox(text);
  box->setChecked(true);
  box->setAccessibleName(tr("Show %1").arg(text));
  card->addToHeader(new Swatch(loss_->histories()[static_cast<std::size_t>(histories.front())].colour));
  card->addToHeader(box);
  connect(box, &QCheckBox::toggled, this, [this, histories](bool on) {
    for (const int history : histories) loss_->setHistoryShown(history, on);
  });
}

HistoryPlot* TrainingPage::makeSmall(QHBoxLayout* row, const char* metric, const QString& title, int colour) {
  auto* card = new Card(title);
  auto* plot = new HistoryPlot(node().history(), title);
  plot->setObjectName(QString("%1_plot").arg(metric));
  const bool noisy = std::string_view(metric) != "learning_rate";
  plot->addHistory({.metric = metric, .name = title, .colour = colour, .smoothed = noisy});
  plot->follow(*loss_);
  card->body()->addWidget(plot);
  row->addWidget(card);
  return plot;
}

void TrainingPage::setAxis(SeriesAxis axis) {
  loss_->setAxis(axis);
  for (HistoryPlot* plot : small_) plot->setAxis(axis);
}

void TrainingPage::setSmoothing(int hundredths) {
  smoothing_text_->setText(text::number(hundredths / 100.0, 2));
  loss_->setSmoothing(hundredths / 100.0);
  for (HistoryPlot* plot : small_) plot->setSmoothing(hundredths / 100.0);
}

void TrainingPage::refresh() {
  loss_->setGreyed(!node().live());
  for (HistoryPlot* plot : small_) plot->setGreyed(!node().live());
}

void TrainingPage::exportCsv() {
  auto* dialog = new QFileDialog(this, tr("Export as CSV"), file_name(node(), ".csv"), tr("CSV files (*.csv)"));
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  new ScreenFit(*dialog);
  dialog->setAcceptMode(QFileDialog::AcceptSave);
  dialog->setDefaultSuffix("csv");
  connect(dialog, &QFileDialog::fileSelected, this, [this](const QString& file) {
    CsvExport::Request request{
        .file = file, .metrics = {}, .axis = loss_->axis(), .from = loss_->from(), .to = loss_->to()};
    for (const HistoryLine& line : loss_->histories()) request.metrics.push_back(line.metric);
    for (const HistoryPlot* plot : small_) request.metrics.push_back(plot->histories().front().metric);
    auto* writing = new CsvExport(node().history(), std::move(request), this);
    connect(writing, &CsvExport::ended, this, [this, file](const Status& status) {
      say(file, status.ok() ? QString() : QString::fromStdString(status.error().message));
    });
    writing->start();
  });
  dialog->open();
}

// Compressing takes longer than a frame: on another thread.
void TrainingPage::exportPng() {
  auto* dialog = new QFileDialog(this, tr("Export as PNG"), file_name(node(), ".png"), tr("Pictures (*.png)"));
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  new ScreenFit(*dialog);
  dialog->setAcceptMode(QFileDialog::AcceptSave);
  dialog->setDefaultSuffix("png");
  connect(dialog, &QFileDialog::fileSelected, this, [this](const QString& file) {
    const QImage picture = loss_->picture(kPictureScale);
    QThreadPool::globalInstance()->start([page = QPointer(this), picture, file] {
      const bool saved = picture.save(file, "PNG");
      QMetaObject::invokeMethod(qApp, [page, file, saved] {
        if (page) page->say(file, saved ? QString() : tr("Is there room, and may you write there?"));
      });
    });
  });
  dialog->open();
}

void TrainingPage::say(const QString& file, const QString& problem) {
  if (problem.isEmpty()) return notice_->say(Notice::Kind::kGood, tr("Written to %1.").arg(file));
  notice_->say(Notice::Kind::kError, tr("%1 was not written.").arg(file), problem);
}

}  // namespace atl
