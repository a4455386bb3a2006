// Reads the logs of the agent and its trainer as one: in the order of their times, from a point in time on, and on as
// they grow. A line without a time belongs to the one before it. One thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "net/base/result.h"

namespace atl {

// How far a file was read: up to a line's end. It is the same file after it was renamed.
struct LogPosition {
  std::uint64_t inode = 0;  // 0: not read yet
  std::uint64_t offset = 0;
  std::string last_time;  // of the line before
};

struct LogLine {
  std::string source;  // "agent", "trainer"
  std::string time;    // "2026-11-21T21:36:32.125", local; empty before the first line that has one
  std::string text;    // the whole line
  LogPosition end = {};
};

class LogReader {
 public:
  static constexpr std::uint64_t kMaxTailBytes = 8u << 20;  // of each file, from its end
  static constexpr std::size_t kMaxLineBytes = 16 * 1024;   // more is cut

  struct Source {
    std::string name;
    std::filesystem::path path;  // and path.1, what came before it
  };

  // Begins at `positions`, by source; none: at the beginning. `max_bytes`: of each file in one call; of what was never
  // read the end, of what was read up to a position what follows it.
  explicit LogReader(std::vector<Source> sources, const std::vector<LogPosition>& positions = {},
                     std::uint64_t max_bytes = kMaxTailBytes);

  // The lines whose time is not before `since` ("2026-11-21T20:36:32", empty: all), by time. Later calls: what was
  // written since, also when a file was rotated meanwhile. Files that are not there have no lines.
  Result<std::vector<LogLine>> read(const std::string& since);
  // The same of each source for itself, as they were written.
  Result<std::vector<std::vector<LogLine>>> read_each();
  // By source, of what was read whole.
  std::vector<LogPosition> positions() const;

 private:
  struct File {
    Source source;
    LogPosition whole;         // lines
    std::uint64_t offset = 0;  // read so far
    std::string rest;          // the beginning of a line
  };
  Status read_file_from(const std::filesystem::path& path, bool tail, File& file, std::vector<LogLine>& lines);
  Status read_new(File& file, std::vector<LogLine>& lines);
  void take_line(File& file, bool whole, std::vector<LogLine>& lines);

  const std::uint64_t max_bytes_;
  std::vector<File> files_;
};

// The time that a line begins with; empty: none.
std::string time_of_log_line(std::string_view line);
// Local time as logs write it.
std::string log_time(std::int64_t unix_seconds);

}  // namespace atl
