#include "app/gui/check_page.h"

#include <QHBoxLayout>
#include <QLabel>
#include <QProgressBar>
#include <QPushButton>
#include <QVBoxLayout>

#include "app/core/node.h"
#include "app/gui/check_topics.h"
#include "app/gui/look/format.h"
#include "app/gui/look/icons.h"
#include "app/gui/look/style.h"
#include "app/gui/parts/check_table.h"
#include "app/gui/parts/notice.h"
#include "app/gui/parts/plain_label.h"

namespace atl {

CheckPage::CheckPage(Node& node, QWidget* parent) : QWidget(parent), node_(node) {
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(20, 8, 20, 16);
  column->setSpacing(12);
  column->addWidget(makeHeader());
  column->addWidget(busy_ = new QProgressBar);
  busy_->setObjectName("check_busy");
  busy_->setRange(0, 0);
  busy_->setTextVisible(false);
  busy_->setMaximumHeight(6);
  busy_->setAccessibleName(tr("A check is under way"));
  column->addWidget(notice_ = new Notice("check_notice"));
  start_ = new QPushButton(icon("play"), tr("&Start the agent"));
  start_->setObjectName("start_agent");
  start_->setAccessibleName(tr("Start the agent of this machine"));
  notice_->hold(start_);
  column->addWidget(table_ = new CheckTable(node_.check()), 1);
  column->addWidget(topics_ = new CheckTopics, 1);
  column->addStretch(0);
  connect(start_, &QPushButton::clicked, this, &CheckPage::startWanted);
  connect(quick_, &QPushButton::clicked, this, [this] { node_.check().run(/*full=*/false); });
  connect(full_, &QPushButton::clicked, this, [this] { node_.check().run(/*full=*/true); });
  connect(&node_.check(), &CheckModel::changed, this, &CheckPage::refresh);
  connect(&node_, &Node::changed, this, &CheckPage::refresh);
  connect(&clock_, &QTimer::timeout, this, &CheckPage::refresh);
  clock_.start(std::chrono::seconds(30));
  refresh();
}

QWidget* CheckPage::makeHeader() {
  auto* header = new QWidget;
  auto* grid = new QGridLayout(header);
  grid->setContentsMargins(0, 0, 0, 0);
  grid->setColumnStretch(0, 1);
  grid->addWidget(as_heading(make_sentence(tr("Node check"))), 0, 0);
  grid->addWidget(last_ = make_plain_label("last_check"), 1, 0);
  quick_ = new QPushButton(icon("check"), tr("&Quick check"));
  quick_->setObjectName("quick");
  make_primary(quick_);
  quick_->setAccessibleDescription(tr("Seconds: limits, disk, memory, GPUs, and when joined the way to the hub"));
  full_ = new QPushButton(tr("Full chec&k"));
  full_->setObjectName("full");
  full_->setAccessibleDescription(tr("Minutes: also measures GPUs and links; training is slower meanwhile"));
  for (QPushButton* button : {quick_, full_}) {
    button->setAccessibleName(button->text().remove('&'));
    button->setToolTip(button->accessibleDescription());
  }
  grid->addWidget(quick_, 0, 1);
  grid->addWidget(full_, 0, 2);
  return header;
}

bool CheckPage::isOfAnotherRun() const {
  const auto& state = node_.state();
  if (!state || node_.check().ended_at() <= 0) return false;
  return node_.check().run_id() != (state->joined() ? state->island.run_id : std::string());
}

QString CheckPage::lastCheck() const {
  const CheckModel& check = node_.check();
  if (check.ended_at() <= 0) return tr("What this machine can do, and what stands in its way.");
  const QString time = text::date_time(check.ended_at());
  if (check.run_id().empty()) return tr("Last check: %1, for no run").arg(time);
  const auto& state = node_.state();
  const bool known = state && state->island.run_id == check.run_id() && !state->island.run_name.empty();
  return tr("Last check: %1, for the run \u201C%2\u201D")
      .arg(time, QString::fromStdString(known ? state->island.run_name : check.run_id()));
}

void CheckPage::refresh() {
  const CheckModel& check = node_.check();
  const bool connected = node_.link().state() == LinkState::kConnected;
  quick_->setEnabled(connected && !check.running());
  full_->setEnabled(connected && !check.running());
  busy_->setVisible(check.running());
  const bool any = check.running() || !check.rows().empty();
  table_->setVisible(any);
  topics_->setVisible(!any);
  set_plain_text(last_, lastCheck());
  const bool can_start =
      node_.link().state() == LinkState::kNoAgent && std::holds_alternative<LocalNode>(node_.address());
  start_->setVisible(can_start);
  table_->setEnabled(!isOfAnotherRun());
  const auto fails = static_cast<int>(check.count(Verdict::kFail));
  const auto warnings = static_cast<int>(check.count(Verdict::kWarn));
  using Kind = Notice::Kind;
  if (can_start) {
    notice_->say(Kind::kWarning, tr("No agent runs on this machine, so it cannot be checked from here."),
                 tr("The agent measures. Starting it trains nothing before you joined a run."));
  } else if (!connected && check.rows().empty()) {
    notice_->say(Kind::kWarning, tr("No agent answers, so this machine cannot be checked from here."),
                 QString::fromStdString(node_.link().problem()));
  } else if (check.running()) {
    notice_->say(Kind::kBusy, tr("Checking: rows appear as they come."));
  } else if (!check.problem().empty()) {
    notice_->say(Kind::kError, tr("The check could not be run to its end."), QString::fromStdString(check.problem()));
  } else if (!check.finished()) {
    notice_->say(Kind::kInfo, tr("No check was made since this window was opened."),
                 tr("A quick check takes seconds. A full one also measures GPUs and links, which takes minutes."));
  } else if (isOfAnotherRun()) {
    notice_->say(Kind::kWarning, tr("This result is old: it was not made for what this machine does now."),
                 node_.state()->joined() ? tr("Check again to see whether this machine does for its run.")
                                         : tr("Check again to see what this machine can do."));
  } else if (fails > 0) {
    const bool joined = node_.state() && node_.state()->joined();
    notice_->say(Kind::kError, tr("%n row(s) failed.", nullptr, fails),
                 joined ? tr("Training may be slow or fail until this is put right. Choose a row to copy what helps.")
                        : tr("This machine cannot join as it is. Choose a row to copy what helps."));
  } else if (warnings > 0) {
    notice_->say(Kind::kWarning, tr("%n warning(s).", nullptr, warnings),
                 tr("This machine can train; it would do better with what the rows propose."));
  } else {
    notice_->say(Kind::kGood, tr("This machine can train: nothing is amiss."));
  }
}

}  // namespace atl
