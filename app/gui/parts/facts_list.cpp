#include "app/gui/parts/facts_list.h"

#include <QGridLayout>
#include <QHBoxLayout>
#include <QLabel>

#include "app/gui/look/colours.h"
#include "app/gui/parts/plain_label.h"

namespace atl {
namespace {

constexpr int kBetween = 24;  // two columns of facts

}  // namespace

FactsList::FactsList(QWidget* parent) : QWidget(parent), beside_(new QHBoxLayout(this)) {
  beside_->setContentsMargins(0, 0, 0, 0);
  beside_->setSpacing(kBetween);
  setColumns(1);
}

void FactsList::add(int index, const char* name, const QString& caption) {
  if (index != static_cast<int>(rows_.size())) qFatal("%s is not where its page looks for it", name);
  auto* label = new QLabel(caption);
  label->setTextFormat(Qt::PlainText);
  label->setForegroundRole(QPalette::PlaceholderText);
  label->setAlignment(Qt::AlignTop | Qt::AlignLeft);
  QLabel* value = make_plain_label(name);
  value->setAlignment(Qt::AlignTop | Qt::AlignRight);
  value->setWordWrap(true);
  label->setBuddy(value);
  rows_.push_back({caption, label, value});
  place(rows_.back(), index);
  set(index, QString("\u2013"));
}

void FactsList::setColumns(int columns) {
  if (columns == static_cast<int>(columns_.size())) return;
  for (QGridLayout* column : columns_) {
    while (const QLayoutItem* item = column->takeAt(0)) delete item;  // the labels stay
    delete column;
  }
  columns_.clear();
  for (int i = 0; i < columns; ++i) {
    auto* column = new QGridLayout;
    column->setHorizontalSpacing(14);
    column->setVerticalSpacing(6);
    column->setColumnStretch(1, 1);
    beside_->addLayout(column, 1);
    columns_.push_back(column);
  }
  for (int at = 0; at < static_cast<int>(rows_.size()); ++at) place(rows_[static_cast<std::size_t>(at)], at);
}

void FactsList::alignLeft() {
  for (const Row& row : rows_) row.value->setAlignment(Qt::AlignTop | Qt::AlignLeft);
}

void FactsList::place(const Row& row, int at) {
  const int columns = static_cast<int>(columns_.size());
  QGridLayout* column = columns_[static_cast<std::size_t>(at % columns)];
  column->addWidget(row.title, at / columns, 0);
  column->addWidget(row.value, at / columns, 1);
}

void FactsList::set(int index, const QString& value) {
  const Row& row = rows_.at(static_cast<std::size_t>(index));
  set_plain_text(row.value, value);
  row.value->setAccessibleName(tr("%1: %2").arg(row.caption, value));
}

void FactsList::setShown(int index, bool shown) {
  const Row& row = rows_.at(static_cast<std::size_t>(index));
  row.title->setVisible(shown);
  row.value->setVisible(shown);
}

void FactsList::setGreyed(bool greyed) {
  for (const Row& row : rows_) row.value->setForegroundRole(greyed ? QPalette::PlaceholderText : QPalette::WindowText);
}

}  // namespace atl
