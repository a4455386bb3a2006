// What the owner of this machine wants of it, kept across restarts of agent and machine: <state>/wish.json, replaced
// atomically. Values and pure functions but for load and save; any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/config/training_hours.h"
#include "net/base/result.h"
#include "net/control/words.h"

namespace atl {

struct WishFile {
  static constexpr int kVersion = 1;

  Wish wish = Wish::kRun;
  std::int64_t since_unix_seconds = 0;
  std::optional<std::int64_t> paused_until_unix_seconds = {};  // then it is kRun again

  std::string to_json() const;
  static Result<WishFile> from_json(std::string_view text);
};

// kNotFound when there is none; kCorrupt when it cannot be read.
Result<WishFile> load_wish(const std::filesystem::path& path);
Status save_wish(const std::filesystem::path& path, const WishFile& wish);

// None: always. A span may run past midnight.
bool may_train(const std::vector<TrainingHours>& hours, int minute_of_day);

// The wish as it is now: a pause that is over is kRun.
Wish wish_now(const WishFile& file, std::int64_t unix_seconds);

}  // namespace atl
