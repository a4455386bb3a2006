// The run's past as its hub told it (net/wire/told_past.h), in the history's database: of each run the newest, whole.
// It is shown as two series beside the island's own. What the island itself knows of a round comes first: a state that
// it validated is no point here, and a round that it saw end lies where it ended by this machine's clock; the hub tells
// lengths of time alone. Over tokens it tells nothing: those are this island's.
//
// Used by HistoryStore; one thread at a time.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/agent/history/history_rows.h"
#include "app/agent/history/point_table.h"
#include "net/base/sqlite.h"
#include "net/control/events.h"

namespace atl {

class PastTable {
 public:
  static constexpr std::size_t kMaxRuns = 32;  // of those that were told of last

  // Reads; `database` outlives this, and has the tables of HistoryStore. A file that an older program wrote last may
  // lack this one, until make().
  explicit PastTable(Database& database) : database_(&database) {}
  Status make();

  // Within the caller's transaction.
  Status write(const std::string& run, const HistoryPast& past);

  // Empty: nothing was told.
  Result<std::optional<HistoryPast>> read(const std::string& run);
  static bool has(const std::string& series) { return series == kPastLossSeries || series == kPastValidationSeries; }
  Result<std::vector<std::string>> names(const std::string& run);
  // kNotFound: nothing was told of it.
  Result<MetricAnswer> query(const std::string& run, const MetricQuery& query);

 private:
  struct OwnRound {
    std::optional<double> ended, validation;
  };
  Result<OwnRound> own(const std::string& run, std::uint32_t round);
  Result<std::vector<MetricPoint>> losses(const std::string& run, const HistoryPast& past);
  Result<std::vector<MetricPoint>> validations(const std::string& run, const HistoryPast& past);
  Result<std::vector<double>> ends(const std::string& run, const HistoryPast& past);

  Database* database_;
};

}  // namespace atl
