#include "app/agent/files/log_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "app/agent/files/redaction.h"
#include "net/base/printable.h"

namespace atl {
namespace {

constexpr std::uint64_t kNewestBytes = 2u << 20;  // of each file, looked through for the newest lines
constexpr std::uint64_t kPageBytes = 1u << 20;    // of each file, from a cursor on
constexpr std::size_t kMaxCursor = 512;

// "INODE,OFFSET,TIME" of each source, with ";" between them.
std::string cursor_of(const std::vector<LogPosition>& positions) {
  std::string text;
  for (const LogPosition& position : positions) {
    text += fmt::format("{}{},{},{}", text.empty() ? "" : ";", position.inode, position.offset, position.last_time);
  }
  return text;
}

bool take_number(std::string_view& text, std::uint64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end == text.data() + text.size() || *end != ',') return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()) + 1);
  return true;
}

Result<std::vector<LogPosition>> positions_of(std::string_view cursor, std::size_t sources) {
  const Error wrong{ErrorCode::kInvalidArgument, "the cursor is none of logs.read; leave it out to begin anew"};
  if (cursor.size() > kMaxCursor) return wrong;
  std::vector<LogPosition> positions;
  for (std::size_t i = 0; i < sources; ++i) {
    std::string_view part = cursor.substr(0, cursor.find(';'));
    cursor.remove_prefix(std::min(cursor.size(), part.size() + 1));
    LogPosition position;
    if (!take_number(part, position.inode) || !take_number(part, position.offset)) return wrong;
    if (!part.empty() && time_of_log_line(part) != part) return wrong;
    position.last_time = part;
    positions.push_back(std::move(position));
  }
  if (!cursor.empty()) return wrong;
  return positions;
}

LogPage::Line shown(const LogLine& line) {
  LogPage::Line shown{line.source, line.time, {}, {}};
  std::string_view text = line.text;
  if (const std::string time = time_of_log_line(text); !time.empty()) {
    text.remove_prefix(std::min(text.size(), time.size() + 1));
    for (const std::string_view level : {"error", "critical", "warning", "info", "debug", "trace"}) {
      if (!text.starts_with(level) || (text.size() > level.size() && text[level.size()] != ' ')) continue;
      shown.level = level == "critical" ? "error" : level == "trace" ? "debug" : level;
      text.remove_prefix(std::min(text.size(), level.size() + 1));
      break;
    }
  }
  shown.text = printable(redacted(text));
  return shown;
}

// The lines of all sources by time; those of one stay in their order, also where a clock was set back.
std::vector<const LogLine*> merged(const std::vector<std::vector<LogLine>>& each, const std::string& since) {
  std::vector<const LogLine*> lines;
  std::vector<std::size_t> next(each.size(), 0);
  for (;;) {
    std::optional<std::size_t> first;
    for (std::size_t i = 0; i < each.size(); ++i) {
      if (next[i] == each[i].size()) continue;
      if (!first || each[i][next[i]].time < each[*first][next[*first]].time) first = i;
    }
    if (!first) return lines;
    const LogLine& line = each[*first][next[*first]++];
    if (line.time >= since) lines.push_back(&line);
  }
}

}  // namespace

nlohmann::json LogPage::to_json() const {
  nlohmann::json list = nlohmann::json::array();
  for (const Line& line : lines) {
    list.push_back({{"source", line.source}, {"time", line.time}, {"level", line.level}, {"text", line.text}});
  }
  return {{"lines", std::move(list)}, {"cursor", cursor}, {"more", more}};
}

Result<LogPage> read_log_page(const std::vector<LogReader::Source>& sources, const LogQuery& query) {
  const bool goes_on = !query.cursor.empty();
  std::vector<LogPosition> positions(sources.size());
  if (goes_on) {
    ATOLL_ASSIGN_OR_RETURN(positions, positions_of(query.cursor, sources.size()));
  }
  const bool whole = !goes_on && !query.since.empty();
  LogReader reader(sources, positions, whole ? LogReader::kMaxTailBytes : goes_on ? kPageBytes : kNewestBytes);
  ATOLL_ASSIGN_OR_RETURN(const auto each, reader.read_each());
  const std::vector<const LogLine*> lines = merged(each, query.since);
  const std::size_t limit = std::clamp<std::size_t>(query.limit, 1, LogPage::kMaxLines);
  LogPage page;
  std::size_t bytes = 0;
  const auto add = [&](const LogLine& line) {
    LogPage::Line next = shown(line);
    bytes += next.text.size();
    if (page.lines.size() >= limit || bytes > LogPage::kMaxBytes) return false;
    page.lines.push_back(std::move(next));
    return true;
  };
  if (!goes_on) {  // the newest
    for (auto line = lines.rbegin(); line != lines.rend() && add(**line);) ++line;
    std::ranges::reverse(page.lines);
    page.cursor = cursor_of(reader.positions());
    return page;
  }
  for (const LogLine* line : lines) {
    if (!add(*line)) {
      page.more = true;
      break;
    }
    const auto source = std::ranges::find(sources, line->source, &LogReader::Source::name);
    positions[static_cast<std::size_t>(source - sources.begin())] = line->end;
  }
  page.cursor = cursor_of(page.more ? positions : reader.positions());
  return page;
}

}  // namespace atl
