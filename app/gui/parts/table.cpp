#include "app/gui/parts/table.h"

#include <algorithm>

#include <QHeaderView>
#include <QIdentityProxyModel>
#include <QScrollBar>
#include <QSortFilterProxyModel>
#include <QTableView>

namespace atl {
namespace {

// A heading stands as what is beneath it: figures and their heading at the right.
template <class Proxy>
class Aligned : public Proxy {
 public:
  using Proxy::Proxy;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override {
    if (role == Qt::TextAlignmentRole && orientation == Qt::Horizontal && this->rowCount() > 0) {
      return this->index(0, section).data(Qt::TextAlignmentRole);
    }
    return Proxy::headerData(section, orientation, role);
  }
};

QTableView* make_view(QAbstractProxyModel* shown, QAbstractItemModel& model, const char* name,
                      const QString& spoken_name) {
  auto* view = new QTableView;
  shown->setParent(view);
  shown->setSourceModel(&model);
  view->setModel(shown);
  view->setObjectName(name);
  view->setAccessibleName(spoken_name);
  view->setSelectionBehavior(QAbstractItemView::SelectRows);
  view->setSelectionMode(QAbstractItemView::SingleSelection);
  view->setEditTriggers(QAbstractItemView::NoEditTriggers);
  view->setShowGrid(false);
  view->setWordWrap(false);
  view->setTabKeyNavigation(false);  // Tab leaves the table
  view->setHorizontalScrollMode(QAbstractItemView::ScrollPerPixel);
  view->setVerticalScrollMode(QAbstractItemView::ScrollPerPixel);
  view->viewport()->setAutoFillBackground(false);  // the card's ground, also of what is disabled
  view->verticalHeader()->hide();
  view->verticalHeader()->setDefaultSectionSize(view->fontMetrics().height() + 14);
  QHeaderView* header = view->horizontalHeader();
  header->setHighlightSections(false);
  header->setDefaultAlignment(Qt::AlignLeft | Qt::AlignVCenter);
  header->setSectionResizeMode(QHeaderView::ResizeToContents);
  header->setResizeContentsPrecision(50);  // rows that are looked at for it
  return view;
}

}  // namespace

QTableView* make_table(QAbstractItemModel& model, int sort_role, const char* name, const QString& spoken_name,
                       int stretched) {
  auto* sorted = new Aligned<QSortFilterProxyModel>;
  sorted->setSortRole(sort_role);
  sorted->setSortCaseSensitivity(Qt::CaseInsensitive);
  QTableView* view = make_view(sorted, model, name, spoken_name);
  view->setSortingEnabled(true);
  QHeaderView* header = view->horizontalHeader();
  header->setSortIndicator(-1, Qt::AscendingOrder);  // as the model has them
  if (stretched < model.columnCount()) header->setSectionResizeMode(stretched, QHeaderView::Stretch);
  return view;
}

QTableView* make_plain_table(QAbstractItemModel& model, const char* name, const QString& spoken_name) {
  QTableView* view = make_view(new Aligned<QIdentityProxyModel>, model, name, spoken_name);
  view->horizontalHeader()->setSectionsClickable(false);
  return view;
}

void fit_height(QTableView& view, int most) {
  const int rows = std::clamp(view.model()->rowCount(), 1, most);
  const QScrollBar* across = view.horizontalScrollBar();
  const int bar = across->maximum() > 0 ? across->sizeHint().height() : 0;
  view.setFixedHeight(view.horizontalHeader()->sizeHint().height() +
                      rows * view.verticalHeader()->defaultSectionSize() + 2 + bar);
}

}  // namespace atl
