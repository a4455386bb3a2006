#include "app/agent/history/past_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace atl {
namespace {

constexpr const char* kPastTable = R"(
  CREATE TABLE IF NOT EXISTS past (
    run TEXT PRIMARY KEY, written INTEGER NOT NULL, inner_steps INTEGER NOT NULL, told_at REAL NOT NULL,
    told TEXT NOT NULL) WITHOUT ROWID;
)";

double value_on(const MetricPoint& point, HistoryAxis axis) {
  return axis == HistoryAxis::kTime ? point.time : static_cast<double>(point.step);
}

MetricPoint past_point(double time, double step, std::uint64_t count, double value) {
  return {.time = time,
          .step = static_cast<std::uint64_t>(std::max(0.0, step)),
          .count = count,
          .mean = value,
          .low = value,
          .high = value};
}

// No more points than asked: those that share a piece of the axis are one.
MetricAnswer within(std::vector<MetricPoint> points, const MetricQuery& query) {
  std::erase_if(points, [&](const MetricPoint& point) {
    const double x = value_on(point, query.axis);
    return (query.from && x < *query.from) || (query.to && x > *query.to);
  });
  MetricAnswer answer;
  if (points.size() <= query.max_points) {
    answer.points = std::move(points);
    return answer;
  }
  const double first = query.from.value_or(value_on(points.front(), query.axis));
  const double last = query.to.value_or(value_on(points.back(), query.axis));
  answer.width = std::max((last - first) / query.max_points * (1 + 1e-9), 1e-9);
  std::int64_t piece = -1;
  for (const MetricPoint& point : points) {
    const auto at = static_cast<std::int64_t>((value_on(point, query.axis) - first) / answer.width);
    if (answer.points.empty() || at > piece) {
      answer.points.push_back(point);
      piece = at;
      continue;
    }
    MetricPoint& sum = answer.points.back();
    const auto has = static_cast<double>(sum.count), more = static_cast<double>(point.count);
    sum.mean = (sum.mean * has + point.mean * more) / (has + more);
    sum.low = std::min(sum.low, point.low);
    sum.high = std::max(sum.high, point.high);
    sum.count += point.count;
  }
  return answer;
}

}  // namespace

Status PastTable::make() { return database_->exec(kPastTable); }

Status PastTable::write(const std::string& run, const HistoryPast& past) {
  ATOLL_ASSIGN_OR_RETURN(Statement insert,
                         database_->prepare("INSERT OR REPLACE INTO past VALUES (?1, (SELECT coalesce(max(written), 0) "
                                            "+ 1 FROM past), ?2, ?3, ?4)"));
  ATOLL_RETURN_IF_ERROR(insert.bind(run, past.inner_steps, past.told_at, encode(past.told)));
  ATOLL_RETURN_IF_ERROR(insert.run());
  ATOLL_ASSIGN_OR_RETURN(Statement forget,
                         database_->prepare("DELETE FROM past WHERE run IN (SELECT run FROM past ORDER BY written DESC "
                                            "LIMIT -1 OFFSET ?)"));
  ATOLL_RETURN_IF_ERROR(forget.bind(kMaxRuns));
  return forget.run();
}

Result<std::optional<HistoryPast>> PastTable::read(const std::string& run) {
  ATOLL_ASSIGN_OR_RETURN(Statement table, database_->prepare("SELECT 1 FROM sqlite_master WHERE name = 'past'"));
  ATOLL_ASSIGN_OR_RETURN(const bool there, table.step());
  if (!there) return std::optional<HistoryPast>();
  ATOLL_ASSIGN_OR_RETURN(Statement select,
                         database_->prepare("SELECT inner_steps, told_at, told FROM past WHERE run = ?"));
  ATOLL_RETURN_IF_ERROR(select.bind(run));
  ATOLL_ASSIGN_OR_RETURN(const bool row, select.step());
  if (!row) return std::optional<HistoryPast>();
  Result<ToldPast> told = decode_past(select.text(2));
  if (!told.ok()) return std::optional<HistoryPast>();  // the next one takes its place
  return std::optional(HistoryPast{.inner_steps = static_cast<std::uint32_t>(select.integer(0)),
                                   .told_at = select.real(1),
                                   .told = *std::move(told)});
}

