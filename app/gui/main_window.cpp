#include "app/gui/main_window.h"

#include <QAction>
#include <QActionGroup>
#include <QApplication>
#include <QCloseEvent>
#include <QHBoxLayout>
#include <QMenu>
#include <QMessageBox>
#include <QPushButton>
#include <QStackedWidget>

#include "app/core/hub_model.h"
#include "app/core/nodes.h"
#include "app/core/streams.h"
#include "app/gui/add_node_dialog.h"
#include "app/gui/demo_page.h"
#include "app/gui/diagnostics_dialog.h"
#include "app/gui/island_text.h"
#include "app/gui/join_wizard/join_wizard.h"
#include "app/gui/look/icons.h"
#include "app/gui/node_header.h"
#include "app/gui/node_view.h"
#include "app/gui/organise/organise_window.h"
#include "app/gui/parts/question.h"
#include "app/gui/parts/roomy_scroll.h"
#include "app/gui/parts/screen_fit.h"
#include "app/gui/side_bar.h"
#include "net/control/home.h"

namespace atl {
namespace {

constexpr QSize kUsual{1280, 800}, kLeast{480, 320};
constexpr int kNarrow = 820;  // here the side bar gives its room to the page

}  // namespace

MainWindow::MainWindow(Nodes& nodes, Theme& theme, QWidget* parent)
    : QMainWindow(parent), nodes_(nodes), theme_(theme), side_bar_(new SideBar(nodes)), stack_(new QStackedWidget) {
  auto* content = new QWidget;
  auto* row = new QHBoxLayout(content);
  row->setContentsMargins(0, 0, 0, 0);
  row->setSpacing(0);
  row->addWidget(side_bar_);
  row->addWidget(stack_, 1);
  setCentralWidget(content);
  connect(side_bar_, &SideBar::pageChosen, this, &MainWindow::showPage);
  connect(side_bar_, &SideBar::nodeChosen, this, [this](Node* node) { showNode(*node); });
  connect(side_bar_, &SideBar::addNodeWanted, this, &MainWindow::addNode);
  connect(side_bar_, &SideBar::hostWanted, this, &MainWindow::host);
  connect(side_bar_, &SideBar::demoWanted, this, &MainWindow::demo);
  connect(&nodes_, &Nodes::removing, this, &MainWindow::forget);
  makeActions();
  setMinimumSize(kLeast);
  new ScreenFit(*this, kUsual);
  showNode(*nodes_.all().front());
}

MainWindow::~MainWindow() = default;

// Ctrl+1 to Ctrl+8: the pages.
void MainWindow::makeActions() {
  int number = 1;
  for (const PageSpec& spec : page_list()) {
    auto* action = new QAction(spec.title, this);
    action->setShortcut(QKeySequence(QString("Ctrl+%1").arg(number++)));
    connect(action, &QAction::triggered, this, [this, page = spec.id] { showPage(page); });
    addAction(action);
  }
  auto* quit = new QAction(tr("&Quit"), this);
  quit->setShortcut(QKeySequence::Quit);
  connect(quit, &QAction::triggered, this, &MainWindow::quit);
  addAction(quit);
}

NodeView* MainWindow::view() const { return views_.at(side_bar_->node()); }

NodeView* MainWindow::makeView(Node& node) {
  NodeView*& view = views_[&node];
  if (view != nullptr) return view;
  view = new NodeView(node);
  stack_->addWidget(view);
  connect(view, &NodeView::pageWanted, this, &MainWindow::showPage);
  connect(view, &NodeView::joinWanted, this, [this] { join({}); });
  connect(view, &NodeView::hostWanted, this, &MainWindow::host);
  connect(view, &NodeView::demoWanted, this, &MainWindow::demo);
  connect(&node, &Node::changed, this, &MainWindow::refreshTitle);
  fillMenu(*view);
  return view;
}

void MainWindow::fillMenu(NodeView& view) {
  QMenu* menu = view.header()->menu();
  Node* node = &view.node();
  menu->addAction(icon("joining"), tr("&Join a run\u2026"), this, [this] { join({}); });
  menu->addAction(icon("diagnostics"), tr("&Diagnostics\u2026"), this, [this, node] {
    auto* dialog = new DiagnosticsDialog(*node, this);
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->open();
  });
  if (!std::holds_alternative<LocalNode>(node->address())) {
    menu->addAction(icon("remove"), tr("&Forget this machine"), this, [this, node] { nodes_.remove(*node); });
  }
  menu->addSeparator();
  QMenu* looks = menu->addMenu(icon("light"), tr("&Appearance"));
  auto* group = new QActionGroup(looks);
  const std::pair<Theme::Choice, QString> choices[] = {{Theme::Choice::kSystem, tr("As the &system")},
                                                       {Theme::Choice::kLight, tr("&Light")},
                                                       {Theme::Choice::kDark, tr("&Dark")}};
  for (const auto& [choice, text] : choices) {
    QAction* action = looks->addAction(text);
    action->setCheckable(true);
    group->addAction(action);
    connect(action, &QAction::triggered, this, [this, choice = choice] { theme_.setChoice(choice); });
    connect(looks, &QMenu::aboutToShow, action,
            [this, action, choice = choice] { action->setChecked(theme_.choice() == choice); });
  }
}

void MainWindow::showNode(Node& node) {
  side_bar_->chooseNode(&node);
  NodeView* view = makeView(node);
  view->showPage(page_);
  stack_->setCurrentWidget(view);
  side_bar_->choosePage(page_);
  refreshTitle();
}

void MainWindow::showPage(PageId page) {
  page_ = page;
  if (side_bar_->node() != nullptr) showNode(*side_bar_->node());
}

Node& MainWindow::thisMachine() const {
  for (const auto& node : nodes_.all()) {
    if (std::holds_alternative<LocalNode>(node->address())) return *node;
  }
  return *nodes_.all().front();
}

// Of the chosen machine; a link that the desktop opened is for this one, too, as long as no other is chosen. One wizard
// at a time: it is in front of the window, and two would share the machine's joining.
void MainWindow::join(const QString& invite) {
  if (!wizard_ || !wizard_->isVisible()) {
    Node* node = side_bar_->node();
    wizard_ = new JoinWizard(node != nullptr ? *node : thisMachine(), this);
    wizard_->setAttribute(Qt::WA_DeleteOnClose);
  }
  if (!invite.isEmpty()) wizard_->setInviteText(invite);
  wizard_->open();
  wizard_->raise();
  wizard_->activateWindow();
}

void MainWindow::host() {
  if (!organise_) {
    const auto home = default_hub_home();
    if (!home.ok()) {
      QMessageBox* box =
          make_question(this, tr("Runs of your own"), QString::fromStdString(home.error().message), QString());
      box->setIcon(QMessageBox::Warning);
      box->addButton(QMessageBox::Ok);
      box->open();
      return;
    }
    const HubHome hub_home{*home};
    hub_ = std::make_unique<HubModel>(hub_home, open_hub(hub_home), make_run_command(LocalNode{}));
    organise_ = std::make_unique<OrganiseWindow>(*hub_);
    hub_->start();
  }
  organise_->show();
  organise_->raise();
  organise_->activateWindow();
}

void MainWindow::demo() {
  if (demo_ == nullptr) {
    demo_ = new DemoPage(thisMachine());
    stack_->addWidget(demo_scroll_ = new RoomyScroll(demo_));
  }
  stack_->setCurrentWidget(demo_scroll_);
  side_bar_->chooseNoPage();
  refreshTitle();
}

void MainWindow::addNode() {
  auto* dialog = new AddNodeDialog(this);
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  connect(dialog, &QDialog::accepted, this, [this, dialog] { showNode(nodes_.add(dialog->address())); });
  dialog->open();
}

void MainWindow::toFront() {
  show();
  setWindowState(windowState() & ~Qt::WindowMinimized);
  raise();
  activateWindow();
}

void MainWindow::forget(Node* node) {
  const auto found = views_.find(node);
  if (found == views_.end()) return;
  stack_->removeWidget(found->second);
  found->second->deleteLater();  // it may be its own menu that asked for this
  views_.erase(found);
}

void MainWindow::refreshTitle() {
  Node* node = side_bar_->node();
  if (demo_scroll_ != nullptr && stack_->currentWidget() == demo_scroll_) return setWindowTitle(tr("Demo - Atoll"));
  if (node == nullptr || !node->state() || node->state()->island.run_name.empty()) return setWindowTitle(tr("Atoll"));
  setWindowTitle(
      tr("%1: %2 - Atoll").arg(text::state_word(*node).word, QString::fromStdString(node->state()->island.run_name)));
}

// The app's end is a demo's end; all else goes on without it.
bool MainWindow::mayEnd() {
  if (demo_ == nullptr || !demo_->running()) return true;
  QMessageBox box(QMessageBox::Question, tr("A demo is running"), tr("It ends with this app. End it?"),
                  QMessageBox::NoButton, this);
  const auto* end = box.addButton(tr("&End the demo"), QMessageBox::DestructiveRole);
  box.setDefaultButton(box.addButton(tr("Cancel"), QMessageBox::RejectRole));
  box.exec();
  return box.clickedButton() == end;
}

void MainWindow::quit() {
  if (!mayEnd()) return;
  QApplication::quit();
}

void MainWindow::resizeEvent(QResizeEvent* event) {
  QMainWindow::resizeEvent(event);
  side_bar_->setNarrow(width() < kNarrow);
}

// With an icon in the tray the app goes on without its window.
void MainWindow::closeEvent(QCloseEvent* event) {
  if (QApplication::quitOnLastWindowClosed() && !mayEnd()) return event->ignore();
  if (organise_) organise_->close();
  QMainWindow::closeEvent(event);
}

}  // namespace atl
