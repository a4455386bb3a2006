#include "app/core/islands_model.h"

#include <algorithm>
#include <cmath>

#include "app/core/figures.h"
#include "app/core/table_values.h"
#include "net/control/told.h"

namespace atl {
namespace {

constexpr std::size_t kMaxTextBytes = 256;
// A neighbour at half the rate of the next slowest one holds all others back.
constexpr double kMuchSlower = 2;

std::string text_or(const nlohmann::json& data, const char* key, const std::string& otherwise = {}) {
  const auto found = data.find(key);
  return found != data.end() && found->is_string() ? found->get<std::string>().substr(0, kMaxTextBytes) : otherwise;
}

}  // namespace

IslandsModel::IslandsModel(AgentLink& link, QObject* parent) : QAbstractTableModel(parent), link_(link) {}

const IslandRow* IslandsModel::find(const std::string& id) const {
  const auto found = std::ranges::find(rows_, id, &IslandRow::id);
  return found == rows_.end() ? nullptr : &*found;
}

// ---- as a table

int IslandsModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(rows_.size());
}

int IslandsModel::columnCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : kColumns; }

QVariant IslandsModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal || role != Qt::DisplayRole) return {};
  switch (section) {
    case kName: return tr("Island");
    case kRegion: return tr("Region");
    case kRtt: return tr("Round trip");
    case kUp: return tr("To it");
    case kDown: return tr("From it");
    case kState: return tr("State");
    case kRetries: return tr("Retries");
    case kVersion: return tr("Version");
    default: return {};
  }
}

QString IslandsModel::text(const IslandRow& row, int column) const {
  const auto rate = [](const std::optional<double>& bytes) { return bytes ? figures::rate(*bytes) : QString(); };
  switch (column) {
    case kName: return QString::fromStdString(row.name.empty() ? row.id : row.name);
    case kRegion: return QString::fromStdString(row.region);
    case kRtt: return row.rtt_seconds ? tr("%1 ms").arg(std::llround(1000 * *row.rtt_seconds)) : QString();
    case kUp: return rate(row.up_bytes_per_second);
    case kDown: return rate(row.down_bytes_per_second);
    case kState:
      if (!row.up) return QStringLiteral("\u25CB ") + tr("away");
      return row.slowest ? QStringLiteral("\u26A0 ") + tr("slowest") : QStringLiteral("\u25CF ") + tr("up");
    case kRetries: return figures::count(row.retries);
    case kVersion: return QString::fromStdString(row.version);
    default: return {};
  }
}

QVariant IslandsModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid() || index.row() >= rowCount()) return {};
  const IslandRow& row = rows_[static_cast<std::size_t>(index.row())];
  const int column = index.column();
  if (role == Qt::DisplayRole) return text(row, column);
  if (role == Qt::TextAlignmentRole) {
    const bool number = column == kRtt || column == kUp || column == kDown || column == kRetries;
    return static_cast<int>((number ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignVCenter);
  }
  if (role == Qt::AccessibleTextRole) {
    return spoken(headerData(column, Qt::Horizontal, Qt::DisplayRole), text(row, column));
  }
  if (role != kSortRole) return {};
  switch (column) {
    case kRtt: return sortable(row.rtt_seconds);
    case kUp: return sortable(row.up_bytes_per_second);
    case kDown: return sortable(row.down_bytes_per_second);
    case kRetries: return QVariant::fromValue<qulonglong>(row.retries);
    case kState: return row.up ? 1 : 0;
    default: return text(row, column).toCaseFolded();
  }
}

// ---- what is known

void IslandsModel::reload() {
  std::vector<std::string> before;
  for (const IslandRow& row : rows_) before.push_back(row.id);
  link_.call("peers.list", nlohmann::json::object(), this, [this, before = std::move(before)](const auto& answer) {
    if (answer.ok() && answer->is_object()) takeList(*answer, before);
  });
}

void IslandsModel::clear() {
  beginResetModel();
  rows_.clear();
  endResetModel();
}

