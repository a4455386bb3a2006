#include "app/gui/first_start.h"

#include <QLabel>
#include <QVBoxLayout>

#include "app/core/node.h"
#include "app/gui/app_icon.h"
#include "app/gui/parts/notice.h"
#include "app/gui/parts/plain_label.h"
#include "app/gui/way_button.h"

namespace atl {
namespace {

constexpr int kSign = 64;
constexpr int kWidest = 720;  // longer lines are hard to read

}  // namespace

FirstStart::FirstStart(Node& node, QWidget* parent) : QWidget(parent), node_(node) {
  auto* outer = new QHBoxLayout(this);
  auto* held = new QWidget;
  held->setMaximumWidth(kWidest);
  auto* column = new QVBoxLayout(held);
  outer->addStretch(1);
  outer->addWidget(held, 100);
  outer->addStretch(1);
  column->setSpacing(12);
  column->addStretch(1);
  auto* sign = new QLabel;
  sign->setPixmap(app_icon().pixmap(QSize(kSign, kSign), devicePixelRatioF()));
  sign->setAccessibleName(tr("Atoll"));
  column->addWidget(sign, 0, Qt::AlignLeft);
  column->addWidget(as_heading(make_sentence(tr("Train one language model together")), 1.9));
  column->addWidget(make_sentence(
      tr("Machines that nobody owns together, the islands, train a model each for a while and then average what they "
         "learned. Nothing trains on this machine before you say so.")));
  column->addSpacing(8);
  join_ =
      new WayButton("invite", tr("&Join a run"),
                    tr("You have an invite from somebody who organises a run. This machine trains with the others."));
  host_ = new WayButton("hub", tr("&Host a run"),
                        tr("Create a run of your own, serve it from this machine, and invite others."));
  demo_ = new WayButton(
      "demo", tr("See a &demo"),
      tr("Three islands on this machine train a small model for five minutes. Nothing leaves the machine."));
  join_->setObjectName("join");
  host_->setObjectName("host");
  demo_->setObjectName("demo");
  for (WayButton* way : {join_, host_, demo_}) column->addWidget(way);
  column->addWidget(notice_ = new Notice("first_start_notice"));
  column->addStretch(2);
  connect(join_, &WayButton::clicked, this, &FirstStart::joinWanted);
  connect(host_, &WayButton::clicked, this, &FirstStart::hostWanted);
  connect(demo_, &WayButton::clicked, this, &FirstStart::demoWanted);
  connect(&node_, &Node::changed, this, &FirstStart::refresh);
  refresh();
}

void FirstStart::refresh() {
  const bool here = std::holds_alternative<LocalNode>(node_.address());
  // A hub and a demo are this machine's; another one is only joined from here.
  host_->setVisible(here);
  demo_->setVisible(here);
  if (node_.link().state() == LinkState::kRefused) {
    notice_->say(Notice::Kind::kError, tr("The agent of this machine cannot be used."),
                 QString::fromStdString(node_.link().problem()));
  } else {
    notice_->clear();
  }
}

}  // namespace atl
