#include "app/agent/history/point_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace atl {
namespace {

constexpr const char* kPointTables = R"(
  CREATE TABLE IF NOT EXISTS series (
    id INTEGER PRIMARY KEY, run TEXT NOT NULL, name TEXT NOT NULL, UNIQUE (run, name));
  CREATE TABLE IF NOT EXISTS point (
    series INTEGER NOT NULL, level INTEGER NOT NULL, seq INTEGER NOT NULL, time_ms INTEGER NOT NULL,
    step INTEGER NOT NULL, tokens INTEGER NOT NULL, count INTEGER NOT NULL, mean REAL NOT NULL,
    low REAL, high REAL,  -- null: as the mean
    PRIMARY KEY (series, level, seq)) WITHOUT ROWID;
)";

// Of what is merged, the middle in time, step and tokens.
constexpr const char* kMerged =
    "CAST(avg(time_ms) AS INTEGER), CAST(avg(step) AS INTEGER), CAST(avg(tokens) AS INTEGER), sum(count), "
    "sum(count * mean) / sum(count), min(coalesce(low, mean)), max(coalesce(high, mean))";

const char* column_of(HistoryAxis axis) {
  switch (axis) {
    case HistoryAxis::kTime: return "time_ms";
    case HistoryAxis::kStep: return "step";
    case HistoryAxis::kTokens: return "tokens";
  }
  return "time_ms";
}

MetricPoint read_point(const Statement& row, int first) {
  return {.time = static_cast<double>(row.integer(first)) / 1e3,
          .step = static_cast<std::uint64_t>(row.integer(first + 1)),
          .tokens = static_cast<std::uint64_t>(row.integer(first + 2)),
          .count = static_cast<std::uint64_t>(row.integer(first + 3)),
          .mean = row.real(first + 4),
          .low = row.real(first + 5),
          .high = row.real(first + 6)};
}

}  // namespace

Result<PointTable> PointTable::open(Database& database, std::uint32_t keep_points) {
  ATOLL_RETURN_IF_ERROR(database.exec(kPointTables));
  ATOLL_ASSIGN_OR_RETURN(Statement insert,
                         database.prepare("INSERT INTO point VALUES (?, 0, ?, ?, ?, ?, 1, ?, NULL, NULL)"));
  PointTable table(database, std::max(keep_points, std::uint32_t{kMergedPoints}), std::move(insert));
  ATOLL_RETURN_IF_ERROR(table.recount());
  return table;
}

Status PointTable::recount() {
  series_.clear();
  rows_.clear();
  last_seq_ = 0;
  ATOLL_ASSIGN_OR_RETURN(Statement names, database_->prepare("SELECT id, run, name FROM series"));
  for (;;) {
    ATOLL_ASSIGN_OR_RETURN(const bool row, names.step());
    if (!row) break;
    series_[{names.text(1), names.text(2)}] = names.integer(0);
  }
  ATOLL_ASSIGN_OR_RETURN(Statement counts,
                         database_->prepare("SELECT series, level, count(*), max(seq) FROM point GROUP BY 1, 2"));
  for (;;) {
    ATOLL_ASSIGN_OR_RETURN(const bool row, counts.step());
    if (!row) return ok_status();
    rows_[{counts.integer(0), static_cast<int>(counts.integer(1))}] = static_cast<std::uint64_t>(counts.integer(2));
    last_seq_ = std::max(last_seq_, counts.integer(3));
  }
}

Result<std::int64_t> PointTable::series_of(const std::string& run, const std::string& name, bool make) {
  if (const auto found = series_.find({run, name}); found != series_.end()) return found->second;
  if (!make) return Error{ErrorCode::kNotFound, fmt::format("no metric '{}' in the history", name)};
  if (series_.size() >= kMaxSeries || name.empty() || name.size() > kMaxNameBytes) {
    return Error{ErrorCode::kInvalidArgument, "the history takes no more metrics, or none of this name"};
  }
  ATOLL_ASSIGN_OR_RETURN(Statement insert, database_->prepare("INSERT INTO series (run, name) VALUES (?, ?)"));
  ATOLL_RETURN_IF_ERROR(insert.bind(run, name));
  ATOLL_RETURN_IF_ERROR(insert.run());
  return series_[{run, name}] = database_->last_insert_rowid();
}

Status PointTable::add(const std::string& run, const HistoryPoint& point) {
  const auto series = series_of(run, point.series, /*make=*/true);
  if (!series.ok()) return series.error().code == ErrorCode::kInvalidArgument ? ok_status() : Status(series.error());
  ATOLL_RETURN_IF_ERROR(
      insert_.bind(*series, ++last_seq_, std::llround(point.time * 1e3), point.step, point.tokens, point.value));
  ATOLL_RETURN_IF_ERROR(insert_.run());
  ++rows_[{*series, 0}];
  for (int level = 0; level < kLevels && rows_[{*series, level}] > 2 * std::uint64_t{keep_points_}; ++level) {
    ATOLL_RETURN_IF_ERROR(merge({*series, level}, keep_points_));
  }
  return ok_status();
}

