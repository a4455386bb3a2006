#include "app/gui/parts/table.h"

#include <QHeaderView>
#include <QSortFilterProxyModel>
#include <QTableView>

namespace atl {

QTableView* make_table(QAbstractItemModel& model, int sort_role, const char* name, const QString& spoken_name,
                       int stretched) {
  auto* view = new QTableView;
  auto* sorted = new QSortFilterProxyModel(view);
  sorted->setSourceModel(&model);
  sorted->setSortRole(sort_role);
  sorted->setSortCaseSensitivity(Qt::CaseInsensitive);
  view->setModel(sorted);
  view->setObjectName(name);
  view->setAccessibleName(spoken_name);
  view->setSortingEnabled(true);
  view->horizontalHeader()->setSortIndicator(-1, Qt::AscendingOrder);  // as the model has them
  view->setSelectionBehavior(QAbstractItemView::SelectRows);
  view->setSelectionMode(QAbstractItemView::SingleSelection);
  view->setEditTriggers(QAbstractItemView::NoEditTriggers);
  view->setShowGrid(false);
  view->setWordWrap(false);
  view->setTabKeyNavigation(false);  // Tab leaves the table
  view->setHorizontalScrollMode(QAbstractItemView::ScrollPerPixel);
  view->setVerticalScrollMode(QAbstractItemView::ScrollPerPixel);
  view->verticalHeader()->hide();
  view->verticalHeader()->setDefaultSectionSize(view->fontMetrics().height() + 14);
  QHeaderView* header = view->horizontalHeader();
  header->setHighlightSections(false);
  header->setDefaultAlignment(Qt::AlignLeft | Qt::AlignVCenter);
  header->setSectionResizeMode(QHeaderView::ResizeToContents);
  header->setResizeContentsPrecision(50);  // rows that are looked at for it
  if (stretched < model.columnCount()) header->setSectionResizeMode(stretched, QHeaderView::Stretch);
  return view;
}

}  // namespace atl