// `before`: the rows when it was asked for. Who came since then is not in what was written down yet.
void IslandsModel::takeList(const nlohmann::json& answer, std::vector<std::string> before) {
  const auto peers = answer.find("peers");
  if (peers == answer.end() || !peers->is_array()) return;
  std::vector<std::string> listed;
  for (const nlohmann::json& peer : *peers) {
    const std::string id = peer.is_object() ? text_or(peer, "island") : std::string();
    if (id.empty() || listed.size() >= kMaxRows) continue;
    listed.push_back(id);
    const std::size_t at = rowOf(id);
    IslandRow& row = rows_[at];
    const double change = told::number(peer, "last_change").value_or(0);
    // An event may have told what the list does not know yet.
    if (change >= row.last_change) {
      row.up = text_or(peer, "state") == "up";
      row.last_change = change;
    }
    row.name = text_or(peer, "name", row.name);
    row.address = text_or(peer, "address", row.address);
    row.region = text_or(peer, "region", row.region);
    row.version = text_or(peer, "version", row.version);
    const auto newer = [&](std::optional<double>& value, const char* key) {
      if (const auto newest = told::number(peer, key)) value = newest;
    };
    newer(row.rtt_seconds, "rtt_seconds");
    newer(row.up_bytes_per_second, "bytes_per_second");
    newer(row.down_bytes_per_second, "down_bytes_per_second");
    const double retries = told::number(peer, "retries").value_or(0);
    if (retries >= 0 && retries < 9e15) row.retries = std::max(row.retries, static_cast<std::uint64_t>(retries));
    updated(at);
  }
  std::erase_if(before, [&](const std::string& id) { return std::ranges::find(listed, id) != listed.end(); });
  for (const std::string& gone : before) {
    const auto found = std::ranges::find(rows_, gone, &IslandRow::id);
    if (found != rows_.end() && !found->up) remove(static_cast<std::size_t>(found - rows_.begin()));
  }
  markSlowest();
}

void IslandsModel::take(const HeardEvent& event) {
  std::visit(Overloaded{[&](const event::PeerUp& e) { takePeer(e, /*up=*/true, event.time); },
                        [&](const event::PeerDown& e) { takePeer(e, /*up=*/false, event.time); },
                        [&](const event::PeerLink& e) { takeLink(e); }, [](const auto&) {}},
             event.what);
}

template <class Peer>
void IslandsModel::takePeer(const Peer& peer, bool up, double time) {
  const std::string id = peer.island.substr(0, kMaxTextBytes);
  if (id.empty()) return;
  const std::size_t at = rowOf(id);
  IslandRow& row = rows_[at];
  const auto known = [](std::string& value, const std::string& told) {
    if (!told.empty()) value = told.substr(0, kMaxTextBytes);
  };
  row.up = up;
  row.last_change = time;
  known(row.name, peer.name);
  known(row.address, peer.address);
  known(row.region, peer.region);
  known(row.version, peer.version);
  updated(at);
  markSlowest();
}

void IslandsModel::takeLink(const event::PeerLink& link) {
  if (link.island.empty()) return;
  const std::size_t at = rowOf(link.island.substr(0, kMaxTextBytes));
  IslandRow& row = rows_[at];
  if (link.rtt_seconds) row.rtt_seconds = link.rtt_seconds;
  if (link.bytes_per_second) row.up_bytes_per_second = link.bytes_per_second;
  if (link.down_bytes_per_second) row.down_bytes_per_second = link.down_bytes_per_second;
  if (link.failed) ++row.retries;
  updated(at);
  markSlowest();
}

std::size_t IslandsModel::rowOf(const std::string& id) {
  const auto found = std::ranges::find(rows_, id, &IslandRow::id);
  if (found != rows_.end()) return static_cast<std::size_t>(found - rows_.begin());
  if (rows_.size() >= kMaxRows) {
    // Who is away longest; where all are up, the one that was heard of first.
    const auto oldest =
        std::ranges::min_element(rows_, {}, [](const IslandRow& row) { return std::pair(row.up, row.last_change); });
    remove(static_cast<std::size_t>(oldest - rows_.begin()));
  }
  const int at = rowCount();
  IslandRow made;
  made.id = id;
  beginInsertRows({}, at, at);
  rows_.push_back(std::move(made));
  endInsertRows();
  return rows_.size() - 1;
}

void IslandsModel::remove(std::size_t row) {
  beginRemoveRows({}, static_cast<int>(row), static_cast<int>(row));
  rows_.erase(rows_.begin() + static_cast<std::ptrdiff_t>(row));
  endRemoveRows();
}

void IslandsModel::updated(std::size_t row) {
  Q_EMIT dataChanged(index(static_cast<int>(row), 0), index(static_cast<int>(row), kColumns - 1));
}

void IslandsModel::markSlowest() {
  const IslandRow* slowest = nullptr;
  double next = 0;  // the least rate of the others
  for (const IslandRow& row : rows_) {
    if (!row.up || !row.up_bytes_per_second) continue;
    const double rate = *row.up_bytes_per_second;
    if (slowest == nullptr || rate < *slowest->up_bytes_per_second) {
      next = slowest != nullptr ? *slowest->up_bytes_per_second : 0;
      slowest = &row;
    } else if (next == 0 || rate < next) {
      next = rate;
    }
  }
  const bool much = slowest != nullptr && next >= kMuchSlower * *slowest->up_bytes_per_second;
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const bool marked = much && &rows_[i] == slowest;
    if (rows_[i].slowest == marked) continue;
    rows_[i].slowest = marked;
    updated(i);
  }
}

}  // namespace atl
