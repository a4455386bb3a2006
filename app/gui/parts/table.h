// A table of a model's rows, sorted by its columns, as every page shows them. GUI thread.
#pragma once

class QAbstractItemModel;
class QString;
class QTableView;

namespace atl {

// `sort_role`: holds the number or text behind what is shown. The first column takes what is left of the width unless
// `stretched` names another. The view owns what it needs; the model outlives it.
QTableView* make_table(QAbstractItemModel& model, int sort_role, const char* name, const QString& spoken_name,
                       int stretched = 0);
// In the model's own order.
QTableView* make_plain_table(QAbstractItemModel& model, const char* name, const QString& spoken_name);

// As high as its rows, of which it shows one at least and `most`: there is no empty table beneath them.
void fit_height(QTableView& view, int most);

}  // namespace atl
