#include "app/gui/join_wizard/trust_page.h"

#include <QDateTime>
#include <QFontDatabase>
#include <QFormLayout>
#include <QGroupBox>
#include <QLabel>
#include <QProgressBar>
#include <QPushButton>
#include <QVBoxLayout>

#include "app/core/node.h"
#include "app/gui/join_wizard/invite_advice.h"
#include "app/gui/join_wizard/page_layout.h"
#include "app/gui/look/format.h"
#include "app/gui/look/icons.h"
#include "app/gui/parts/notice.h"
#include "app/gui/parts/plain_label.h"

namespace atl {
namespace {

constexpr std::chrono::seconds kAgentStartTime{20};
constexpr int kAsksAgain = 2;

// In groups of four and two equal lines, so that two people can compare it aloud.
QString grouped(const std::string& hex) {
  QString text;
  for (std::size_t i = 0; i < hex.size(); i += 4) {
    if (i > 0) text += i == hex.size() / 2 ? '\n' : ' ';
    text += QString::fromStdString(hex.substr(i, 4));
  }
  return text;
}

double seconds_now() { return double(QDateTime::currentSecsSinceEpoch()); }

QString or_not_said(const std::string& text) {
  return text.empty() ? TrustPage::tr("The hub does not say.") : QString::fromStdString(text);
}

}  // namespace

TrustPage::TrustPage(Node& node, QWidget* parent) : QWizardPage(parent), node_(node) {
  auto* column = lay_out_page(*this, tr("Trust"),
                              tr("Who invites you? The hub is asked who it is; the invite's secret is not sent yet."));
  column->addWidget(notice_ = new Notice("trust_notice"));
  column->addWidget(busy_ = new QProgressBar);
  busy_->setRange(0, 0);
  busy_->setTextVisible(false);
  busy_->setMaximumHeight(6);
  busy_->setAccessibleName(tr("Asking the hub"));
  retry_ = new QPushButton(icon("refresh"), tr("Try &again"));
  retry_->setObjectName("retry");
  retry_->setAccessibleName(tr("Ask the hub again"));
  another_ = make_another_invite_button();
  auto* ways = new QHBoxLayout;
  ways->addWidget(another_);
  ways->addWidget(retry_);
  ways->addStretch(1);
  column->addLayout(ways);
  facts_ = new QGroupBox;
  auto* form = new QFormLayout(facts_);
  form->setHorizontalSpacing(16);
  form->setVerticalSpacing(8);
  run_ = add_fact(form, "run", tr("Run:"));
  operator_ = add_fact(form, "operator", tr("Operator:"));
  model_ = add_fact(form, "model", tr("Model:"));
  hub_ = add_fact(form, "hub", tr("Hub:"));
  expiry_ = add_fact(form, "expiry", tr("Invite good until:"));
  pin_ = add_fact(form, "pin", tr("Its key (SHA-256):"));
  pin_->setFont(QFontDatabase::systemFont(QFontDatabase::FixedFont));
  column->addWidget(facts_);
  column->addStretch(1);
  agent_time_.setSingleShot(true);
  connect(retry_, &QPushButton::clicked, this, &TrustPage::ask);
  connect(another_, &QPushButton::clicked, this, &TrustPage::anotherInviteWanted);
  connect(&node_.join(), &JoinModel::lookChanged, this, &TrustPage::looked);
  connect(&node_.link(), &AgentLink::stateChanged, this, &TrustPage::linkChanged);
  connect(&agent_time_, &QTimer::timeout, this, [this] {
    wants_agent_ = false;
    agent_problem_ = tr("It was started, but does not answer.");
    refresh();
  });
}

void TrustPage::initializePage() { ask(); }

bool TrustPage::isComplete() const { return node_.join().hub().has_value(); }

void TrustPage::ask() {
  asks_left_ = kAsksAgain;
  askNow();
}

void TrustPage::askNow() {
  agent_problem_.clear();
  wants_agent_ = false;
  if (node_.link().state() == LinkState::kConnected) {
    node_.join().look();
  } else if (std::holds_alternative<LocalNode>(node_.address()) && node_.link().state() != LinkState::kRefused) {
    const Status started = node_.startAgent();
    wants_agent_ = started.ok();
    if (!started.ok()) agent_problem_ = QString::fromStdString(started.error().message);
    if (started.ok()) agent_time_.start(kAgentStartTime);
    node_.link().reconnect();
  } else {
    node_.link().reconnect();
    agent_problem_ = QString::fromStdString(node_.link().problem());
  }
  refresh();
}

void TrustPage::linkChanged() {
  if (node_.link().state() != LinkState::kConnected) {
    refresh();
    return;
  }
  const bool waited = wants_agent_ || !agent_problem_.isEmpty();
  wants_agent_ = false;
  agent_problem_.clear();
  agent_time_.stop();
  if (waited && node_.join().invite() && !node_.join().hub()) node_.join().look();
  refresh();
}

// That an agent has ended is noticed only when it is asked, and then that the next one is another: asked again.
void TrustPage::looked() {
  const std::optional<Error>& problem = node_.join().lookProblem();
  if (problem && problem->code == ErrorCode::kPeerLost && asks_left_ > 0) {
    --asks_left_;
    QTimer::singleShot(0, this, &TrustPage::askNow);
    return;
  }
  refresh();
}

void TrustPage::refresh() {
  const JoinModel& join = node_.join();
  busy_->setVisible(wants_agent_ || join.looking());
  facts_->setVisible(join.hub().has_value());
  const bool mismatch = join.lookProblem() && join.lookProblem()->code == ErrorCode::kPinMismatch;
  const bool asks = busy_->isVisibleTo(this) || !agent_problem_.isEmpty();
  another_->setVisible(!asks && join.lookProblem() && wants_another_invite(join.lookProblem()->code));
  retry_->setVisible(!busy_->isVisibleTo(this) && !join.hub() && !mismatch);
  if (wants_agent_) {
    notice_->say(Notice::Kind::kBusy, tr("Starting this machine's agent."),
                 tr("It asks the hub, and trains later. It does nothing before you agreed."));
  } else if (!agent_problem_.isEmpty()) {
    notice_->say(Notice::Kind::kError, tr("The agent cannot be started or reached."), agent_problem_);
  } else if (join.looking()) {
    notice_->say(Notice::Kind::kBusy, tr("Asking the hub who it is."));
  } else if (join.hub()) {
    showHub();
  } else if (join.lookProblem()) {
    showProblem();
  } else {
    notice_->clear();
  }
  Q_EMIT completeChanged();
}

void TrustPage::showHub() {
  const InvitingHub& hub = *node_.join().hub();
  notice_->say(Notice::Kind::kGood, tr("The hub is the one in the invite: its key was verified."));
  set_fact(run_, QString("%1 (%2)").arg(or_not_said(hub.run_name), QString::fromStdString(hub.run_id)));
  set_fact(operator_, or_not_said(hub.operator_name));
  set_fact(model_, hub.parameters > 0 ? tr("%1, %2 parameters").arg(or_not_said(hub.model), text::count(hub.parameters))
                                      : or_not_said(hub.model));
  set_fact(hub_, QString::fromStdString(hub.address));
  set_fact(pin_, grouped(hub.pin));
  if (!node_.join().invite()) return;
  const auto expires = double(node_.join().invite()->expires.time_since_epoch().count());
  set_fact(expiry_, tr("%1 (%2 left)").arg(text::date_time(expires), text::duration(expires - seconds_now())));
}

void TrustPage::showProblem() {
  const InviteAdvice advice = advice_for_hub(*node_.join().lookProblem());
  notice_->say(Notice::Kind::kError, advice.sentence, advice.advice, advice.details);
}

}  // namespace atl
