#include "app/core/log_model.h"

#include "net/control/told.h"

namespace atl {
namespace {

constexpr std::chrono::milliseconds kEvery{1000};
constexpr unsigned kLimit = 2000;  // of one answer, which is one line of the protocol
constexpr std::size_t kMaxLinesAnswered = 100'000, kMaxLineBytes = 1u << 20;

LogRow row_from_json(const nlohmann::json& json) {
  LogRow row;
  row.source = told::text(json, "source", kMaxLineBytes);
  row.time = told::text(json, "time", kMaxLineBytes);
  row.level = told::text(json, "level", kMaxLineBytes);
  row.text = told::text(json, "text", kMaxLineBytes);
  return row;
}

}  // namespace

LogModel::LogModel(AgentLink& link, QObject* parent) : QAbstractListModel(parent), link_(link) {
  timer_.setInterval(kEvery);
  connect(&timer_, &QTimer::timeout, this, &LogModel::ask);
}

void LogModel::follow(bool on) {
  if (on == timer_.isActive()) return;
  if (!on) return timer_.stop();
  timer_.start();
  ask();
}

// Another agent, or lines were missed: from the newest ones on.
void LogModel::reload() {
  beginResetModel();
  lines_.clear();
  cursor_.clear();
  endResetModel();
  ++generation_;
  asking_ = false;
  if (timer_.isActive()) ask();
}

void LogModel::ask() {
  if (asking_ || link_.state() != LinkState::kConnected) return;
  asking_ = true;
  nlohmann::json params = {{"limit", kLimit}};
  if (!cursor_.empty()) params["cursor"] = cursor_;
  link_.call("logs.read", params, this, [this, generation = generation_](const auto& answer) {
    if (generation != generation_) return;
    asking_ = false;
    const std::string problem = answer.ok() ? std::string() : answer.error().message;
    if (answer.ok() && answer->is_object()) {
      take(*answer);
      if (timer_.isActive() && answer->value("more", nlohmann::json()) == true) ask();
    }
    if (problem == problem_) return;
    problem_ = problem;
    Q_EMIT changed();
  });
}

void LogModel::take(const nlohmann::json& answer) {
  const auto lines = answer.find("lines");
  const nlohmann::json cursor = answer.value("cursor", nlohmann::json());
  if (cursor.is_string()) cursor_ = cursor.get<std::string>();
  if (lines == answer.end() || !lines->is_array() || lines->empty() || lines->size() > kMaxLinesAnswered) return;
  const std::size_t skipped = lines->size() > kMaxLines ? lines->size() - kMaxLines : 0;
  const std::size_t added = lines->size() - skipped;
  if (lines_.size() + added > kMaxLines) {
    const std::size_t gone = lines_.size() + added - kMaxLines;
    beginRemoveRows({}, 0, static_cast<int>(gone) - 1);
    lines_.erase(lines_.begin(), lines_.begin() + static_cast<std::ptrdiff_t>(gone));
    endRemoveRows();
  }
  const int first = rowCount();
  beginInsertRows({}, first, first + static_cast<int>(added) - 1);
  for (std::size_t i = skipped; i < lines->size(); ++i) lines_.push_back(row_from_json((*lines)[i]));
  endInsertRows();
  Q_EMIT changed();
}

int LogModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(lines_.size());
}

QVariant LogModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid() || index.row() >= rowCount()) return {};
  const LogRow& line = row(index.row());
  switch (role) {
    case Qt::DisplayRole:
    case Qt::AccessibleTextRole: return QString::fromStdString(line.text);
    case kSourceRole: return QString::fromStdString(line.source);
    case kTimeRole: return QString::fromStdString(line.time);
    case kLevelRole: return QString::fromStdString(line.level);
    default: return {};
  }
}

}  // namespace atl
