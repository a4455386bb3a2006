#include "app/gui/node_header.h"

#include <algorithm>

#include <QEvent>
#include <QHBoxLayout>
#include <QLabel>
#include <QMenu>
#include <QPointer>
#include <QProgressBar>
#include <QPushButton>
#include <QToolButton>
#include <QVBoxLayout>

#include "app/core/node.h"
#include "app/gui/look/format.h"
#include "app/gui/look/icons.h"
#include "app/gui/parts/elided_label.h"
#include "app/gui/parts/notice.h"
#include "app/gui/parts/plain_label.h"
#include "net/base/round_words.h"

namespace atl {
namespace {

constexpr int kStateIcon = 26;
constexpr int kBothSides = 2 * 20;             // room at its sides
constexpr int kLeastRun = 60, kMostRun = 260;  // of the run's name and round, beside what is done with it

QPushButton* make_button(const char* name, const char* icon_name, const QString& text, const QString& what) {
  auto* button = new QPushButton(icon(icon_name), text);
  button->setObjectName(name);
  button->setAccessibleName(QString(text).remove('&').remove(QChar(0x2026)));
  button->setAccessibleDescription(what);
  button->setToolTip(what);
  return button;
}

}  // namespace

NodeHeader::NodeHeader(Node& node, QWidget* parent) : QWidget(parent), node_(node) {
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(20, 14, 20, 8);  // what scrolls ends a little beneath
  column->setSpacing(10);
  column->addWidget(makeLine());
  makeNotice();
  column->addWidget(notice_);
  makeMenu();
  connect(&node_, &Node::changed, this, &NodeHeader::refresh);
  connect(&clock_, &QTimer::timeout, this, &NodeHeader::refresh);
  clock_.start(std::chrono::seconds(1));
  refresh();
}

// What it is, and what is done with it: beside one another, or in a narrow window beneath.
QWidget* NodeHeader::makeLine() {
  auto* line = new QWidget;
  line_ = new QBoxLayout(QBoxLayout::LeftToRight, line);
  line_->setContentsMargins(0, 0, 0, 0);
  line_->setSpacing(8);
  auto* row = new QHBoxLayout;
  row->setSpacing(8);
  row->addWidget(icon_ = new QLabel);
  row->addWidget(state_ = as_heading(make_plain_label("state"), 1.35));
  state_->setWordWrap(false);
  row->addSpacing(8);
  row->addWidget(run_ = new ElidedLabel, 1);
  run_->setObjectName("run");
  line_->addLayout(row, 1);
  line_->addLayout(makeButtons());
  return line;
}

QBoxLayout* NodeHeader::makeButtons() {
  auto* row = new QHBoxLayout;
  row->setSpacing(8);
  row->addWidget(makeStep());
  row->addSpacing(4);
  row->addWidget(age_ = make_plain_label("age"));
  age_->setWordWrap(false);
  row->addSpacing(4);
  row->addWidget(pause_ = make_button("pause", "pause", tr("&Pause\u2026"), tr("Free this machine and go on later")));
  row->addWidget(resume_ = make_button("resume", "play", tr("&Resume"), tr("Train again")));
  row->addWidget(finish_ = make_button("finish", "finish", tr("&Finish\u2026"),
                                       tr("Complete this round with the others, then leave")));
  row->addWidget(more_ = new QToolButton);
  connect(pause_, &QPushButton::clicked, this, [this] { wish(WishDialog::Wish::kPause); });
  connect(finish_, &QPushButton::clicked, this, [this] { wish(WishDialog::Wish::kFinish); });
  connect(resume_, &QPushButton::clicked, this, &NodeHeader::resume);
  return row;
}

// How far the round is: in words above a thin bar.
QWidget* NodeHeader::makeStep() {
  step_holder_ = new QWidget;
  auto* column = new QVBoxLayout(step_holder_);
  column->setContentsMargins(0, 0, 0, 0);
  column->setSpacing(4);
  column->addWidget(step_text_ = make_plain_label("step_text"));
  step_text_->setWordWrap(false);
  step_text_->setAlignment(Qt::AlignCenter);
  step_text_->setFocusPolicy(Qt::NoFocus);
  column->addWidget(step_ = new QProgressBar);
  step_->setObjectName("step");
  step_->setTextVisible(false);
  step_->setFixedHeight(5);
  step_->setMinimumWidth(150);
  return step_holder_;
}

void NodeHeader::makeNotice() {
  notice_ = new Notice("advice");
  act_ = new QPushButton;
  act_->setObjectName("act");
  notice_->hold(act_);
  connect(act_, &QPushButton::clicked, this, &NodeHeader::act);
}

void NodeHeader::makeMenu() {
  menu_ = new QMenu(this);
  stop_ = menu_->addAction(icon("stop"), tr("&Stop\u2026"), this, [this] { wish(WishDialog::Wish::kStop); });
  leave_ =
      menu_->addAction(icon("leave"), tr("&Leave the run\u2026"), this, [this] { wish(WishDialog::Wish::kLeave); });
  more_->setObjectName("more");
  more_->setIcon(icon("more"));
  more_->setIconSize(QSize(18, 18));
  more_->setAutoRaise(true);
  more_->setPopupMode(QToolButton::InstantPopup);
  more_->setMenu(menu_);
  more_->setFocusPolicy(Qt::StrongFocus);
  more_->setAccessibleName(tr("More"));
  more_->setToolTip(tr("More"));
}

void NodeHeader::refresh() {
  const text::StateWord word = text::state_word(node_);
  const auto& state = node_.state();
  const bool live = node_.live();
  const Colours& colours = colours_of(palette());
  icon_->setPixmap(icon_pixmap(word.icon, colours.of(word.tone), kStateIcon, devicePixelRatioF()));
  icon_->setAccessibleName(word.word);
  set_plain_text(state_, word.word);
  state_->setAccessibleName(tr("State: %1").arg(word.word));
  QString run;
  if (state && state->joined() && !state->island.run_name.empty()) {
    run = tr("run %1").arg(QString::fromStdString(state->island.run_name));
    if (state->island.inner_steps > 0)
      run += " \u00B7 " + tr("round %1").arg(text::count(round_number(state->island.round)));
  }
  set_plain_text(run_, run);
  run_->setAccessibleName(run.isEmpty() ? tr("No run") : run);
  run_->setForegroundRole(live ? QPalette::WindowText : QPalette::PlaceholderText);
  const QString age = text::age(node_);
  set_plain_text(age_, age);
  age_->setAccessibleName(age.isEmpty() ? tr("No data") : age);
  age_->setForegroundRole(QPalette::PlaceholderText);
  const bool steps = state && state->island.inner_steps > 0 && state->island.pid != 0;
  step_holder_->setVisible(steps && !page_shows_round_);
  if (steps) {
    const std::uint32_t most = std::min<std::uint32_t>(state->island.inner_steps, 1'000'000'000);
    step_->setRange(0, static_cast<int>(most));
    step_->setValue(static_cast<int>(std::min(state->island.inner_step, most)));
    step_->setFormat(text::step(*state));
    set_plain_text(step_text_, text::step(*state));
    step_text_->setForegroundRole(live ? QPalette::WindowText : QPalette::PlaceholderText);
    step_->setAccessibleName(tr("This round: %1").arg(text::step(*state)));
    step_->setEnabled(live);
  }
  refreshButtons();
  refreshAdvice();
  fitLine();
}

void NodeHeader::setPageShowsRound(bool shows) {
  page_shows_round_ = shows;
  refresh();
}

void NodeHeader::setPageShowsAdvice(bool shows) {
  if (page_shows_advice_ == shows) return;
  page_shows_advice_ = shows;
  refreshAdvice();
}

void NodeHeader::refreshButtons() {
  const auto& state = node_.state();
  const bool reachable = node_.link().state() == LinkState::kConnected && state && state->joined();
  const bool runs = reachable && state->agent.wish == Wish::kRun;
  const bool failed = reachable && state->island.state == IslandPhase::kError && !state->agent.restart_in_seconds;
  const bool unjoined = state && !state->joined();
  const bool trains = runs && !failed;  // of an island that ended for good there is nothing to pause or to finish
  pause_->setVisible(state && !unjoined && (!reachable || trains));
  pause_->setEnabled(runs);
  finish_->setVisible(state && !unjoined && (!reachable || trains));
  finish_->setEnabled(runs);
  resume_->setVisible(reachable && (!runs || failed));
  stop_->setEnabled(reachable && state->agent.wish != Wish::kStop);
  leave_->setEnabled(reachable);
}

void NodeHeader::refreshAdvice() {
  auto advice = text::advice(node_);
  if (!trouble_.isEmpty()) {
    advice = text::Advice{Tone::kBad, tr("It was not done."), trouble_, text::Advice::Action::kShowLogs};
  }
  if (!advice) return notice_->clear();
  Notice::Kind kind = Notice::Kind::kInfo;
  if (advice->tone == Tone::kWarning) kind = Notice::Kind::kWarning;
  if (advice->tone == Tone::kBad) kind = Notice::Kind::kError;
  notice_->say(kind, advice->sentence, advice->what_to_do, advice->details);
  action_ = advice->action;
  const QString word = text::action_word(action_);
  act_->setText(word);
  act_->setAccessibleName(QString(word).remove('&'));
  act_->setVisible(!word.isEmpty());
  if (page_shows_advice_ && trouble_.isEmpty()) notice_->hide();
}

void NodeHeader::wish(WishDialog::Wish wish) {
  trouble_.clear();
  (new WishDialog(node_, wish, this))->open();
}

void NodeHeader::resume() {
  trouble_.clear();
  resume_->setEnabled(false);
  node_.resume([header = QPointer(this)](const Result<nlohmann::json>& result) {
    if (!header) return;
    header->resume_->setEnabled(true);
    if (!result.ok()) header->trouble_ = QString::fromStdString(result.error().message);
    header->refresh();
  });
}

void NodeHeader::act() {
  switch (action_) {
    case text::Advice::Action::kNone: return;
    case text::Advice::Action::kReconnect:
    case text::Advice::Action::kReplay: return node_.link().reconnect();
    case text::Advice::Action::kShowLogs: trouble_.clear(); return Q_EMIT logsWanted();
    case text::Advice::Action::kJoin: trouble_.clear(); return Q_EMIT joinWanted();
    case text::Advice::Action::kStartAgent: return startAgent();
  }
}

void NodeHeader::startAgent() {
  const Status started = node_.startAgent();
  trouble_ = started.ok() ? QString() : QString::fromStdString(started.error().message);
  refresh();
}

void NodeHeader::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  fitLine();
}

void NodeHeader::fitLine() {
  const int run = std::clamp(run_->fontMetrics().horizontalAdvance(run_->text()), kLeastRun, kMostRun);
  const int wanted =
      line_->itemAt(0)->minimumSize().width() + run + line_->spacing() + line_->itemAt(1)->minimumSize().width();
  const bool narrow = contentsRect().width() - kBothSides < wanted;
  line_->setDirection(narrow ? QBoxLayout::TopToBottom : QBoxLayout::LeftToRight);
}

void NodeHeader::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  if (event->type() == QEvent::PaletteChange) refresh();
}

}  // namespace atl
