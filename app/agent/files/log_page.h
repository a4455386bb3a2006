// The logs of agent and trainer page by page (`logs.read`), for one who keeps a cursor: nothing is remembered here.
// Reads files, at most some MiB a call; any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "app/agent/files/log_reader.h"

namespace atl {

struct LogQuery {
  std::string cursor = {};  // of the page before; empty: the newest lines
  std::string since = {};   // lines before that time (log_time) are left out; empty: none
  std::size_t limit = 500;
};

struct LogPage {
  static constexpr std::size_t kMaxLines = 2000;
  static constexpr std::size_t kMaxBytes = 400 * 1024;  // of all texts

  struct Line {
    std::string source, time;
    std::string level;  // "error", "warning", "info", "debug"; empty: the line does not say
    std::string text;   // without time and level; secrets are taken out
  };
  std::vector<Line> lines;  // by time
  std::string cursor;       // reads on from here
  bool more = false;        // there are more lines already

  nlohmann::json to_json() const;
};

// kInvalidArgument for a cursor that is none.
Result<LogPage> read_log_page(const std::vector<LogReader::Source>& sources, const LogQuery& query);

}  // namespace atl
