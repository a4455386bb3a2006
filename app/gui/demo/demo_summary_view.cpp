#include "app/gui/demo/demo_summary_view.h"

#include <QDesktopServices>
#include <QFormLayout>
#include <QGridLayout>
#include <QGroupBox>
#include <QLabel>
#include <QLocale>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QUrl>
#include <QVBoxLayout>

#include "app/gui/demo/demo_runner.h"
#include "app/gui/demo/loss_sketch.h"
#include "app/gui/look/format.h"
#include "app/gui/look/icons.h"
#include "app/gui/parts/plain_label.h"

namespace atl {

DemoSummaryView::DemoSummaryView(DemoRunner& runner, QWidget* parent) : QWidget(parent), runner_(runner) {
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(12);
  column->addWidget(title_ = as_heading(make_plain_label("demo_title")));
  auto* middle = new QGridLayout;
  middle->setSpacing(12);
  middle->setColumnStretch(0, 1);
  middle->setColumnStretch(1, 1);
  middle->setRowStretch(2, 1);
  auto* box = new QGroupBox;
  figures_ = new QFormLayout(box);
  figures_->setHorizontalSpacing(16);
  sample_ = new QPlainTextEdit;
  sample_->setObjectName("sample");
  sample_->setAccessibleName(tr("What the model writes"));
  sample_->setReadOnly(true);
  sample_->setTabChangesFocus(true);
  middle->addWidget(box, 0, 0);
  middle->addWidget(make_sentence(tr("It now writes:")), 1, 0);
  middle->addWidget(sample_, 2, 0);
  middle->addWidget(loss_ = new LossSketch, 0, 1, 3, 1);
  column->addLayout(middle, 1);
  auto* buttons = new QHBoxLayout;
  open_ = new QPushButton(icon("folder"), tr("Open the &model's directory"));
  open_->setObjectName("open_model");
  open_->setAccessibleName(tr("Open the model's directory"));
  auto* again = new QPushButton(icon("refresh"), tr("&Another demo"));
  again->setObjectName("again");
  again->setAccessibleName(tr("Another demo"));
  setFocusProxy(again);
  buttons->addWidget(open_);
  buttons->addWidget(again);
  buttons->addStretch(1);
  column->addLayout(buttons);
  connect(open_, &QPushButton::clicked, this, &DemoSummaryView::openModel);
  connect(again, &QPushButton::clicked, this, &DemoSummaryView::againWanted);
}

void DemoSummaryView::add(const QString& caption, const QString& text) {
  set_fact(add_fact(figures_, "figure", caption), text);
}

void DemoSummaryView::showOutcome() {
  while (figures_->rowCount() > 0) figures_->removeRow(0);
  if (!runner_.outcome()) return;
  set_plain_text(title_,
                 runner_.wasStopped() ? tr("What the demo came to until it was stopped") : tr("What the demo came to"));
  open_->setEnabled(!runner_.outcome()->model_directory.isEmpty());
  addFigures();
  loss_->setLosses(runner_.losses(), runner_.validations());
  const QString& sample = runner_.outcome()->sample;
  sample_->setPlainText(sample.isEmpty() ? tr("Nothing: it could not be asked.") : sample);
}

void DemoSummaryView::addFigures() {
  const DemoOutcome& outcome = *runner_.outcome();
  add(tr("Trained:"), tr("%n round(s), %1 tokens in %2", nullptr, static_cast<int>(outcome.rounds))
                          .arg(text::count(outcome.tokens), text::duration(outcome.training_seconds)));
  // Of one that was stopped not all is known.
  if (outcome.tokens_per_second > 0) add(tr("Speed:"), text::speed(outcome.tokens_per_second));
  if (outcome.parameters > 0) add(tr("Model:"), tr("%1 parameters").arg(text::count(outcome.parameters)));
  if (outcome.last_validation_loss > 0) {
    add(tr("Validation loss:"),
        tr("from %1 to %2 nats per byte")
            .arg(text::loss(outcome.first_validation_loss), text::loss(outcome.last_validation_loss)));
  }
  add(tr("Sent between islands:"), text::bytes(double(outcome.bytes_sent)));
  if (outcome.bytes_sent > 0 && outcome.bytes_data_parallel_fp32 > 0) {
    const double times = outcome.bytes_data_parallel_fp32 / static_cast<double>(outcome.bytes_sent);
    add(tr("Without Atoll:"), tr("%1, %2 times as much (data-parallel training with fp32 gradients)")
                                  .arg(text::bytes(outcome.bytes_data_parallel_fp32))
                                  .arg(QLocale().toString(times, 'f', 0)));
  }
  if (!runner_.wasStopped()) add(tr("Time computing:"), text::percent(outcome.compute_utilisation));
  if (runner_.wasStopped() && !runner_.losses().empty()) {
    add(tr("Last mean loss:"), tr("%1 nats per byte").arg(text::loss(runner_.losses().rbegin()->second)));
  }
  if (outcome.outer_hashes_equal) {
    add(tr("Islands:"), *outcome.outer_hashes_equal ? tr("held the same bits after every round")
                                                    : tr("held DIFFERENT bits after a round"));
  }
  add(tr("Kept in:"), outcome.model_directory.isEmpty()
                          ? tr("%1 (no island could give its model)").arg(runner_.directory())
                          : outcome.model_directory);
}

void DemoSummaryView::openModel() {
  if (runner_.outcome()) QDesktopServices::openUrl(QUrl::fromLocalFile(runner_.outcome()->model_directory));
}

}  // namespace atl
