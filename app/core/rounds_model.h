// The rounds of the run as this island kept them (rounds.list), newest first, more on demand; and the distribution of
// their all-reduce times. Owned by a Node; GUI thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <QAbstractTableModel>
#include <QTimer>

#include "app/core/agent_link.h"
#include "app/core/paced.h"
#include "net/control/events.h"

namespace atl {

struct PhaseTime {
  std::uint32_t attempt = 1;
  SyncPart part = SyncPart::kUnknown;
  double seconds = 0;
  std::uint64_t bytes = 0;
};
PhaseTime phase_time(const event::SyncPhase& phase);

struct RoundRow {
  std::uint32_t round = 0;
  std::optional<double> began, ended;  // seconds since 1970
  std::optional<double> loss_nats, validation_loss_nats;
  std::optional<std::uint64_t> tokens, bytes_sent;
  std::optional<double> inner_seconds, sync_seconds;
  std::optional<std::uint32_t> islands;
  std::optional<bool> accepted;
  std::vector<PhaseTime> phases;
};

class RoundsModel : public QAbstractTableModel {
  Q_OBJECT

 public:
  enum Column { kRound, kBegan, kLoss, kValidation, kTokens, kInner, kSync, kBytes, kIslands, kAccepted, kColumns };
  static constexpr int kSortRole = Qt::UserRole;
  static constexpr std::size_t kMaxRows = 20'000;

  explicit RoundsModel(AgentLink& link, QObject* parent = nullptr);

  const std::vector<RoundRow>& rows() const { return rows_; }
  // Part of the time computed in: inner / (inner + sync) over the rounds that are here; empty without one.
  std::optional<double> compute_utilisation() const;

  int rowCount(const QModelIndex& parent = {}) const override;
  int columnCount(const QModelIndex& parent = {}) const override;
  QVariant data(const QModelIndex& index, int role) const override;
  QVariant headerData(int section, Qt::Orientation orientation, int role) const override;
  bool canFetchMore(const QModelIndex& parent) const override;
  void fetchMore(const QModelIndex& parent) override;

  void take(const HeardEvent& event);
  void reload();
  void clear();  // another run

 Q_SIGNALS:
  void changed();  // at most thirty times a second

 private:
  void fetch(std::optional<std::uint32_t> before, unsigned limit);
  void takeList(const nlohmann::json& answer, bool oldest);
  void merge(RoundRow row);
  std::size_t rowOf(std::uint32_t round);  // made where there is none
  void bound();
  void begin(double time, const IslandState& state);
  void end(double time, const event::RoundDone& done);
  void add(const event::SyncPhase& phase);
  void add(const event::Validated& validated);
  void updated(std::size_t row);
  QString text(const RoundRow& row, int column) const;

  AgentLink& link_;
  std::vector<RoundRow> rows_;  // by round, newest first
  bool more_ = false, fetching_ = false;
  QTimer written_;  // the history has caught up with what was heard
  Paced tell_;
};

}  // namespace atl
