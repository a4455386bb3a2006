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
  grid_->setColumnStretch(1, 1);
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
  grid_->addWidget(label, row, 0);
  grid_->addWidget(value, row, 1);
  rows_.push_back({caption, value});
  set(row, QString("\u2013"));
  return row;
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
