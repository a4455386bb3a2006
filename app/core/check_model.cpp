#include "app/core/check_model.h"

#include <algorithm>

#include "net/control/methods.h"

namespace atl {
namespace {

QString symbol(Verdict verdict) {
  switch (verdict) {
    case Verdict::kPass: return QStringLiteral("\u2713");
    case Verdict::kWarn: return QStringLiteral("\u26A0");
    case Verdict::kFail: return QStringLiteral("\u2717");
    case Verdict::kSkip: break;
  }
  return QStringLiteral("\u2013");
}

}  // namespace

CheckModel::CheckModel(AgentLink& link, QObject* parent) : QAbstractTableModel(parent), link_(link) {}

std::size_t CheckModel::count(Verdict verdict) const {
  return static_cast<std::size_t>(std::ranges::count(rows_, verdict, &CheckRow::verdict));
}

void CheckModel::run(bool full, const std::string& invite) {
  if (running_) return;
  begin();
  link_.call(method::CheckRun::kName, encode_message(method::CheckRun{full, invite}), this, [this](const auto& answer) {
    // Somebody else's check is as good: its rows come here too.
    if (answer.ok() || answer.error().code == ErrorCode::kPermissionDenied) return;
    end(answer.error().message, 0);
  });
}

void CheckModel::begin() {
  beginResetModel();
  rows_.clear();
  running_ = true;
  problem_.clear();
  endResetModel();
  Q_EMIT changed();
}

void CheckModel::end(const std::string& problem, double time) {
  running_ = false;
  finished_ = finished_ || problem.empty();
  if (problem.empty()) ended_at_ = time;
  problem_ = problem;
  Q_EMIT changed();
}

void CheckModel::lost() {
  if (!running_) return;
  end(tr("The connection to the agent was lost meanwhile. Check again.").toStdString(), 0);
}

void CheckModel::take(const HeardEvent& event) {
  if (const auto* done = std::get_if<event::CheckRowDone>(&event.what)) {
    if (!running_) begin();
    add(done->row);
  } else if (const auto* all = std::get_if<event::CheckDone>(&event.what)) {
    if (!running_) begin();
    // The report is whole, whatever was missed of its rows.
    if (all->report) {
      for (const CheckRow& row : all->report->rows) add(row);
      run_id_ = all->report->run_id;
    }
    end(all->error, event.time);
  }
}

void CheckModel::add(CheckRow row) {
  const auto same = std::ranges::find(rows_, row.id, &CheckRow::id);
  if (same != rows_.end()) {
    *same = std::move(row);
    const int at = static_cast<int>(same - rows_.begin());
    Q_EMIT dataChanged(index(at, 0), index(at, kColumns - 1));
  } else if (rows_.size() < CheckReport::kMaxRows) {
    const int at = rowCount();
    beginInsertRows({}, at, at);
    rows_.push_back(std::move(row));
    endInsertRows();
  }
  Q_EMIT changed();
}

// ---- as a table

int CheckModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(rows_.size());
}

int CheckModel::columnCount(const QModelIndex& parent) const { return parent.isValid() ? 0 : kColumns; }

QVariant CheckModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal || role != Qt::DisplayRole) return {};
  switch (section) {
    case kVerdict: return tr("Verdict");
    case kRow: return tr("What");
    case kText: return tr("Found");
    case kFix: return tr("What to do");
    default: return {};
  }
}

QString CheckModel::word(Verdict verdict) {
  switch (verdict) {
    case Verdict::kPass: return tr("pass");
    case Verdict::kWarn: return tr("warning");
    case Verdict::kFail: return tr("fail");
    case Verdict::kSkip: break;
  }
  return tr("skipped");
}

QVariant CheckModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid() || index.row() >= rowCount()) return {};
  const CheckRow& row = rows_[static_cast<std::size_t>(index.row())];
  const auto text = [&] {
    switch (index.column()) {
      case kVerdict: return symbol(row.verdict) + " " + word(row.verdict);
      case kRow: return QString::fromStdString(row.id);
      case kText: return QString::fromStdString(row.text);
      case kFix: return QString::fromStdString(row.fix);
      default: return QString();
    }
  };
  if (role == Qt::DisplayRole) return text();
  if (role == Qt::ToolTipRole) return index.column() >= kText ? "<qt>" + text().toHtmlEscaped() + "</qt>" : QVariant();
  if (role == kVerdictRole) return static_cast<int>(row.verdict);
  if (role != Qt::AccessibleTextRole) return {};
  if (index.column() == kVerdict) return tr("%1: %2").arg(QString::fromStdString(row.id), word(row.verdict));
  return tr("%1: %2").arg(headerData(index.column(), Qt::Horizontal, Qt::DisplayRole).toString(), text());
}

}  // namespace atl
