// The islands that enrolled with this machine's hub, with what the hub says of those that are here now. GUI thread.
#pragma once

#include <string>
#include <vector>

#include <QAbstractTableModel>

#include "app/core/hub_model.h"

namespace atl {

class HubIslands : public QAbstractTableModel {
  Q_OBJECT

 public:
  enum Column { kName, kState, kStep, kSpeed, kRounds, kSeen, kColumns };

  explicit HubIslands(HubModel& hub, QObject* parent = nullptr);

  std::string idAt(int row) const;  // empty: no such row
  QString nameAt(int row) const;
  bool isRemovedAt(int row) const;

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 private:
  struct Row {
    ListedIsland enrolled;
    std::optional<HubState::Island> live;
  };
  void reload();
  static HubIslandState state_of(const Row& row);
  static std::optional<IslandPhase> member_phase(const Row& row);  // what it does, of those that take part
  static QIcon icon_of(const Row& row);
  QString textOf(const Row& row, int column) const;

  HubModel& hub_;
  std::vector<Row> rows_;
};

}  // namespace atl
