// The desktop app's window: machines and pages at the left, the chosen page of the chosen machine beside them. Closing
// it stops nothing but a demo. Owned by main(), or by a test; GUI thread.
#pragma once

#include <map>
#include <memory>

#include <QMainWindow>
#include <QPointer>

#include "app/gui/look/theme.h"
#include "app/gui/page.h"

class QStackedWidget;

namespace atl {

class DemoPage;
class HubModel;
class JoinWizard;
class NodeView;
class Nodes;
class OrganiseWindow;
class SideBar;

class MainWindow : public QMainWindow {
  Q_OBJECT

 public:
  // Both outlive it. There is one node at least.
  MainWindow(Nodes& nodes, Theme& theme, QWidget* parent = nullptr);
  ~MainWindow() override;

  void showPage(PageId page);
  void showNode(Node& node);
  NodeView* view() const;  // of the chosen machine
  // The wizard with what somebody pasted or clicked; empty: it asks for it. There is one: an open one takes it.
  void join(const QString& invite);
  void host();
  void demo();
  void addNode();
  void toFront();
  void quit();

 protected:
  void closeEvent(QCloseEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;

 private:
  NodeView* makeView(Node& node);
  void fillMenu(NodeView& view);
  void makeActions();
  void forget(Node* node);
  void refreshTitle();
  Node& thisMachine() const;
  bool mayEnd();

  Nodes& nodes_;
  Theme& theme_;
  SideBar* side_bar_;
  QStackedWidget* stack_;
  std::map<Node*, NodeView*> views_;
  PageId page_ = PageId::kOverview;
  DemoPage* demo_ = nullptr;
  QWidget* demo_scroll_ = nullptr;  // around it
  QPointer<JoinWizard> wizard_;     // while it is open
  std::unique_ptr<HubModel> hub_;
  std::unique_ptr<OrganiseWindow> organise_;
};

}  // namespace atl
