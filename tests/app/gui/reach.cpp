#include "tests/app/gui/reach.h"

#include <QAbstractButton>
#include <QAbstractItemView>
#include <QAbstractSpinBox>
#include <QAccessible>
#include <QApplication>
#include <QComboBox>
#include <QLabel>
#include <QMap>
#include <QScrollArea>
#include <QSet>
#include <QtTest>

namespace atl::test {
namespace {

constexpr int kMostControls = 500;

QString described(const QWidget* widget) {
  QString text = widget->metaObject()->className();
  if (!widget->objectName().isEmpty()) text += " " + widget->objectName();
  if (const auto* button = qobject_cast<const QAbstractButton*>(widget)) text += " '" + button->text() + "'";
  if (const auto* label = qobject_cast<const QLabel*>(widget)) text += " '" + label->text().left(60) + "'";
  return text;
}

// Parts that Qt makes take the keyboard for the control whose parts they are.
bool is_part(const QWidget* widget) {
  const QWidget* parent = widget->parentWidget();
  return widget->objectName().startsWith("qt_") || widget->focusProxy() != nullptr ||
         qobject_cast<const QAbstractSpinBox*>(parent) != nullptr || qobject_cast<const QComboBox*>(parent) != nullptr;
}

bool is_control(const QWidget* widget) {
  return widget->isVisible() && widget->isEnabled() && (widget->focusPolicy() & Qt::TabFocus) != 0 && !is_part(widget);
}

QList<QWidget*> controls(const QWidget& window) {
  QList<QWidget*> found;
  for (QWidget* widget : window.findChildren<QWidget*>()) {
    if (is_control(widget) && widget->window() == &window) found << widget;
  }
  return found;
}

}  // namespace

QStringList unnamed_controls(const QWidget& window) {
  QStringList found;
  for (QWidget* widget : controls(window)) {
    const QAccessibleInterface* accessible = QAccessible::queryAccessibleInterface(widget);
    if (accessible == nullptr || accessible->text(QAccessible::Name).trimmed().isEmpty()) found << described(widget);
  }
  return found;
}

QStringList unreached_controls(QWidget& window) {
  QSet<QWidget*> reached;
  const QList<QWidget*> all = controls(window);
  if (all.isEmpty()) return {};
  window.activateWindow();
  if (!QTest::qWaitForWindowActive(&window)) return {"the window does not become active"};
  all.front()->setFocus();
  for (int i = 0; i < kMostControls; ++i) {
    QWidget* focus = QApplication::focusWidget();
    if (focus == nullptr || (reached.contains(focus) && i > all.size())) break;
    for (QWidget* at = focus; at != nullptr; at = at->parentWidget()) reached << at;
    QTest::keyClick(focus, Qt::Key_Tab);
  }
  QStringList found;
  for (QWidget* widget : all) {
    if (!reached.contains(widget)) found << described(widget);
  }
  return found;
}

QStringList shared_mnemonics(const QWidget& window) {
  QMap<QString, QStringList> chosen;
  for (const QWidget* widget : window.findChildren<QWidget*>()) {
    if (!widget->isVisible() || !widget->isEnabled() || widget->window() != &window) continue;
    const auto* label = qobject_cast<const QLabel*>(widget);
    const auto* button = qobject_cast<const QAbstractButton*>(widget);
    const QKeySequence key = button != nullptr                               ? button->shortcut()
                             : label != nullptr && label->buddy() != nullptr ? QKeySequence::mnemonic(label->text())
                                                                             : QKeySequence();
    if (!key.isEmpty()) chosen[key.toString()] << described(widget);
  }
  QStringList found;
  for (const auto& [key, widgets] : chosen.asKeyValueRange()) {
    if (widgets.size() > 1) found << key + ": " + widgets.join(", ");
  }
  return found;
}

QStringList controls_out_of_reach(const QWidget& window) {
  QStringList found;
  for (const QWidget* widget : controls(window)) {
    if (qobject_cast<const QAbstractItemView*>(widget->parentWidget()) != nullptr) continue;  // a part of it
    QRect place = widget->rect();
    const QWidget* at = widget;
    while (at != &window && at != nullptr) {
      const QWidget* holder = at->parentWidget();
      place.translate(at->pos());
      const auto* scroll = holder != nullptr ? qobject_cast<const QScrollArea*>(holder->parentWidget()) : nullptr;
      if (scroll != nullptr && scroll->widget() == at) {
        if (!at->geometry().contains(place)) break;
        at = scroll;  // any part of it is scrolled to
        place = QRect(QPoint(0, 0), scroll->size());
        continue;
      }
      if (holder == nullptr || !holder->rect().contains(place)) break;
      at = holder;
    }
    if (at != &window) {
      found << QString("%1 at %2,%3 %4x%5 beyond %6")
                   .arg(described(widget))
                   .arg(place.x())
                   .arg(place.y())
                   .arg(place.width())
                   .arg(place.height())
                   .arg(at != nullptr && at->parentWidget() != nullptr ? described(at->parentWidget()) : QString());
    }
  }
  return found;
}

QStringList cut_texts(const QWidget& window) {
  QStringList found;
  for (const QWidget* widget : window.findChildren<QWidget*>()) {
    if (!widget->isVisible() || widget->window() != &window) continue;
    const auto* label = qobject_cast<const QLabel*>(widget);
    const auto* button = qobject_cast<const QAbstractButton*>(widget);
    if ((label == nullptr || label->text().isEmpty()) && (button == nullptr || button->text().isEmpty())) continue;
    QSize needed = widget->sizeHint();
    if (widget->hasHeightForWidth()) needed = {0, widget->heightForWidth(widget->width())};
    const bool fits = widget->width() >= needed.width() && widget->height() >= needed.height();
    if (!fits) {
      found << QString("%1: %2x%3 of %4x%5")
                   .arg(described(widget))
                   .arg(widget->width())
                   .arg(widget->height())
                   .arg(needed.width())
                   .arg(needed.height());
    }
  }
  return found;
}

}  // namespace atl::test
