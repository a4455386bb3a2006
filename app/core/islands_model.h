// The other islands of the run (peers.list and peer events), a row each. Owned by a Node; GUI thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <QAbstractTableModel>

#include "app/core/agent_link.h"
#include "net/control/events.h"

namespace atl {

struct IslandRow {
  std::string id, name, address, region, version;
  bool up = false;
  double last_change = 0;                                                         // seconds since 1970
  std::optional<double> rtt_seconds, up_bytes_per_second, down_bytes_per_second;  // as this island sees it
  std::uint64_t retries = 0;
  bool slowest = false;  // the neighbour with the least rate of those known, where another is twice as fast
};

class IslandsModel : public QAbstractTableModel {
  Q_OBJECT

 public:
  enum Column { kName, kRegion, kRtt, kUp, kDown, kState, kRetries, kVersion, kColumns };
  // For sorting: the number or text behind what is shown.
  static constexpr int kSortRole = Qt::UserRole;
  static constexpr std::size_t kMaxRows = 1024;

  explicit IslandsModel(AgentLink& link, QObject* parent = nullptr);

  const std::vector<IslandRow>& rows() const { return rows_; }
  const IslandRow* find(const std::string& id) const;

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role) const override;  // display text, sort value, accessible text
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

  void take(const HeardEvent& event);
  void reload();
  void clear();  // another run

 private:
  void takeList(const nlohmann::json& answer, std::vector<std::string> before);
  template <class Peer>
  void takePeer(const Peer& peer, bool up, double time);
  void takeLink(const event::PeerLink& link);
  std::size_t rowOf(const std::string& id);  // made where there is none
  void remove(std::size_t row);
  void updated(std::size_t row);
  void markSlowest();
  QString text(const IslandRow& row, int column) const;

  AgentLink& link_;
  std::vector<IslandRow> rows_;
};

}  // namespace atl
