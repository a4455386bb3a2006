// The island's history on its disk: series of points, rounds with the phases of their all-reduces, the islands that it
// has met. One SQLite file, bounded in size. Losing it loses nothing but pictures: a damaged file is set aside and made
// anew, a full disk makes writes fail and nothing else.
//
// Written by one process (the agent); others may read it meanwhile. One thread at a time.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/agent/history/history_rows.h"
#include "app/agent/history/past_table.h"
#include "app/agent/history/point_table.h"
#include "net/base/sqlite.h"

namespace atl {

struct HistoryLimits {
  std::uint32_t keep_points = 20'000;      // of each series and level (point_table.h)
  std::uint64_t max_bytes = 256ull << 20;  // of the file
  std::uint32_t max_rounds = 100'000;      // of a run; phases of the last tenth of them
  std::uint32_t max_peers = 1'024;         // of a run
};

class HistoryStore {
 public:
  // Makes the file when it is not there. A file that is no database, or of another version, is renamed to
  // NAME.damaged-TIME, and notice() says so.
  static Result<std::unique_ptr<HistoryStore>> open(const std::filesystem::path& path, HistoryLimits limits = {});
  // For a command while no agent runs. kNotFound when there is none.
  static Result<std::unique_ptr<HistoryStore>> open_to_read(const std::filesystem::path& path);

  // In words for a person: what was wrong with the file that was there. Empty: nothing.
  const std::string& notice() const { return notice_; }

  // All of it, or nothing: kDiskFull, kIo. A database that turns out to be damaged is set aside, and the batch written
  // to a new one.
  Status write(const HistoryBatch& batch);

  Result<std::string> last_run();  // the one written last; kNotFound while nothing was written
  // Newest first; those before `before`.
  Result<std::vector<HistoryRound>> rounds(const std::string& run, std::optional<std::uint32_t> before,
                                           std::uint32_t limit);
  Result<std::vector<HistoryPeer>> peers(const std::string& run);  // changed last, first
  Result<std::optional<HistoryTotals>> totals(const std::string& run);
  Result<std::optional<HistoryPast>> past(const std::string& run);  // empty: its hub has told none
  Result<MetricAnswer> metric(const MetricQuery& query);
  Result<std::vector<std::string>> metrics(const std::string& run);

 private:
  explicit HistoryStore(std::filesystem::path path, HistoryLimits limits) : path_(std::move(path)), limits_(limits) {}
  Status open_file(bool read_only);
  Status set_aside(const std::string& why);
  Status write_once(const HistoryBatch& batch);
  Status write_rows(const HistoryBatch& batch);
  Status write_round(const std::string& run, const HistoryRound& round);
  Status write_link(const std::string& run, const HistoryPeer& peer);
  Status write_peer(const std::string& run, const HistoryPeer& peer);
  Status bound(const std::string& run);
  Result<std::uint64_t> used_bytes();
  Status read_phases(const std::string& run, std::vector<HistoryRound>& rounds);
  Status read_scores(const std::string& run, std::vector<HistoryRound>& rounds);

  const std::filesystem::path path_;
  const HistoryLimits limits_;
  std::string notice_;
  std::optional<Database> database_;
  std::optional<PointTable> points_;  // of database_
  std::optional<PastTable> past_;     // of database_
};

}  // namespace atl
