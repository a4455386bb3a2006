#include "app/gui/organise/hub_islands.h"

#include <algorithm>

#include "app/gui/look/format.h"
#include "app/gui/look/icons.h"

namespace atl {
namespace {

QString state_word(HubIslandState state) {
  switch (state) {
    case HubIslandState::kTraining: return HubIslands::tr("Training");
    case HubIslandState::kRecovering: return HubIslands::tr("Recovering");
    case HubIslandState::kPaused: return HubIslands::tr("Paused");
    case HubIslandState::kGone:
    case HubIslandState::kAway: return HubIslands::tr("Away");
    case HubIslandState::kRemoved: return HubIslands::tr("Removed");
    case HubIslandState::kUnknown: break;
  }
  return HubIslands::tr("Not known");
}

// Of a member of rounds.
QString phase_word(IslandPhase phase) {
  switch (phase) {
    case IslandPhase::kSyncing: return HubIslands::tr("Synchronising");
    case IslandPhase::kRecovering: return HubIslands::tr("Recovering");
    case IslandPhase::kWaiting: return HubIslands::tr("Waiting");
    case IslandPhase::kTraining: return HubIslands::tr("Training");
    default: return HubIslands::tr("Not known");
  }
}

}  // namespace

HubIslands::HubIslands(HubModel& hub, QObject* parent) : QAbstractTableModel(parent), hub_(hub) {
  connect(&hub_, &HubModel::changed, this, &HubIslands::reload);
  reload();
}

void HubIslands::reload() {
  std::vector<Row> rows;
  for (const ListedIsland& island : hub_.islands()) rows.push_back({island, std::nullopt});
  if (hub_.state()) {
    for (const HubState::Island& live : hub_.state()->islands) {
      auto found = std::ranges::find_if(rows, [&](const Row& row) { return row.enrolled.id == live.id; });
      // One that has just come: the list of those who enrolled is read less often.
      if (found == rows.end()) {
        rows.push_back({ListedIsland{.id = live.id, .name = live.name, .state = live.state}, std::nullopt});
        found = rows.end() - 1;
      }
      found->live = live;
    }
  }
  const auto ids = [](const std::vector<Row>& list) {
    std::vector<std::string> names;
    names.reserve(list.size());
    for (const Row& row : list) names.push_back(row.enrolled.id);
    return names;
  };
  // A reset would lose what is chosen.
  if (ids(rows) == ids(rows_)) {
    rows_ = std::move(rows);
    if (!rows_.empty()) Q_EMIT dataChanged(index(0, 0), index(rowCount() - 1, kColumns - 1));
    return;
  }
  beginResetModel();
  rows_ = std::move(rows);
  endResetModel();
}

std::string HubIslands::idAt(int row) const {
  return row >= 0 && row < rowCount() ? rows_[static_cast<std::size_t>(row)].enrolled.id : std::string();
}

QString HubIslands::nameAt(int row) const {
  if (row < 0 || row >= rowCount()) return {};
  const ListedIsland& island = rows_[static_cast<std::size_t>(row)].enrolled;
  return QString::fromStdString(island.name.empty() ? island.id : island.name);
}

bool HubIslands::isRemovedAt(int row) const {
  return row >= 0 && row < rowCount() &&
         rows_[static_cast<std::size_t>(row)].enrolled.state == HubIslandState::kRemoved;
}

int HubIslands::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(rows_.size());
}

int HubIslands::columnCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : kColumns; }

HubIslandState HubIslands::state_of(const Row& row) {
  return row.enrolled.state == HubIslandState::kRemoved || !row.live ? row.enrolled.state : row.live->state;
}

std::optional<IslandPhase> HubIslands::member_phase(const Row& row) {
  return state_of(row) == HubIslandState::kTraining && row.live ? row.live->phase : std::nullopt;
}

QIcon HubIslands::icon_of(const Row& row) {
  const auto phase = member_phase(row);
  if (phase == IslandPhase::kSyncing) return icon("sync", Tone::kGood);
  const HubIslandState state = state_of(row);
  if (phase ? phase == IslandPhase::kTraining : state == HubIslandState::kTraining)
    return icon("training", Tone::kGood);
  if (state == HubIslandState::kRemoved) return icon("trash", Tone::kNeutral);
  const bool recovers = phase ? phase == IslandPhase::kRecovering : state == HubIslandState::kRecovering;
  return icon(recovers ? "recovering" : "waiting", Tone::kNeutral);
}

QString HubIslands::textOf(const Row& row, int column) const {
  const std::optional<HubState::Island>& live = row.live;
  switch (column) {
    case kName: return QString::fromStdString(row.enrolled.name.empty() ? row.enrolled.id : row.enrolled.name);
    case kState: return member_phase(row) ? phase_word(*member_phase(row)) : state_word(state_of(row));
    case kStep:
      return live && hub_.state() ? QString("%1/%2").arg(live->inner_step).arg(hub_.state()->inner_steps) : "";
    case kSpeed: return live ? text::speed(live->tokens_per_second) : QString();
    case kRounds: return live ? text::count(live->rounds_accepted) : QString();
    case kSeen: return live ? text::ago(live->last_seen_seconds) : QString();
    default: return {};
  }
}

QVariant HubIslands::data(const QModelIndex& index, int role) const {
  if (!index.isValid() || index.row() >= rowCount()) return {};
  const Row& row = rows_[static_cast<std::size_t>(index.row())];
  const int column = index.column();
  switch (role) {
    case Qt::DisplayRole: return textOf(row, column);
    case Qt::AccessibleTextRole:
      return QString("%1: %2").arg(headerData(column, Qt::Horizontal, Qt::DisplayRole).toString(), textOf(row, column));
    case Qt::ToolTipRole: return column == kName ? text::tool_tip(QString::fromStdString(row.enrolled.id)) : QVariant();
    case Qt::DecorationRole:
      if (column != kState) return {};
      return icon_of(row);
    case Qt::TextAlignmentRole: return int((column < kStep ? Qt::AlignLeft : Qt::AlignRight) | Qt::AlignVCenter);
    default: return {};
  }
}

QVariant HubIslands::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal) return {};
  if (role == Qt::TextAlignmentRole) return int((section < kStep ? Qt::AlignLeft : Qt::AlignRight) | Qt::AlignVCenter);
  if (role != Qt::DisplayRole) return {};
  switch (section) {
    case kName: return tr("Island");
    case kState: return tr("State");
    case kStep: return tr("Step");
    case kSpeed: return tr("Speed");
    case kRounds: return tr("Rounds accepted");
    case kSeen: return tr("Last heard");
    default: return {};
  }
}

}  // namespace atl
