#include "app/gui/parts/tile_row.h"

#include <algorithm>

#include <QEvent>
#include <QGridLayout>

#include "app/gui/parts/stat_tile.h"

namespace atl {
namespace {

constexpr int kBetween = 12;
constexpr int kSpare = 32;  // before there are more columns again: a figure that changes does not turn them about

int fewer(int columns) { return (columns + 1) / 2; }

}  // namespace

TileRow::TileRow(const std::vector<StatTile*>& tiles, QWidget* parent)
    : QWidget(parent), tiles_(tiles), grid_(new QGridLayout(this)) {
  grid_->setContentsMargins(0, 0, 0, 0);
  grid_->setSpacing(kBetween);
  setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Fixed);
  setColumns(static_cast<int>(tiles_.size()));
}

// At least: each column as wide as the widest tile in it.
int TileRow::widthOf(int columns) const {
  int width = (columns - 1) * kBetween;
  for (int column = 0; column < columns; ++column) {
    int widest = 0;
    for (auto at = static_cast<std::size_t>(column); at < tiles_.size(); at += static_cast<std::size_t>(columns)) {
      widest = std::max(widest, tiles_[at]->minimumSizeHint().width());
    }
    width += widest;
  }
  return width;
}

QSize TileRow::minimumSizeHint() const { return {widthOf(1), grid_->totalMinimumSize().height()}; }

bool TileRow::event(QEvent* event) {
  const bool done = QWidget::event(event);
  if (event->type() == QEvent::LayoutRequest) arrange();  // a tile says more than before, or less
  return done;
}

void TileRow::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  arrange();
}

void TileRow::arrange() {
  int columns = static_cast<int>(tiles_.size());
  while (columns > 1 && widthOf(columns) + (columns > columns_ ? kSpare : 0) > width()) columns = fewer(columns);
  setColumns(columns);
}

void TileRow::setColumns(int columns) {
  if (columns == columns_) return;
  columns_ = columns;
  int at = 0;
  for (StatTile* tile : tiles_) {
    grid_->removeWidget(tile);
    grid_->addWidget(tile, at / columns, at % columns);
    ++at;
  }
  for (int i = 0; i < static_cast<int>(tiles_.size()); ++i) grid_->setColumnStretch(i, i < columns ? 1 : 0);
  updateGeometry();
}

}  // namespace atl
