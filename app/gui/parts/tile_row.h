// Figures beside one another, and where they have no room in two rows, or beneath one another: none is cut or out of
// sight. Owned by its page; GUI thread.
#pragma once

#include <vector>

#include <QWidget>

class QGridLayout;

namespace atl {

class StatTile;

class TileRow : public QWidget {
  Q_OBJECT

 public:
  explicit TileRow(const std::vector<StatTile*>& tiles, QWidget* parent = nullptr);

  int columns() const { return columns_; }
  QSize minimumSizeHint() const override;

 protected:
  bool event(QEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;

 private:
  int widthOf(int columns) const;
  void arrange();
  void setColumns(int columns);

  const std::vector<StatTile*> tiles_;
  QGridLayout* grid_;
  int columns_ = 0;
};

}  // namespace atl