Result<std::vector<std::string>> PastTable::names(const std::string& run) {
  ATOLL_ASSIGN_OR_RETURN(const std::optional<HistoryPast> past, read(run));
  std::vector<std::string> names;
  if (past && !past->told.rounds.empty()) names.emplace_back(kPastLossSeries);
  if (past && !past->told.validations.empty()) names.emplace_back(kPastValidationSeries);
  return names;
}

Result<MetricAnswer> PastTable::query(const std::string& run, const MetricQuery& query) {
  ATOLL_ASSIGN_OR_RETURN(const std::optional<HistoryPast> past, read(run));
  if (!past) return Error{ErrorCode::kNotFound, fmt::format("no metric '{}' in the history", query.name)};
  if (query.axis == HistoryAxis::kTokens) return MetricAnswer{};
  auto points = query.name == kPastLossSeries ? losses(run, *past) : validations(run, *past);
  if (!points.ok()) return points.error();
  return within(*std::move(points), query);
}

Result<PastTable::OwnRound> PastTable::own(const std::string& run, std::uint32_t round) {
  ATOLL_ASSIGN_OR_RETURN(
      Statement select,
      database_->prepare("SELECT ended, validation_loss_nats FROM round WHERE run = ? AND round = ?"));
  ATOLL_RETURN_IF_ERROR(select.bind(run, round));
  ATOLL_ASSIGN_OR_RETURN(const bool row, select.step());
  OwnRound own;
  if (row && !select.is_null(0)) own.ended = select.real(0);
  if (row && !select.is_null(1)) own.validation = select.real(1);
  return own;
}

// Of each piece: as this island saw it end; else when the next one began, or when it was told.
Result<std::vector<double>> PastTable::ends(const std::string& run, const HistoryPast& past) {
  const std::vector<PastRounds>& pieces = past.told.rounds;
  std::vector<double> ends(pieces.size());
  double next = past.told_at;
  for (std::size_t i = pieces.size(); i-- > 0;) {
    ATOLL_ASSIGN_OR_RETURN(const OwnRound last, own(run, pieces[i].round + pieces[i].rounds - 1));
    ends[i] = std::min(last.ended.value_or(next), next);
    next = ends[i] - pieces[i].seconds;
  }
  return ends;
}

// In the middle of the rounds that it is the mean of.
Result<std::vector<MetricPoint>> PastTable::losses(const std::string& run, const HistoryPast& past) {
  ATOLL_ASSIGN_OR_RETURN(const std::vector<double> ends, this->ends(run, past));
  std::vector<MetricPoint> points;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    const PastRounds& piece = past.told.rounds[i];
    if (!(piece.mean_loss_nats > 0)) continue;
    points.push_back(past_point(ends[i] - piece.seconds / 2, (piece.round + piece.rounds / 2.0) * past.inner_steps,
                                piece.rounds, piece.mean_loss_nats));
  }
  return points;
}

Result<std::vector<MetricPoint>> PastTable::validations(const std::string& run, const HistoryPast& past) {
  ATOLL_ASSIGN_OR_RETURN(const std::vector<double> ends, this->ends(run, past));
  std::vector<MetricPoint> points;
  std::size_t piece = 0;
  for (const PastValidation& validation : past.told.validations) {
    if (validation.outer_step > 0) {
      ATOLL_ASSIGN_OR_RETURN(const OwnRound made, own(run, validation.outer_step - 1));
      if (made.validation) continue;  // that is a point of the island's own
    }
    const auto after = [&](const PastRounds& rounds) { return std::uint64_t{rounds.round} + rounds.rounds; };
    while (piece + 1 < ends.size() && after(past.told.rounds[piece]) < validation.outer_step) ++piece;
    double time = past.told_at;
    if (piece < ends.size()) {
      const PastRounds& rounds = past.told.rounds[piece];
      const double left = static_cast<double>(after(rounds)) - validation.outer_step;
      time = ends[piece] - rounds.seconds * std::clamp(left / rounds.rounds, 0.0, 1.0);
    }
    points.push_back(past_point(time, std::uint64_t{validation.outer_step} * std::uint64_t{past.inner_steps}, 1,
                                validation.loss_nats));
  }
  return points;
}

}  // namespace atl
