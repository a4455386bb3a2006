// A panel with a title and what belongs to it; at the right of the title there is room for a button or two. Owned by
// its page; GUI thread.
#pragma once

#include <QFrame>

class QHBoxLayout;
class QLabel;
class QVBoxLayout;

namespace atl {

class Card : public QFrame {
  Q_OBJECT

 public:
  explicit Card(const QString& title = {}, QWidget* parent = nullptr);

  QVBoxLayout* body() const { return body_; }
  void addToHeader(QWidget* widget);
  void setTitle(const QString& title);

 protected:
  void paintEvent(QPaintEvent* event) override;

 private:
  QLabel* title_;
  QHBoxLayout* header_;
  QVBoxLayout* body_;
};

}  // namespace atl
