// The series of the history (loss, tokens/s, a GPU's power) in its database: every point of late, ever fewer of what is
// older. A series has levels: points enter level 0; when a level holds twice `keep_points`, its older half is merged,
// eight to one with their mean, least and greatest, into the next; the last level forgets. What is old is thus told by
// how much came after it, so that a clock that jumps neither thins nor keeps anything.
//
// Used by HistoryStore; one thread at a time.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "app/agent/history/history_rows.h"
#include "net/base/sqlite.h"

namespace atl {

enum class HistoryAxis { kTime, kStep, kTokens };

struct MetricQuery {
  std::string run;  // empty: the one written last
  std::string name;
  HistoryAxis axis = HistoryAxis::kTime;
  std::optional<double> from, to;  // on the axis, both included; absent: all there is
  std::uint32_t max_points = 1000;
};

struct MetricPoint {
  double time = 0;
  std::uint64_t step = 0, tokens = 0;
  std::uint64_t count = 0;  // points that it stands for
  double mean = 0, low = 0, high = 0;
};

struct MetricAnswer {
  std::vector<MetricPoint> points;
  double width = 0;  // of the piece of the axis that one point stands for; 0: the points are as they were written
};

class PointTable {
 public:
  static constexpr int kLevels = 4;
  static constexpr int kMergedPoints = 8;
  static constexpr std::size_t kMaxSeries = 512;  // of all runs; more are not taken
  static constexpr std::size_t kMaxNameBytes = 64;

  // Makes the tables; `database` outlives this.
  static Result<PointTable> open(Database& database, std::uint32_t keep_points);

  // Within the caller's transaction.
  Status add(const std::string& run, const HistoryPoint& point);
  // Makes room: merges or forgets half of the largest level. False when nothing is left to thin.
  Result<bool> thin_largest();
  // What a transaction that was rolled back has changed is counted again.
  Status recount();

  Result<MetricAnswer> query(const std::string& run, const MetricQuery& query);
  Result<std::vector<std::string>> names(const std::string& run);

 private:
  using Level = std::pair<std::int64_t, int>;  // series, level

  PointTable(Database& database, std::uint32_t keep_points, Statement insert)
      : database_(&database), keep_points_(keep_points), insert_(std::move(insert)) {}
  Result<std::int64_t> series_of(const std::string& run, const std::string& name, bool make);
  Status merge(Level level, std::uint64_t rows);

  Database* database_;
  std::uint32_t keep_points_;
  Statement insert_;
  std::int64_t last_seq_ = 0;
  std::map<std::pair<std::string, std::string>, std::int64_t> series_;
  std::map<Level, std::uint64_t> rows_;
};

}  // namespace atl
