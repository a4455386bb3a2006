#include "app/agent/wish.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "net/base/file.h"
#include "net/control/json_fields.h"

namespace atl {
namespace {

constexpr std::size_t kMaxWishBytes = 4096;

}  // namespace

std::string WishFile::to_json() const {
  nlohmann::json json = {{"version", kVersion}, {"wish", word_of(wish)}, {"since_unix_seconds", since_unix_seconds}};
  if (paused_until_unix_seconds) json["paused_until_unix_seconds"] = *paused_until_unix_seconds;
  return json.dump(2) + "\n";
}

Result<WishFile> WishFile::from_json(std::string_view text) {
  ATOLL_ASSIGN_OR_RETURN(const nlohmann::json json, parse_control_json(text));
  JsonFields fields(json, "wish.json");
  int version = 0;
  std::string word;
  WishFile file;
  fields.read("version", version).read("wish", word).read("since_unix_seconds", file.since_unix_seconds);
  fields.read("paused_until_unix_seconds", file.paused_until_unix_seconds);
  ATOLL_RETURN_IF_ERROR(fields.status());
  const Wish wish = parse_word<Wish>(word);
  if (version != kVersion || wish == Wish::kUnknown) {
    return Error{ErrorCode::kVersionUnsupported, "wish.json was written by another version of Atoll"};
  }
  file.wish = wish;
  return file;
}

Result<WishFile> load_wish(const std::filesystem::path& path) {
  ATOLL_ASSIGN_OR_RETURN(const std::string text, read_file(path, kMaxWishBytes));
  auto file = WishFile::from_json(text);
  if (!file.ok()) return Error{ErrorCode::kCorrupt, fmt::format("{}: {}", path.string(), file.error().message)};
  return file;
}

Status save_wish(const std::filesystem::path& path, const WishFile& wish) {
  ATOLL_RETURN_IF_ERROR(make_directories(path.parent_path(), FileMode::kPrivate));
  return write_file_atomically(path, wish.to_json(), FileMode::kPrivate);
}

bool may_train(const std::vector<TrainingHours>& hours, int minute_of_day) {
  if (hours.empty()) return true;
  return std::ranges::any_of(hours, [&](const TrainingHours& span) {
    const bool begun = minute_of_day >= span.begin_minute, open = minute_of_day < span.end_minute;
    return span.begin_minute < span.end_minute ? begun && open : begun || open;
  });
}

Wish wish_now(const WishFile& file, std::int64_t unix_seconds) {
  const bool pause_is_over =
      file.wish == Wish::kPause && file.paused_until_unix_seconds && unix_seconds >= *file.paused_until_unix_seconds;
  return pause_is_over ? Wish::kRun : file.wish;
}

}  // namespace atl
