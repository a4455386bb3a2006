// The rows of a node check: verdict, what was looked at, the figure, and what to do, which can be copied. The page
// "Check" and the join wizard show the same table. GUI thread.
#pragma once

#include <QIdentityProxyModel>
#include <QWidget>

#include "net/check/check_row.h"

class QPushButton;
class QTableView;

namespace atl {

class CheckModel;

// "Free disk space" of "disk.free"; the id itself of a row that this version does not know.
QString check_title(const std::string& id);
QString verdict_word(Verdict verdict);

// Words, icons and names for screen readers over what CheckModel holds.
class CheckRowsView : public QIdentityProxyModel {
  Q_OBJECT

 public:
  explicit CheckRowsView(CheckModel& model, QObject* parent = nullptr);
  QVariant data(const QModelIndex& index, int role) const override;

 private:
  CheckModel& model_;
};

class CheckTable : public QWidget {
  Q_OBJECT

 public:
  explicit CheckTable(CheckModel& model, QWidget* parent = nullptr);

 private:
  void copyFix();
  void fitHeight();
  void refresh();

  CheckModel& model_;
  QTableView* table_;
  QPushButton* copy_;
};

}  // namespace atl
