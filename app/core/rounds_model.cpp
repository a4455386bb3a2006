#include "app/core/rounds_model.h"

#include <algorithm>
#include <cmath>

#include "app/core/figures.h"
#include "app/core/table_values.h"
#include "net/base/round_words.h"
#include "net/control/json_fields.h"

namespace atl {
namespace {

constexpr unsigned kFirstRounds = 200, kMoreRounds = 500, kLatestRounds = 3;
constexpr std::size_t kMaxPhases = 256;
constexpr std::chrono::milliseconds kWritten{6000};  // the history writes every few seconds

// Of rounds.list; empty where it is none.
std::optional<PhaseTime> phase_from_json(const nlohmann::json& data) {
  PhaseTime phase;
  std::string name;
  JsonFields fields(data, "a phase");
  fields.read("name", name).read("attempt", phase.attempt).read("seconds", phase.seconds).read("bytes", phase.bytes);
  phase.part = parse_word<SyncPart>(name);
  const bool good = fields.status().ok() && phase.seconds >= 0 && std::isfinite(phase.seconds);
  return good ? std::optional(phase) : std::nullopt;
}

std::optional<RoundRow> row_from_json(const nlohmann::json& json) {
  RoundRow row;
  JsonFields fields(json, "a round");
  fields.read("round", row.round).read("began", row.began).read("ended", row.ended);
  fields.read("loss_nats", row.loss_nats).read("validation_loss_nats", row.validation_loss_nats);
  fields.read("tokens", row.tokens).read("bytes_sent", row.bytes_sent).read("inner_seconds", row.inner_seconds);
  fields.read("sync_seconds", row.sync_seconds).read("islands", row.islands).read("accepted", row.accepted);
  if (!fields.status().ok()) return std::nullopt;
  const auto phases = json.find("phases");
  if (phases == json.end() || !phases->is_array()) return row;
  for (const nlohmann::json& phase : *phases) {
    auto read = phase_from_json(phase);
    if (read && row.phases.size() < kMaxPhases) row.phases.push_back(*read);
  }
  return row;
}

template <class T>
void take_known(std::optional<T>& value, const std::optional<T>& told) {
  if (told) value = told;
}

}  // namespace

PhaseTime phase_time(const event::SyncPhase& phase) {
  return {.attempt = phase.attempt, .part = phase.part, .seconds = phase.seconds, .bytes = phase.bytes};
}

RoundsModel::RoundsModel(AgentLink& link, QObject* parent)
    : QAbstractTableModel(parent), link_(link), tell_([this] { Q_EMIT changed(); }) {
  written_.setSingleShot(true);
  written_.setInterval(kWritten);
  connect(&written_, &QTimer::timeout, this, [this] { fetch(std::nullopt, kLatestRounds); });
}

std::optional<double> RoundsModel::compute_utilisation() const {
  double inner = 0, sync = 0;
  for (const RoundRow& row : rows_) {
    if (!row.inner_seconds || !row.sync_seconds) continue;
    inner += *row.inner_seconds;
    sync += *row.sync_seconds;
  }
  return inner + sync > 0 ? std::optional(inner / (inner + sync)) : std::nullopt;
}

// ---- as a table

int RoundsModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(rows_.size());
}

int RoundsModel::columnCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : kColumns; }

QVariant RoundsModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal || role != Qt::DisplayRole) return {};
  switch (section) {
    case kRound: return tr("Round");
    case kBegan: return tr("Began");
    case kLoss: return tr("Loss");
    case kValidation: return tr("Validation");
    case kTokens: return tr("Tokens");
    case kInner: return tr("Training");
    case kSync: return tr("Synchronising");
    case kBytes: return tr("Sent");
    case kIslands: return tr("Islands");
    case kAccepted: return tr("Contribution");
    default: return {};
  }
}

QString RoundsModel::text(const RoundRow& row, int column) const {
  const auto duration = [](const std::optional<double>& seconds) {
    return seconds ? figures::duration(*seconds) : QString();
  };
  switch (column) {
    case kRound: return figures::count(round_number(row.round));
    case kBegan: return row.began ? figures::moment(*row.began) : QString();
    case kLoss: return row.loss_nats ? figures::loss(*row.loss_nats) : QString();
    case kValidation: return row.validation_loss_nats ? figures::loss(*row.validation_loss_nats) : QString();
    case kTokens: return row.tokens ? figures::count(*row.tokens) : QString();
    case kInner: return duration(row.inner_seconds);
    case kSync: return duration(row.sync_seconds);
    case kBytes: return row.bytes_sent ? figures::bytes(static_cast<double>(*row.bytes_sent)) : QString();
    case kIslands: return row.islands ? figures::count(*row.islands) : QString();
    case kAccepted:
      if (!row.accepted) return row.ended ? QString() : QStringLiteral("\u2026 ") + tr("under way");
      return *row.accepted ? QStringLiteral("\u2713 ") + tr("accepted") : QStringLiteral("\u26A0 ") + tr("not in it");
    default: return {};
  }
}

QVariant RoundsModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid() || index.row() >= rowCount()) return {};
  const RoundRow& row = rows_[static_cast<std::size_t>(index.row())];
  const int column = index.column();
  if (role == Qt::DisplayRole) return text(row, column);
  if (role == Qt::TextAlignmentRole) {
    return static_cast<int>((column == kAccepted ? Qt::AlignLeft : Qt::AlignRight) | Qt::AlignVCenter);
  }
  if (role == Qt::AccessibleTextRole) {
    return spoken(headerData(column, Qt::Horizontal, Qt::DisplayRole), text(row, column));
  }
  if (role != kSortRole) return {};
  switch (column) {
    case kRound: return row.round;
    case kBegan: return sortable(row.began);
    case kLoss: return sortable(row.loss_nats);
    case kValidation: return sortable(row.validation_loss_nats);
    case kTokens: return sortable(row.tokens);
    case kInner: return sortable(row.inner_seconds);
    case kSync: return sortable(row.sync_seconds);
    case kBytes: return sortable(row.bytes_sent);
    case kIslands: return sortable(row.islands);
    case kAccepted: return row.accepted ? (*row.accepted ? 2 : 1) : 0;
    default: return {};
  }
}

