#include "app/gui/organise/organise_window.h"

#include <QAction>
#include <QStackedWidget>

#include "app/core/hub_model.h"
#include "app/gui/organise/create_run_page.h"
#include "app/gui/organise/hub_page.h"
#include "app/gui/parts/roomy_scroll.h"
#include "app/gui/parts/screen_fit.h"

namespace atl {

OrganiseWindow::OrganiseWindow(HubModel& hub, QWidget* parent)
    : QMainWindow(parent),
      hub_(hub),
      stack_(new QStackedWidget),
      create_(new CreateRunPage(hub)),
      page_(new HubPage(hub)) {
  setObjectName("organise_window");
  auto* scroll = new RoomyScroll(create_);
  scroll->setAccessibleName(tr("A run of your own"));
  stack_->addWidget(scroll);
  stack_->addWidget(new RoomyScroll(page_));
  setCentralWidget(stack_);
  auto* close = new QAction(tr("&Close"), this);
  close->setShortcut(QKeySequence::Close);
  connect(close, &QAction::triggered, this, &QWidget::close);
  addAction(close);
  connect(&hub_, &HubModel::changed, this, &OrganiseWindow::refresh);
  new ScreenFit(*this, {880, 720});
  refresh();
}

void OrganiseWindow::refresh() {
  // While the run is being made its page stays, whatever is on the disk already.
  const bool made = hub_.exists() && !(hub_.busy() && stack_->currentIndex() == 0 && !hub_.serving());
  const int page = made ? 1 : 0;
  if (stack_->currentIndex() != page || focusWidget() == nullptr) {
    stack_->setCurrentIndex(page);
    made ? page_->setFocus() : create_->setFocus();
  }
  const auto& state = hub_.state();
  setWindowTitle(state ? tr("%1 - your run").arg(QString::fromStdString(state->name)) : tr("Host a run"));
}

}  // namespace atl
