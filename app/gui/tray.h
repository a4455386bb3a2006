// The icon in the desktop's tray, and notifications: an island has joined, has finished, has failed; nothing else.
// Where the desktop has no tray it does nothing. Owned by main(); GUI thread.
#pragma once

#include <memory>

#include <QMenu>
#include <QObject>
#include <QString>
#include <QSystemTrayIcon>

#include "app/core/alert_list.h"

namespace atl {

class Node;
class Nodes;

class Tray : public QObject {
  Q_OBJECT

 public:
  explicit Tray(Nodes& nodes, QObject* parent = nullptr);

  // False: closing the window must end the program, or nobody would find it again.
  bool isShown() const;
  // Done for those of `nodes`.
  void watch(Node* node);

 Q_SIGNALS:
  void showWanted();
  void quitWanted();
  // Also where there is no tray to show it.
  void notified(const QString& title, const QString& text);

 private:
  void take(Node* node, const Alert& alert);
  void refresh();

  Nodes& nodes_;
  std::unique_ptr<QMenu> menu_;
  QSystemTrayIcon icon_;
};

}  // namespace atl
