#include "app/gui/tray.h"

#include "app/core/node.h"
#include "app/core/nodes.h"
#include "app/gui/app_icon.h"

namespace atl {
namespace {

// Notification servers and panels read markup, and an error or a name may hold anything.
QString without_markup(QString text) {
  return text.replace('<', QChar(0x2039)).replace('>', QChar(0x203A)).replace('&', '+');
}

}  // namespace

Tray::Tray(Nodes& nodes, QObject* parent) : QObject(parent), nodes_(nodes), menu_(std::make_unique<QMenu>()) {
  connect(menu_->addAction(tr("&Show Atoll")), &QAction::triggered, this, &Tray::showWanted);
  menu_->addSeparator();
  connect(menu_->addAction(tr("&Quit the app (training goes on)")), &QAction::triggered, this, &Tray::quitWanted);
  icon_.setIcon(app_icon());
  icon_.setContextMenu(menu_.get());
  connect(&icon_, &QSystemTrayIcon::activated, this, [this](QSystemTrayIcon::ActivationReason reason) {
    if (reason == QSystemTrayIcon::Trigger || reason == QSystemTrayIcon::DoubleClick) Q_EMIT showWanted();
  });
  connect(&icon_, &QSystemTrayIcon::messageClicked, this, &Tray::showWanted);
  for (const auto& node : nodes_.all()) watch(node.get());
  connect(&nodes_, &Nodes::added, this, &Tray::watch);
  refresh();
  if (QSystemTrayIcon::isSystemTrayAvailable()) icon_.show();
}

bool Tray::isShown() const { return icon_.isVisible() && QSystemTrayIcon::isSystemTrayAvailable(); }

void Tray::watch(Node* node) {
  connect(node, &Node::changed, this, &Tray::refresh);
  connect(node, &Node::alerted, this, [this, node](const Alert& alert) { take(node, alert); });
}

void Tray::take(Node* node, const Alert& alert) {
  if (alert.level == Alert::Level::kWarning) return;  // seen in the window, when somebody looks
  const QString title = label(node->address());
  const QString text = QString::fromStdString(alert.text);
  const auto kind = alert.level == Alert::Level::kError ? QSystemTrayIcon::Critical : QSystemTrayIcon::Information;
  if (isShown()) icon_.showMessage(title, without_markup(text), kind);
  Q_EMIT notified(title, text);
}

void Tray::refresh() {
  QString text = tr("Atoll");
  for (const auto& node : nodes_.all()) {
    if (!node->state() || !node->state()->joined()) continue;
    text += "\n" + tr("%1: run %2").arg(label(node->address()), QString::fromStdString(node->state()->island.run_name));
  }
  text = without_markup(text);
  if (icon_.toolTip() != text) icon_.setToolTip(text);
}

}  // namespace atl
