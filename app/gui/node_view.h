// One machine in the window: its header and its pages, each made when it is first shown; or, where nothing was joined
// yet, the ways to begin. Owned by the main window; GUI thread.
#pragma once

#include <map>
#include <vector>

#include <QWidget>

#include "app/gui/page.h"

class QStackedWidget;

namespace atl {

class EmptyState;
class FirstStart;
class NodeHeader;
class UnreachedView;

struct PageSpec {
  PageId id;
  const char* name;  // of its object
  const char* icon;
  QString title;
  QWidget* (*make)(Node& node);
};
const std::vector<PageSpec>& page_list();  // in the order of the side bar

class NodeView : public QWidget {
  Q_OBJECT

 public:
  explicit NodeView(Node& node, QWidget* parent = nullptr);

  Node& node() const { return node_; }
  NodeHeader* header() const { return header_; }
  void showPage(PageId page);
  PageId page() const { return page_; }
  QWidget* pageWidget() const;  // the one that is shown; null: the ways to begin
  bool showsFirstStart() const;

 Q_SIGNALS:
  void pageWanted(atl::PageId page);
  void joinWanted();
  void hostWanted();
  void demoWanted();

 private:
  QWidget* made(PageId page);
  QWidget* withoutState();
  void refresh();

  Node& node_;
  NodeHeader* header_;
  QStackedWidget* stack_;
  FirstStart* first_start_;
  UnreachedView* unreached_;
  EmptyState* loading_;
  // What the stack holds for a page: the page within what scrolls it.
  QWidget* held(QWidget* page);

  std::map<PageId, QWidget*> pages_;
  QWidget* shown_ = nullptr;
  PageId page_ = PageId::kOverview;
};

}  // namespace atl
