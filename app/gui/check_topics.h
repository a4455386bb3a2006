// What a node check looks at, in the place of its rows before the first one was run. Owned by the page Check; GUI
// thread.
#pragma once

#include <QWidget>

namespace atl {

class Card;

class CheckTopics : public QWidget {
  Q_OBJECT

 public:
  explicit CheckTopics(QWidget* parent = nullptr);

 private:
  Card* makeTopic(const char* icon_name, const QString& title, const QString& what, int topic);
};

}  // namespace atl
