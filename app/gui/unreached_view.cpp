#include "app/gui/unreached_view.h"

#include <QEvent>
#include <QHBoxLayout>
#include <QLabel>
#include <QVBoxLayout>

#include "app/core/node.h"
#include "app/gui/island_text.h"
#include "app/gui/look/icons.h"
#include "app/gui/parts/card.h"
#include "app/gui/parts/copy_line.h"
#include "app/gui/parts/plain_label.h"
#include "app/gui/way_button.h"

namespace atl {
namespace {

constexpr int kIcon = 56;
constexpr int kWidest = 720;  // longer lines are hard to read

bool is_here(const Node& node) { return std::holds_alternative<LocalNode>(node.address()); }

}  // namespace

UnreachedView::UnreachedView(Node& node, QWidget* parent) : QWidget(parent), node_(node) {
  auto* outer = new QHBoxLayout(this);
  auto* held = new QWidget;
  held->setMaximumWidth(kWidest);
  outer->addStretch(1);
  outer->addWidget(held, 100);
  outer->addStretch(1);
  auto* column = new QVBoxLayout(held);
  column->setSpacing(12);
  column->addStretch(1);
  column->addWidget(icon_ = new QLabel, 0, Qt::AlignLeft);
  column->addWidget(title_ = as_heading(make_plain_label("unreached_title"), 1.7));
  column->addWidget(text_ = make_plain_label("unreached_text"));
  column->addSpacing(8);
  column->addWidget(start_ = new WayButton("play", tr("&Start the agent"),
                                           tr("It goes on with the run that this machine has joined, and stays when "
                                              "this window is closed.")));
  column->addWidget(
      retry_ = new WayButton("refresh", tr("&Try now"), tr("It is tried again by itself, too, less and less often.")));
  start_->setObjectName("start_agent");
  retry_->setObjectName("try_now");
  column->addWidget(commands_ = makeCommands(is_here(node)));
  problem_card_ = new Card(tr("What was said"));
  problem_card_->body()->addWidget(problem_ = make_plain_label("unreached_problem"));
  problem_->setForegroundRole(QPalette::PlaceholderText);
  column->addWidget(problem_card_);
  column->addStretch(2);
  connect(start_, &WayButton::clicked, this, &UnreachedView::startWanted);
  connect(retry_, &WayButton::clicked, this, &UnreachedView::retryWanted);
  refresh();
}

QWidget* UnreachedView::makeCommands(bool here) {
  auto* card = new Card(here ? tr("Or in a terminal") : tr("In a terminal of that machine"));
  card->body()->addWidget(new CopyLine("agent_command", tr("Now, until Ctrl-C:"), "atoll agent"));
  card->body()->addWidget(
      new CopyLine("service_command", tr("Always, also after a restart of the machine:"), "atoll service install"));
  return card;
}

void UnreachedView::refresh() {
  const LinkState link = node_.link().state();
  const QString machine = label(node_.address());
  QString title, text;
  if (link == LinkState::kNoAgent) {
    title = is_here(node_) ? tr("No agent runs on this machine") : tr("No agent runs on %1").arg(machine);
    text =
        tr("The agent is the program that trains, in the background and without a window. While none runs, nothing "
           "trains and there is nothing to show. What was trained before is safe on the disk.");
  } else if (link == LinkState::kLost && !is_here(node_)) {
    title = tr("%1 cannot be reached").arg(machine);
    text =
        tr("Training there goes on without this window. Is the machine on, does the network reach it, and can you "
           "log in there by ssh without a password?");
  } else {
    const auto advice = text::advice(node_);
    title = advice ? advice->sentence : text::state_word(node_).word;
    text = tr("Nothing is known of %1 yet.").arg(machine);
  }
  set_plain_text(title_, title);
  set_plain_text(text_, text);
  start_->setVisible(link == LinkState::kNoAgent && is_here(node_));
  retry_->setVisible(!start_->isVisibleTo(this));
  commands_->setVisible(link == LinkState::kNoAgent);
  // Of a missing agent it says what stands above.
  const QString problem = link == LinkState::kNoAgent ? QString() : QString::fromStdString(node_.link().problem());
  set_plain_text(problem_, problem);
  problem_card_->setVisible(!problem.isEmpty());
  showIcon();
}

void UnreachedView::showIcon() {
  const bool refused = node_.link().state() == LinkState::kRefused;
  const Tone tone = refused ? Tone::kBad : Tone::kWarning;
  icon_->setPixmap(
      icon_pixmap(refused ? "error" : "offline", colours_of(palette()).of(tone), kIcon, devicePixelRatioF()));
}

void UnreachedView::changeEvent(QEvent* event) {
  QWidget::changeEvent(event);
  if (event->type() == QEvent::PaletteChange) showIcon();
}

}  // namespace atl
