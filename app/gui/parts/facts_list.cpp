#include "app/gui/parts/facts_list.h"

#include <QGridLayout>
#include <QLabel>

#include "app/gui/look/colours.h"
#include "app/gui/plain_label.h"

namespace atl {

FactsList::FactsList(QWidget* parent) : QWidget(parent), grid_(new QGridLayout(this)) {
  grid_->setContentsMargins(0, 0, 0, 0);
  grid_->setHorizontalSpacing(14);
  grid_->setVerticalSpacing(6);
}

int FactsList::add(const char* name, const QString& caption) {
  auto* label = new QLabel(caption);
  label->setForegroundRole(QPalette::PlaceholderText);
  label->setAlignment(Qt::AlignTop | Qt::AlignLeft);
  QLabel* value = make_plain_label(name);
  value->setAlignment(Qt::AlignTop | Qt::AlignRight);
  value->setWordWrap(true);
  label->setBuddy(value);
  const int row = static_cast<int>(rows_.size());
  rows_.push_back({caption, label, value});
  place(row);
  set(row, QString("\u2013"));
  return row;
}

void FactsList::setColumns(int columns) {
  if (columns_ == columns) return;
  columns_ = columns;
  place(0);
}

void FactsList::alignLeft() {
  for (const Row& row : rows_) row.value->setAlignment(Qt::AlignTop | Qt::AlignLeft);
}

// Between two columns of facts there is an empty one.
void FactsList::place(int first) {
  constexpr int kBetween = 24;
  for (int at = first; at < static_cast<int>(rows_.size()); ++at) {
    const Row& row = rows_[static_cast<std::size_t>(at)];
    grid_->removeWidget(row.title);
    grid_->removeWidget(row.value);
    const int column = 3 * (at % columns_);
    grid_->addWidget(row.title, at / columns_, column);
    grid_->addWidget(row.value, at / columns_, column + 1);
    grid_->setColumnStretch(column + 1, 1);
    if (column > 0) grid_->setColumnMinimumWidth(column - 1, kBetween - grid_->horizontalSpacing());
  }
}

void FactsList::set(int index, const QString& value) {
  const Row& row = rows_[static_cast<std::size_t>(index)];
  set_plain_text(row.value, value);
  row.value->setAccessibleName(tr("%1: %2").arg(row.caption, value));
}

void FactsList::setGreyed(bool greyed) {
  for (const Row& row : rows_) row.value->setForegroundRole(greyed ? QPalette::PlaceholderText : QPalette::WindowText);
}

}  // namespace atl