bool RoundsModel::canFetchMore(const QModelIndex& parent) const {
  return !parent.isValid() && more_ && !fetching_ && rows_.size() < kMaxRows;
}

void RoundsModel::fetchMore(const QModelIndex& parent) {
  if (!canFetchMore(parent) || rows_.empty()) return;
  fetching_ = true;
  fetch(rows_.back().round, kMoreRounds);
}

// ---- what was written down

void RoundsModel::reload() { fetch(std::nullopt, kFirstRounds); }

void RoundsModel::clear() {
  beginResetModel();
  rows_.clear();
  more_ = fetching_ = false;
  endResetModel();
  tell_.request();
}

void RoundsModel::fetch(std::optional<std::uint32_t> before, unsigned limit) {
  nlohmann::json params = {{"limit", limit}};
  if (before) params["before"] = *before;
  const bool oldest = before || rows_.empty();
  link_.call("rounds.list", params, this, [this, more = before.has_value(), oldest](const auto& answer) {
    if (more) fetching_ = false;
    if (answer.ok() && answer->is_object()) takeList(*answer, oldest);
  });
}

// `oldest`: what is said of more rounds is of those before ours.
void RoundsModel::takeList(const nlohmann::json& answer, bool oldest) {
  const auto rounds = answer.find("rounds");
  if (rounds == answer.end() || !rounds->is_array()) return;
  for (const nlohmann::json& round : *rounds) {
    if (auto row = row_from_json(round)) merge(std::move(*row));
  }
  if (oldest) more_ = answer.value("more", nlohmann::json()) == true;
  bound();
  tell_.request();
}

void RoundsModel::merge(RoundRow told) {
  const std::size_t at = rowOf(told.round);
  RoundRow& row = rows_[at];
  take_known(row.began, told.began);
  take_known(row.ended, told.ended);
  take_known(row.loss_nats, told.loss_nats);
  take_known(row.validation_loss_nats, told.validation_loss_nats);
  take_known(row.tokens, told.tokens);
  take_known(row.bytes_sent, told.bytes_sent);
  take_known(row.inner_seconds, told.inner_seconds);
  take_known(row.sync_seconds, told.sync_seconds);
  take_known(row.islands, told.islands);
  take_known(row.accepted, told.accepted);
  if (told.phases.size() >= row.phases.size()) row.phases = std::move(told.phases);
  updated(at);
}

std::size_t RoundsModel::rowOf(std::uint32_t round) {
  const auto at = std::ranges::lower_bound(rows_, round, std::greater(), &RoundRow::round);
  const auto row = static_cast<std::size_t>(at - rows_.begin());
  if (at != rows_.end() && at->round == round) return row;
  RoundRow made;
  made.round = round;
  beginInsertRows({}, static_cast<int>(row), static_cast<int>(row));
  rows_.insert(at, std::move(made));
  endInsertRows();
  return row;
}

void RoundsModel::bound() {
  if (rows_.size() <= kMaxRows) return;
  beginRemoveRows({}, static_cast<int>(kMaxRows), rowCount() - 1);
  rows_.resize(kMaxRows);
  endRemoveRows();
}

void RoundsModel::updated(std::size_t row) {
  Q_EMIT dataChanged(index(static_cast<int>(row), 0), index(static_cast<int>(row), kColumns - 1));
}

// ---- live

void RoundsModel::take(const HeardEvent& event) {
  bool news = true;
  std::visit(Overloaded{[&](const event::SyncPhase& e) { add(e); }, [&](const event::Validated& e) { add(e); },
                        [&](const event::RoundBegin& e) { begin(event.time, e.state.island); },
                        [&](const event::RoundDone& e) { end(event.time, e); }, [&](const auto&) { news = false; }},
             event.what);
  if (!news) return;
  bound();
  tell_.request();
}

void RoundsModel::add(const event::SyncPhase& phase) {
  const std::size_t at = rowOf(phase.round);
  if (rows_[at].phases.size() < kMaxPhases) rows_[at].phases.push_back(phase_time(phase));
  updated(at);
}

// A state is told of with the round that made it.
void RoundsModel::add(const event::Validated& validated) {
  if (validated.outer_step == 0) return;
  const std::size_t at = rowOf(validated.outer_step - 1);
  rows_[at].validation_loss_nats = validated.loss_nats;
  updated(at);
}

void RoundsModel::begin(double time, const IslandState& state) {
  const std::size_t at = rowOf(state.round);
  rows_[at].began = time;
  rows_[at].islands = state.islands_live;
  updated(at);
}

void RoundsModel::end(double time, const event::RoundDone& done) {
  const std::size_t at = rowOf(done.round);
  RoundRow& row = rows_[at];
  row.ended = time;
  row.islands = done.islands;
  row.accepted = done.accepted;
  take_known(row.loss_nats, done.loss_nats);
  take_known(row.tokens, done.tokens);
  take_known(row.bytes_sent, done.bytes_sent);
  take_known(row.inner_seconds, done.inner_seconds);
  take_known(row.sync_seconds, done.sync_seconds);
  updated(at);
  if (!written_.isActive()) written_.start();
}

}  // namespace atl
