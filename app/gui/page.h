// What the dashboard's pages share: they look at their node soon after news, at most ten times a second, and only while
// they are seen. Owned by a NodeView; GUI thread.
#pragma once

#include <QTimer>
#include <QWidget>

class QVBoxLayout;

namespace atl {

class Node;

enum class PageId { kOverview, kTraining, kSync, kGpus, kCheckpoints, kCheck, kLogs, kSettings };

class Page : public QWidget {
  Q_OBJECT

 public:
  explicit Page(Node& node, QWidget* parent = nullptr);

 Q_SIGNALS:
  void pageWanted(atl::PageId page);

 protected:
  Node& node() const { return node_; }
  // Shows what the node knows now. Called while the page is seen.
  virtual void refresh() = 0;
  void refreshSoon();
  // The layout of what scrolls when it is higher than the page. Once, from the constructor.
  QVBoxLayout* makeScrollingColumn();

  void showEvent(QShowEvent* event) override;

 private:
  Node& node_;
  QTimer soon_;
  QTimer tick_;  // figures age without news
};

}  // namespace atl
