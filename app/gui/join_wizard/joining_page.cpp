#include "app/gui/join_wizard/joining_page.h"

#include <algorithm>
#include <cmath>

#include <QGridLayout>
#include <QGroupBox>
#include <QLabel>
#include <QPointer>
#include <QProgressBar>
#include <QPushButton>
#include <QVBoxLayout>

#include "app/core/command_run.h"
#include "app/core/node.h"
#include "app/gui/join_wizard/consent_page.h"
#include "app/gui/join_wizard/invite_advice.h"
#include "app/gui/join_wizard/page_layout.h"
#include "app/gui/join_wizard/resources_page.h"
#include "app/gui/look/format.h"
#include "app/gui/look/icons.h"
#include "app/gui/parts/notice.h"
#include "app/gui/parts/plain_label.h"
#include "net/base/exit_code.h"

namespace atl {
namespace {

constexpr int kBarSteps = 1000;

QString stage_name(JoinStage stage) {
  switch (stage) {
    case JoinStage::kKey: return JoiningPage::tr("Make a key");
    case JoinStage::kEnrol: return JoiningPage::tr("Enrol with the hub");
    case JoinStage::kCheck: return JoiningPage::tr("Check this machine for the run");
    case JoinStage::kTrainer: return JoiningPage::tr("Start the trainer");
    case JoinStage::kData: return JoiningPage::tr("Fetch the data");
    case JoinStage::kState: return JoiningPage::tr("Fetch the model's state");
    case JoinStage::kFirstStep: return JoiningPage::tr("First step");
    case JoinStage::kUnknown: break;
  }
  return {};
}

using ViewStatus = StageView::Status;

QString status_word(StageView::Status status) {
  switch (status) {
    case ViewStatus::kWaiting: return JoiningPage::tr("to do");
    case ViewStatus::kRunning: return JoiningPage::tr("under way");
    case ViewStatus::kRetrying: return JoiningPage::tr("is tried again");
    case ViewStatus::kDone: return JoiningPage::tr("done");
    case ViewStatus::kFailed: return JoiningPage::tr("failed");
  }
  return {};
}

QString retry_text(const StageView& stage) {
  const QString cause = QString::fromStdString(stage.text);
  if (!stage.retry_in_seconds) return JoiningPage::tr("%1; it is tried again").arg(cause);
  const auto seconds = static_cast<int>(std::clamp(std::ceil(*stage.retry_in_seconds), 1.0, 1e6));
  return JoiningPage::tr("%1; it is tried again in %2 s").arg(cause).arg(seconds);
}

// "1.2 GB of 3.4 GB, 160 Mbit/s, 1 min 50 s left"
QString progress_text(const StageView& stage) {
  if (stage.status == ViewStatus::kRetrying) return retry_text(stage);
  if (stage.status == ViewStatus::kFailed) return QString::fromStdString(stage.text);
  if (stage.total_bytes == 0) return status_word(stage.status);
  QString progress =
      JoiningPage::tr("%1 of %2").arg(text::bytes(double(stage.done_bytes)), text::bytes(double(stage.total_bytes)));
  if (stage.status != ViewStatus::kRunning) return progress;
  if (stage.bytes_per_second)
    progress = JoiningPage::tr("%1, %2").arg(progress, text::link_rate(*stage.bytes_per_second));
  if (stage.seconds_left) progress = JoiningPage::tr("%1, %2 left").arg(progress, text::duration(*stage.seconds_left));
  return progress;
}

}  // namespace

JoiningPage::JoiningPage(Node& node, const ResourcesPage& resources, const ConsentPage& consent, QWidget* parent)
    : QWizardPage(parent), node_(node), resources_(resources), consent_(consent) {
  auto* column = lay_out_page(
      *this, tr("Joining"), tr("Cancelling is safe at every stage. You may also close the window: the agent goes on."));
  column->addWidget(notice_ = new Notice("joining_notice"));
  column->addWidget(makeStages());
  retry_ = new QPushButton(icon("refresh"), tr("Try &again"));
  retry_->setObjectName("retry");
  retry_->setAccessibleName(tr("Try the failed stage again"));
  another_ = make_another_invite_button();
  auto* ways = new QHBoxLayout;
  ways->addWidget(another_);
  ways->addWidget(retry_);
  ways->addStretch(1);
  column->addLayout(ways);
  column->addWidget(service_ = new Notice("service_notice"));
  column->addStretch(1);
  connect(retry_, &QPushButton::clicked, this, [this] {
    // After a cancel there is no stage to go on from.
    node_.join().problem() ? node_.join().retry() : join();
    refresh();
  });
  connect(another_, &QPushButton::clicked, this, &JoiningPage::anotherInviteWanted);
  connect(&node_.join(), &JoinModel::changed, this, &JoiningPage::refresh);
}

QWidget* JoiningPage::makeStages() {
  auto* stages = new QGroupBox;
  auto* grid = new QGridLayout(stages);
  grid->setHorizontalSpacing(12);
  grid->setVerticalSpacing(5);
  grid->setColumnStretch(2, 1);
  for (int i = 0; i < kJoinStages; ++i) {
    Row& row = rows_[static_cast<std::size_t>(i)];
    row.symbol = new QLabel;
    row.name = make_sentence(stage_name(static_cast<JoinStage>(i)));
    row.name->setWordWrap(false);
    row.bar = new QProgressBar;
    row.bar->setTextVisible(false);
    row.bar->setFixedHeight(6);
    row.text = make_plain_label(qPrintable(QString("stage_%1").arg(i)));
    // Beneath its stage, where there is room for it also while there is none: nothing moves as stages begin and end.
    QSizePolicy policy(QSizePolicy::Expanding, QSizePolicy::Fixed);
    policy.setRetainSizeWhenHidden(true);
    row.bar->setSizePolicy(policy);
    grid->addWidget(row.symbol, 2 * i, 0);
    grid->addWidget(row.name, 2 * i, 1);
    grid->addWidget(row.text, 2 * i, 2);
    grid->addWidget(row.bar, 2 * i + 1, 1, 1, 2);
  }
  return stages;
}

void JoiningPage::join() {
  JoinResources resources = resources_.resources();
  resources.leave_other = consent_.leavesOther();
  node_.join().join(resources);
}

void JoiningPage::initializePage() {
  // Joined: that was another time.
  if (!node_.join().joining()) {
    service_asked_ = false;
    join();
  }
  refresh();
}

bool JoiningPage::isComplete() const { return node_.join().joined(); }

void JoiningPage::refresh() {
  for (int i = 0; i < kJoinStages; ++i) showStage(static_cast<JoinStage>(i));
  showOutcome();
  const JoinModel& join = node_.join();
  retry_->setVisible(!join.joining() && !join.joined());
  another_->setVisible(!join.joining() && join.problem() && wants_another_invite(join.problem()->code));
  // Once this machine is a member: an agent at boot without a run would be for nothing.
  if (join.stage(JoinStage::kEnrol).status == ViewStatus::kDone) installService();
  Q_EMIT completeChanged();
}

void JoiningPage::showStage(JoinStage at) {
  const StageView& stage = node_.join().stage(at);
  Row& row = rows_[static_cast<std::size_t>(at)];
  const bool running = stage.status == ViewStatus::kRunning;
  const bool failed = stage.status == ViewStatus::kFailed, retrying = stage.status == ViewStatus::kRetrying;
  const Tone tone = failed ? Tone::kBad : retrying ? Tone::kWarning : running ? Tone::kAccent : Tone::kGood;
  const char* name = failed ? "error" : retrying ? "warning" : running ? "connecting" : "ok";
  const int size = 18;
  if (stage.status == ViewStatus::kWaiting) {
    row.symbol->setPixmap(icon_pixmap("waiting", colours_of(palette()).faint, size, devicePixelRatioF()));
  } else {
    row.symbol->setPixmap(icon_pixmap(name, colours_of(palette()).of(tone), size, devicePixelRatioF()));
  }
  row.bar->setVisible(running);
  if (running && stage.total_bytes > 0) {
    row.bar->setRange(0, kBarSteps);
    row.bar->setValue(static_cast<int>(kBarSteps * double(stage.done_bytes) / double(stage.total_bytes)));
  } else if (running) {
    row.bar->setRange(0, 0);
  }
  const QString text = progress_text(stage);
  set_plain_text(row.text, text);
  row.text->setForegroundRole(stage.status == ViewStatus::kWaiting ? QPalette::PlaceholderText : QPalette::WindowText);
  const QString said = tr("%1: %2").arg(stage_name(at), stage.total_bytes > 0 || failed || retrying
                                                            ? QString("%1, %2").arg(status_word(stage.status), text)
                                                            : status_word(stage.status));
  row.text->setAccessibleName(said);
  row.bar->setAccessibleName(said);
}

void JoiningPage::showOutcome() {
  const JoinModel& join = node_.join();
  using Kind = Notice::Kind;
  if (join.joined()) {
    notice_->say(Kind::kGood, tr("This machine trains with the others now."),
                 tr("The dashboard shows what it does. Closing the window stops nothing."));
  } else if (join.problem()) {
    const InviteAdvice advice = advice_for_hub(*join.problem());
    const bool stopped = join.problem()->code == ErrorCode::kAborted;
    notice_->say(stopped ? Kind::kInfo : Kind::kError, advice.sentence, advice.advice, advice.details);
  } else if (join.retrying() != nullptr) {
    notice_->say(Kind::kWarning, tr("The trainer failed, and the agent starts it again by itself."),
                 tr("You may wait, or put right what it says and wait. Stopping is safe, too."));
  } else if (join.joining()) {
    notice_->say(Kind::kBusy, tr("Joining\u2026"));
  } else {
    notice_->say(Kind::kInfo, tr("Stopped, as you wished."), tr("Nothing trains here. You can try again."));
  }
}

void JoiningPage::installService() {
  if (service_asked_ || !consent_.atBoot()) return;
  service_asked_ = true;
  QStringList arguments{"service", "install", "--no-start"};
  if (consent_.withoutLogin()) arguments << "--yes";
  service_->say(Notice::Kind::kBusy, tr("Installing the service that starts at boot."));
  // The node outlives this window; closing it is no reason to end half-way.
  const auto done = [notice = QPointer<Notice>(service_)](const Result<CommandOutcome>& outcome) {
    if (!notice) return;
    if (outcome.ok() && outcome->exit_code == kExitOk) {
      notice->say(Notice::Kind::kGood, tr("It starts at boot from now on."), {},
                  QString::fromUtf8(outcome->output).trimmed());
      return;
    }
    const Error why = outcome.ok() ? error_of(*outcome) : outcome.error();
    notice->say(Notice::Kind::kWarning, tr("It does not start at boot: the service could not be installed."),
                tr("Training goes on all the same. To try again: atoll service install"),
                QString::fromStdString(why.message));
  };
  run_to_end(node_.run(), {arguments}, &node_, done);
}

}  // namespace atl
