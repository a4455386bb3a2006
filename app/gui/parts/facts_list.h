// Captions and their values beneath each other, aligned; the keyboard reaches each value and copies it. Owned by its
// card; GUI thread.
#pragma once

#include <vector>

#include <QWidget>

class QGridLayout;
class QHBoxLayout;
class QLabel;

namespace atl {

class FactsList : public QWidget {
  Q_OBJECT

 public:
  explicit FactsList(QWidget* parent = nullptr);

  // `index`: by which it is set, from 0 in order; `name`: by which tests find the value.
  void add(int index, const char* name, const QString& caption);
  void set(int index, const QString& value);
  void setGreyed(bool greyed);
  void setShown(int index, bool shown);
  // Beside one another, where there is the width for it.
  void setColumns(int columns);
  void alignLeft();  // for long values, which would be far from their captions

 private:
  struct Row {
    QString caption;
    QLabel* title;
    QLabel* value;
  };
  void place(const Row& row, int at);

  QHBoxLayout* beside_;
  std::vector<QGridLayout*> columns_;  // equally wide
  std::vector<Row> rows_;
};

}  // namespace atl
