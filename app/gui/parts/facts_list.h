// Captions and their values beneath each other, aligned; the keyboard reaches each value and copies it. Owned by its
// card; GUI thread.
#pragma once

#include <vector>

#include <QWidget>

class QGridLayout;
class QLabel;

namespace atl {

class FactsList : public QWidget {
  Q_OBJECT

 public:
  explicit FactsList(QWidget* parent = nullptr);

  int add(const char* name, const QString& caption);  // its index; `name`: by which tests find the value
  void set(int index, const QString& value);
  void setGreyed(bool greyed);

 private:
  struct Row {
    QString caption;
    QLabel* value;
  };
  QGridLayout* grid_;
  std::vector<Row> rows_;
};

}  // namespace atl
