#include "app/agent/settings_watch.h"

#include <sys/stat.h>

#include <utility>

namespace atl {

SettingsWatch::SettingsWatch(std::vector<std::filesystem::path> files) : files_(std::move(files)), seen_(stamps()) {}

std::vector<SettingsWatch::Stamp> SettingsWatch::stamps() const {
  std::vector<Stamp> all;
  for (const std::filesystem::path& file : files_) {
    struct stat info {};
    if (::stat(file.c_str(), &info) != 0) info = {};
    all.push_back({info.st_ino, info.st_mtim.tv_sec, info.st_mtim.tv_nsec, info.st_size});
  }
  return all;
}

bool SettingsWatch::changed(Clock::time_point now) {
  if (now < look_at_) return false;
  look_at_ = now + kLookEvery;
  auto now_there = stamps();
  return std::exchange(seen_, now_there) != now_there;
}

}  // namespace atl
