// At the left of the window: which machine, which page, and what belongs to no machine. Owned by the main window; GUI
// thread.
#pragma once

#include <QWidget>

#include "app/gui/page.h"

class QBoxLayout;
class QComboBox;
class QListWidget;
class QVBoxLayout;

namespace atl {

class Nodes;

class SideBar : public QWidget {
  Q_OBJECT

 public:
  explicit SideBar(Nodes& nodes, QWidget* parent = nullptr);

  void choosePage(PageId page);
  void chooseNoPage();  // something else is shown
  void chooseNode(Node* node);
  Node* node() const;
  void setNarrow(bool narrow);  // icons without words

 Q_SIGNALS:
  void pageChosen(atl::PageId page);
  void nodeChosen(atl::Node* node);
  void addNodeWanted();
  void hostWanted();
  void demoWanted();

 protected:
  void paintEvent(QPaintEvent* event) override;

 private:
  QWidget* makeNodes();
  void makePages(QVBoxLayout* column);
  void watch(Node* node);
  void refreshNodes();

  Nodes& nodes_;
  QBoxLayout* nodes_row_ = nullptr;
  QComboBox* node_;
  QListWidget* pages_;
};

}  // namespace atl
