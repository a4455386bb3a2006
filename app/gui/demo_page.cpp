#include "app/gui/demo_page.h"

#include <QStackedWidget>
#include <QVBoxLayout>

#include "app/core/node.h"
#include "app/gui/demo/demo_choice.h"
#include "app/gui/demo/demo_progress.h"
#include "app/gui/demo/demo_runner.h"
#include "app/gui/demo/demo_summary_view.h"
#include "net/control/home.h"

namespace atl {
namespace {

QString demo_directory() {
  const auto state = state_directory();
  return state.ok() ? QString::fromStdString((*state / "demo" / "app").string()) : QString();
}

}  // namespace

DemoPage::DemoPage(Node& node, QWidget* parent)
    : QWidget(parent), runner_(std::make_unique<DemoRunner>(node.run(), demo_directory())), stack_(new QStackedWidget) {
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(20, 16, 20, 16);
  column->addWidget(stack_);
  stack_->addWidget(choice_ = new DemoChoice);
  stack_->addWidget(progress_ = new DemoProgress(*runner_));
  stack_->addWidget(summary_ = new DemoSummaryView(*runner_));
  const bool here = std::holds_alternative<LocalNode>(node.address());
  choice_->setPossible(here && !demo_directory().isEmpty());
  connect(choice_, &DemoChoice::startWanted, this, &DemoPage::begin);
  connect(summary_, &DemoSummaryView::againWanted, this, [this] { stack_->setCurrentWidget(choice_); });
  connect(runner_.get(), &DemoRunner::ended, this, &DemoPage::ended);
}

// The views look at the runner: they go first.
DemoPage::~DemoPage() { delete stack_; }

bool DemoPage::running() const { return runner_->running(); }

void DemoPage::begin() {
  choice_->showProblem({});
  stack_->setCurrentWidget(progress_);
  progress_->setFocus();
  runner_->start(choice_->wish());
}

void DemoPage::ended() {
  if (runner_->outcome()) {
    summary_->showOutcome();
    stack_->setCurrentWidget(summary_);
    summary_->setFocus();
    return;
  }
  choice_->showProblem(runner_->wasStopped() ? QString() : runner_->problem());
  stack_->setCurrentWidget(choice_);
}

}  // namespace atl
