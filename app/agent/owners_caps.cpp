#include "app/agent/owners_caps.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>

namespace atl {
namespace {

std::tm local(std::time_t time) {
  std::tm parts{};
  ::localtime_r(&time, &parts);
  return parts;
}

int minute_of(const std::tm& time) { return time.tm_hour * 60 + time.tm_min; }

}  // namespace

OwnersCaps::OwnersCaps(CapRules rules, std::vector<std::filesystem::path> files,
                       std::function<Result<CapRules>()> read_again)
    : rules_(std::move(rules)), files_(std::move(files)), read_again_(std::move(read_again)), seen_(stamps()) {}

std::vector<OwnersCaps::Stamp> OwnersCaps::stamps() const {
  std::vector<Stamp> all;
  for (const std::filesystem::path& file : files_) {
    struct stat info {};
    if (::stat(file.c_str(), &info) != 0) info = {};
    all.push_back({info.st_ino, info.st_mtim.tv_sec, info.st_mtim.tv_nsec, info.st_size});
  }
  return all;
}

void OwnersCaps::turn(Clock::time_point now) {
  if (!read_again_ || now < look_at_) return;
  look_at_ = now + kLookEvery;
  auto seen = stamps();
  if (seen == seen_) return;
  seen_ = std::move(seen);
  const auto read = read_again_();
  if (!read.ok()) {
    trouble_ = fmt::format("limits on transfers stay as they were: {}", read.error().message);
    spdlog::warn("caps error=\"{}\"", read.error().message);
    return;
  }
  trouble_.clear();
  rules_ = *read;
}

TransferCaps OwnersCaps::at(std::time_t time) const {
  const int minute = minute_of(local(time));
  return {rules_.upload.at(minute), rules_.download.at(minute)};
}

// The minute is found on the clock of the wall, so that a day of 23 or 25 hours ends its spans when people expect it.
TransferCapView OwnersCaps::view(const CapRule& rule, std::time_t time) {
  std::tm parts = local(time);
  const int minute = minute_of(parts);
  TransferCapView now{rule.at(minute), {}};
  if (const auto after = rule.changes_after(minute)) {
    parts.tm_min += *after;
    parts.tm_sec = 0;
    parts.tm_isdst = -1;
    now.until = static_cast<std::int64_t>(std::mktime(&parts));
  }
  return now;
}

}  // namespace atl
