#include "app/core/checkpoints_model.h"

#include <algorithm>

#include "app/core/figures.h"
#include "net/base/exit_code.h"
#include "net/control/json_fields.h"

namespace atl {
namespace {

constexpr std::size_t kMaxRows = 1024;
constexpr std::chrono::milliseconds kPace{2000};  // of looks at the disk

Result<std::vector<CheckpointRow>> rows_from_json(const nlohmann::json& json) {
  JsonFields fields(json, "the list of checkpoints");
  const nlohmann::json* list = fields.array("checkpoints", kMaxRows);
  ATOLL_RETURN_IF_ERROR(fields.status());
  std::vector<CheckpointRow> rows;
  for (const nlohmann::json& checkpoint : *list) {
    CheckpointRow& row = rows.emplace_back();
    JsonFields one(checkpoint, "a checkpoint");
    one.read("path", row.path).read("outer_step", row.outer_step).read("parameters", row.parameters);
    one.read("bytes", row.bytes).read("saved_at", row.saved_at).read("state_hash", row.state_hash);
    ATOLL_RETURN_IF_ERROR(one.read("whole", row.whole).status());
  }
  return rows;
}

}  // namespace

CheckpointsModel::CheckpointsModel(AgentLink& link, RunCommand run, QObject* parent)
    : QAbstractTableModel(parent), link_(link), run_(std::move(run)), look_([this] { reload(); }, kPace) {}

// ---- what there is

void CheckpointsModel::reload() {
  link_.call("checkpoints.list", nlohmann::json::object(), this, [this](const auto& answer) {
    if (!answer.ok()) return;  // the node's state says what is wrong
    if (auto rows = rows_from_json(*answer); rows.ok()) show(std::move(*rows));
  });
}

void CheckpointsModel::take(const HeardEvent& event) {
  if (std::holds_alternative<event::CheckpointSaved>(event.what)) look_.request();
}

void CheckpointsModel::show(std::vector<CheckpointRow> rows) {
  // What was verified stays so while it is the same.
  for (CheckpointRow& row : rows) {
    for (const CheckpointRow& before : rows_) {
      const bool same =
          before.path == row.path && before.state_hash == row.state_hash && before.saved_at == row.saved_at;
      if (same && !row.whole) row.whole = before.whole;
    }
  }
  beginResetModel();
  rows_ = std::move(rows);
  endResetModel();
  Q_EMIT changed();
}

// ---- what is done with them

void CheckpointsModel::verify() {
  if (busy_) return;
  begin(Task::kVerify);
  run_to_end(run_, {.arguments = {"checkpoints", "verify", "--json"}}, this, [this](const auto& outcome) {
    if (!outcome.ok()) return fail(outcome.error());
    // A damaged one is both: a list, and an error that says what to do.
    const auto json = printed_json(*outcome);
    auto rows = json.ok() ? rows_from_json(*json) : json.error();
    if (rows.ok()) show(std::move(*rows));
    const bool damaged = std::ranges::any_of(rows_, [](const CheckpointRow& row) { return row.whole == false; });
    if (outcome->exit_code != kExitOk) {
      Error error = error_of(*outcome);
      if (damaged) error.code = ErrorCode::kCorrupt;
      return fail(std::move(error));
    }
    if (!rows.ok()) return fail(rows.error());
    succeed(rows_.empty() ? tr("There is no checkpoint yet.") : tr("Read through: whole, and equal to its SHA-256."));
  });
}

void CheckpointsModel::exportTo(const QString& directory) {
  if (busy_) return;
  begin(Task::kExport);
  run_json(
      run_, {.arguments = {"export", "--output", directory, "--json"}}, this, [this, directory](const auto& answer) {
        if (!answer.ok()) return fail(answer.error());
        const nlohmann::json step =
            answer->is_object() ? answer->value("outer_step", nlohmann::json()) : nlohmann::json();
        succeed(tr("The model after round %1 is in %2.")
                    .arg(step.is_number_unsigned() ? figures::count(step.template get<std::uint64_t>()) : tr("unknown"),
                         directory));
      });
}

void CheckpointsModel::begin(Task task) {
  busy_ = true;
  task_ = task;
  failure_.reset();
  outcome_.clear();
  Q_EMIT changed();
}

void CheckpointsModel::fail(Error error) {
  busy_ = false;
  failure_ = std::move(error);
  Q_EMIT changed();
}

void CheckpointsModel::succeed(const QString& outcome) {
  busy_ = false;
  outcome_ = outcome.toStdString();
  Q_EMIT changed();
}

// ---- as a table

int CheckpointsModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(rows_.size());
}

int CheckpointsModel::columnCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : kColumns; }

QVariant CheckpointsModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal || role != Qt::DisplayRole) return {};
  switch (section) {
    case kRound: return tr("After round");
    case kSize: return tr("Size");
    case kSaved: return tr("Saved");
    case kHash: return tr("SHA-256");
    case kVerified: return tr("Verified");
    case kPath: return tr("Where");
    default: return {};
  }
}

QVariant CheckpointsModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid() || index.row() >= rowCount()) return {};
  const CheckpointRow& row = rows_[static_cast<std::size_t>(index.row())];
  const auto text = [&] {
    switch (index.column()) {
      case kRound: return figures::count(row.outer_step);
      case kSize: return figures::bytes(static_cast<double>(row.bytes));
      case kSaved: return figures::moment(row.saved_at);
      case kHash: return QString::fromStdString(row.state_hash);
      case kVerified:
        if (!row.whole) return QStringLiteral("\u2013 ") + tr("not yet");
        return *row.whole ? QStringLiteral("\u2713 ") + tr("whole") : QStringLiteral("\u2717 ") + tr("damaged");
      case kPath: return QString::fromStdString(row.path);
      default: return QString();
    }
  };
  if (role == Qt::DisplayRole) return text();
  if (role != Qt::AccessibleTextRole) return {};
  return tr("%1: %2").arg(headerData(index.column(), Qt::Horizontal, Qt::DisplayRole).toString(), text());
}

}  // namespace atl
