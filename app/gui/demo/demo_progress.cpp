#include "app/gui/demo/demo_progress.h"

#include <algorithm>

#include <QCheckBox>
#include <QFontDatabase>
#include <QHeaderView>
#include <QLabel>
#include <QPlainTextEdit>
#include <QProgressBar>
#include <QPushButton>
#include <QTableWidget>
#include <QVBoxLayout>

#include "app/gui/demo/demo_runner.h"
#include "app/gui/demo/loss_sketch.h"
#include "app/gui/look/format.h"
#include "app/gui/look/icons.h"
#include "app/gui/parts/plain_label.h"
#include "net/base/round_words.h"

namespace atl {
namespace {

enum Column { kName, kState, kStep, kLoss, kSpeed, kSent, kColumns };

QString shown_state(const HubState::Island& island) {
  if (island.state == HubIslandState::kTraining) {
    switch (island.phase.value_or(IslandPhase::kTraining)) {
      case IslandPhase::kTraining: return DemoProgress::tr("Training");
      case IslandPhase::kSyncing: return DemoProgress::tr("Synchronising");
      case IslandPhase::kRecovering: return DemoProgress::tr("Recovering");
      case IslandPhase::kWaiting: return DemoProgress::tr("Waiting");
      default: break;
    }
  }
  if (island.state == HubIslandState::kRecovering) return DemoProgress::tr("Recovering");
  if (island.state == HubIslandState::kGone) return DemoProgress::tr("Gone");
  const std::string_view word = island.word();
  return QString::fromUtf8(word.data(), static_cast<qsizetype>(word.size()));
}

const char* icon_of_state(const HubState::Island& island) {
  if (island.state == HubIslandState::kGone) return "leave";
  if (island.phase == IslandPhase::kSyncing) return "sync";
  return island.phase == IslandPhase::kTraining ? "training" : "waiting";
}

}  // namespace

DemoProgress::DemoProgress(DemoRunner& runner, QWidget* parent) : QWidget(parent), runner_(runner) {
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(12);
  auto* header = new QHBoxLayout;
  header->addWidget(what_ = as_heading(make_plain_label("demo_state")), 1);
  stop_ = new QPushButton(icon("stop"), tr("&Stop"));
  stop_->setObjectName("stop_demo");
  stop_->setAccessibleName(tr("Stop the demo"));
  header->addWidget(stop_);
  setFocusProxy(stop_);
  column->addLayout(header);
  column->addWidget(bar_ = new QProgressBar);
  column->addWidget(loss_ = new LossSketch, 2);
  makeTable();
  column->addWidget(islands_, 1);
  islands_->hide();  // until there are some
  details_ = new QCheckBox(tr("Show what the &command says"));
  details_->setObjectName("details");
  details_->setAccessibleName(tr("Show what the command says"));
  column->addWidget(details_);
  output_ = new QPlainTextEdit;
  output_->setObjectName("demo_output");
  output_->setAccessibleName(tr("What the command says"));
  output_->setReadOnly(true);
  output_->setTabChangesFocus(true);
  output_->setFont(QFontDatabase::systemFont(QFontDatabase::FixedFont));
  output_->setMaximumBlockCount(5000);
  output_->hide();
  column->addWidget(output_, 1);
  connect(details_, &QCheckBox::toggled, output_, &QWidget::setVisible);
  connect(stop_, &QPushButton::clicked, &runner_, &DemoRunner::stop);
  connect(&runner_, &DemoRunner::changed, this, &DemoProgress::refresh);
  connect(&runner_, &DemoRunner::outputAdded, this, [this](const QString& text) {
    output_->moveCursor(QTextCursor::End);
    output_->insertPlainText(text);
  });
  connect(&clock_, &QTimer::timeout, this, &DemoProgress::refresh);
  clock_.start(std::chrono::seconds(1));
  refresh();
}

void DemoProgress::makeTable() {
  islands_ = new QTableWidget(0, kColumns);
  islands_->setObjectName("demo_islands");
  islands_->setAccessibleName(tr("Islands of the demo"));
  islands_->setHorizontalHeaderLabels({tr("Island"), tr("State"), tr("Step"), tr("Loss"), tr("Speed"), tr("Sent")});
  islands_->horizontalHeader()->setSectionResizeMode(QHeaderView::Stretch);
  islands_->horizontalHeader()->setSectionsClickable(false);
  islands_->horizontalHeader()->setHighlightSections(false);
  islands_->horizontalHeader()->setDefaultAlignment(Qt::AlignLeft | Qt::AlignVCenter);
  islands_->verticalHeader()->hide();
  islands_->setSelectionBehavior(QAbstractItemView::SelectRows);
  islands_->setEditTriggers(QAbstractItemView::NoEditTriggers);
  islands_->setTabKeyNavigation(false);
  islands_->setShowGrid(false);
}

void DemoProgress::refresh() {
  const HubState* state = runner_.state();
  stop_->setEnabled(runner_.running() && !runner_.wasStopped());
  if (runner_.isKeeping()) {
    set_plain_text(what_, tr("Keeping the model\u2026"));
  } else if (runner_.wasStopped()) {
    set_plain_text(what_, tr("Stopping\u2026"));
  } else if (state == nullptr || runner_.seconds() == 0) {
    set_plain_text(what_, tr("Getting ready\u2026"));
  } else {
    set_plain_text(what_, tr("Round %1").arg(text::count(round_number(state->outer_step))));
  }
  what_->setAccessibleName(what_->text());
  const int limit = runner_.wish().minutes * 60;
  if (runner_.seconds() > 0) {
    bar_->setRange(0, limit);
    bar_->setValue(std::min(limit, static_cast<int>(runner_.seconds())));
    bar_->setFormat(tr("%1 of %2").arg(text::duration(bar_->value()), text::duration(limit)));
  } else {
    bar_->setRange(0, 0);
  }
  bar_->setAccessibleName(tr("Time of training: %1").arg(bar_->text()));
  if (!runner_.running()) return;
  loss_->setLosses(runner_.losses(), runner_.validations());
  if (state != nullptr) showIslands();
}

void DemoProgress::showIslands() {
  const HubState& state = *runner_.state();
  const int rows = static_cast<int>(state.islands.size());
  if (islands_->rowCount() != rows) {
    islands_->setRowCount(rows);
    // No empty table beneath them.
    islands_->setMaximumHeight(islands_->horizontalHeader()->sizeHint().height() + 2 * islands_->frameWidth() +
                               rows * islands_->verticalHeader()->defaultSectionSize());
    islands_->setVisible(rows > 0);
  }
  for (int row = 0; row < rows; ++row) {
    const HubState::Island& island = state.islands[static_cast<std::size_t>(row)];
    const QString loss = island.loss_nats > 0 ? text::loss(island.loss_nats) : QString();
    const QString cells[] = {QString::fromStdString(island.name),
                             shown_state(island),
                             QString("%1/%2").arg(island.inner_step).arg(state.inner_steps),
                             loss,
                             text::speed(island.tokens_per_second),
                             text::bytes(double(island.bytes_sent))};
    for (int column = 0; column < kColumns; ++column) {
      QTableWidgetItem* item = islands_->item(row, column);
      if (item == nullptr) islands_->setItem(row, column, item = new QTableWidgetItem);
      if (item->text() != cells[column]) item->setText(cells[column]);
      if (column == kState) item->setIcon(icon(icon_of_state(island), Tone::kNeutral));
    }
  }
}

}  // namespace atl
