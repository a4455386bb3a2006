// The rows of a node check: verdict, what was looked at, the figure, and what to do, which can be copied. What fails
// and what warns comes first once the check is over. The page "Check" and the join wizard show the same table. GUI
// thread.
#pragma once

#include <vector>

#include <QSortFilterProxyModel>
#include <QWidget>

#include "net/check/check_row.h"

class QHBoxLayout;
class QPushButton;
class QTableView;

namespace atl {

class CheckModel;

// Words, icons and names for screen readers over what CheckModel holds, and the order of a check that is over; while
// one runs, rows stay where they came.
class CheckRowsView : public QSortFilterProxyModel {
  Q_OBJECT

 public:
  explicit CheckRowsView(CheckModel& model, QObject* parent = nullptr);
  QVariant data(const QModelIndex& index, int role) const override;
  const CheckRow* rowAt(int row) const;  // as they are shown; null: no such row

 protected:
  bool lessThan(const QModelIndex& left, const QModelIndex& right) const override;

 private:
  void order();

  CheckModel& model_;
};

class CheckTable : public QWidget {
  Q_OBJECT

 public:
  explicit CheckTable(CheckModel& model, QWidget* parent = nullptr);

  // At the right, in line with the buttons that copy.
  void addButton(QPushButton* button);

 private:
  void makeTable();
  void copyFix();
  void copyAll();
  void chooseFirst();
  void fitHeight();
  void fitWidth();
  void refresh();
  std::vector<const CheckRow*> withFixes() const;

  CheckModel& model_;
  CheckRowsView* rows_;
  QTableView* table_;
  QHBoxLayout* bar_;
  QPushButton* copy_;
  QPushButton* copy_all_;
  bool was_running_ = true;
};

}  // namespace atl
