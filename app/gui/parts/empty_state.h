// What a page says in the place of its content: why there is nothing, and what to do about it. Owned by its page; GUI
// thread.
#pragma once

#include <QWidget>

class QLabel;
class QPushButton;

namespace atl {

class EmptyState : public QWidget {
  Q_OBJECT

 public:
  explicit EmptyState(QWidget* parent = nullptr);

  // `icon`: of resources/icons. `action`: on the button; empty: none.
  void say(const char* icon, const QString& title, const QString& text, const QString& action = {});
  QString title() const;

 Q_SIGNALS:
  void acted();

 protected:
  void changeEvent(QEvent* event) override;

 private:
  void showIcon();

  const char* icon_name_ = "info";
  QLabel* icon_;
  QLabel* title_;
  QLabel* text_;
  QPushButton* action_;
};

}  // namespace atl
