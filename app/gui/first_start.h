// What a person sees who opens the app for the first time: three ways to begin. Owned by the main window; GUI thread.
#pragma once

#include <QWidget>

namespace atl {

class Node;
class Notice;
class WayButton;

class FirstStart : public QWidget {
  Q_OBJECT

 public:
  explicit FirstStart(Node& node, QWidget* parent = nullptr);

 Q_SIGNALS:
  void joinWanted();
  void hostWanted();
  void demoWanted();

 private:
  void refresh();

  Node& node_;
  WayButton* join_;
  WayButton* host_;
  WayButton* demo_;
  Notice* notice_;
};

}  // namespace atl