Status PointTable::merge(Level level, std::uint64_t rows) {
  const auto [series, number] = level;
  rows = std::max<std::uint64_t>(rows / kMergedPoints, 1) * kMergedPoints;
  ATOLL_ASSIGN_OR_RETURN(
      Statement last,
      database_->prepare("SELECT seq FROM point WHERE series = ? AND level = ? ORDER BY seq LIMIT 1 OFFSET ?"));
  ATOLL_RETURN_IF_ERROR(last.bind(series, number, rows - 1));
  ATOLL_ASSIGN_OR_RETURN(const bool found, last.step());
  if (!found) return recount();
  const std::int64_t last_seq = last.integer(0);
  last.reset();
  if (number + 1 < kLevels) {
    ATOLL_ASSIGN_OR_RETURN(
        Statement merged,
        database_->prepare(fmt::format(
            "INSERT INTO point SELECT series, level + 1, min(seq), {} FROM (SELECT *, (row_number() OVER (ORDER BY "
            "seq) - 1) / {} AS bucket FROM point WHERE series = ? AND level = ? AND seq <= ?) GROUP BY bucket",
            kMerged, kMergedPoints)));
    ATOLL_RETURN_IF_ERROR(merged.bind(series, number, last_seq));
    ATOLL_RETURN_IF_ERROR(merged.run());
    rows_[{series, number + 1}] += rows / kMergedPoints;
  }
  ATOLL_ASSIGN_OR_RETURN(Statement remove,
                         database_->prepare("DELETE FROM point WHERE series = ? AND level = ? AND seq <= ?"));
  ATOLL_RETURN_IF_ERROR(remove.bind(series, number, last_seq));
  ATOLL_RETURN_IF_ERROR(remove.run());
  rows_[level] -= rows;
  return ok_status();
}

Result<bool> PointTable::thin_largest() {
  const auto largest =
      std::max_element(rows_.begin(), rows_.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  if (largest == rows_.end() || largest->second < 2 * kMergedPoints) return false;
  ATOLL_RETURN_IF_ERROR(merge(largest->first, largest->second / 2));
  return true;
}

Result<MetricAnswer> PointTable::query(const std::string& run, const MetricQuery& query) {
  ATOLL_ASSIGN_OR_RETURN(const std::int64_t series, series_of(run, query.name, /*make=*/false));
  const char* x = column_of(query.axis);
  const double scale = query.axis == HistoryAxis::kTime ? 1e3 : 1;
  const double low = query.from ? *query.from * scale : -9e18, high = query.to ? *query.to * scale : 9e18;
  ATOLL_ASSIGN_OR_RETURN(Statement range, database_->prepare(fmt::format("SELECT count(*), min({0}), max({0}) FROM "
                                                                         "point WHERE series = ? AND {0} BETWEEN ? "
                                                                         "AND ?",
                                                                         x)));
  ATOLL_RETURN_IF_ERROR(range.bind(series, low, high));
  ATOLL_ASSIGN_OR_RETURN(const bool counted, range.step());
  MetricAnswer answer;
  if (!counted || range.integer(0) == 0) return answer;
  const bool whole = range.integer(0) <= query.max_points;
  const double first = query.from ? low : range.real(1), last = query.to ? high : range.real(2);
  range.reset();
  // Points written one after the other may show one time or step; told apart by their order they stay points.
  const double width = whole ? 1 : std::max((last - first) / query.max_points * (1 + 1e-9), 1e-9);
  const std::string bucket =
      whole ? "-level, seq" : fmt::format("CAST(({} - {:.17g}) / {:.17g} AS INTEGER)", x, first, width);
  ATOLL_ASSIGN_OR_RETURN(Statement rows,
                         database_->prepare(fmt::format("SELECT {} FROM point WHERE series = ? AND {} BETWEEN ? AND ? "
                                                        "GROUP BY {} ORDER BY {}",
                                                        kMerged, x, bucket, bucket)));
  ATOLL_RETURN_IF_ERROR(rows.bind(series, low, high));
  answer.width = whole ? 0 : width / scale;
  while (answer.points.size() < query.max_points + std::size_t{1}) {
    ATOLL_ASSIGN_OR_RETURN(const bool row, rows.step());
    if (!row) break;
    answer.points.push_back(read_point(rows, 0));
  }
  return answer;
}

Result<std::vector<std::string>> PointTable::names(const std::string& run) {
  std::vector<std::string> names;
  for (const auto& [key, id] : series_) {
    if (key.first == run) names.push_back(key.second);
  }
  return names;
}

}  // namespace atl
