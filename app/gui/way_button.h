// A large button for a way to begin: icon, what it is called, and what it does. Owned by its page; GUI thread.
#pragma once

#include <QAbstractButton>
#include <QString>

namespace atl {

class WayButton : public QAbstractButton {
  Q_OBJECT

 public:
  // `icon`: of resources/icons. `title` may name a key (&).
  WayButton(const char* icon, const QString& title, const QString& what, QWidget* parent = nullptr);

  QSize sizeHint() const override;
  bool hasHeightForWidth() const override { return true; }
  int heightForWidth(int width) const override;

 protected:
  void paintEvent(QPaintEvent* event) override;
  void enterEvent(QEnterEvent* event) override;
  void leaveEvent(QEvent* event) override;

 private:
  QFont titleFont() const;
  int textWidth(int width) const;

  const char* const icon_name_;
  const QString what_;
};

}  // namespace atl
