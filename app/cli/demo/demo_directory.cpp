#include "app/cli/demo/demo_directory.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <vector>

#include "net/base/file.h"
#include "net/control/home.h"

namespace atl {
namespace {

constexpr std::size_t kKept = 3;

std::string time_stamp() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  ::localtime_r(&now, &local);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H-%M-%S", &local);
  return text;
}

// "2026-01-31T12-00-00-4711": nothing else is ours to remove.
bool is_demo_name(const std::string& name) {
  constexpr std::string_view kPattern = "dddd-dd-ddTdd-dd-dd-";
  if (name.size() <= kPattern.size()) return false;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const bool digit = name[i] >= '0' && name[i] <= '9';
    const bool wants_digit = i >= kPattern.size() || kPattern[i] == 'd';
    if (wants_digit ? !digit : name[i] != kPattern[i]) return false;
  }
  return true;
}

// One that still runs (its process is the name's end) stays.
bool is_running(const std::string& name) {
  std::error_code ignored;
  return std::filesystem::exists("/proc/" + name.substr(name.rfind('-') + 1), ignored);
}

void remove_older(const std::filesystem::path& parent, std::size_t kept) {
  std::vector<std::filesystem::path> found;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(parent, ignored)) {
    if (entry.is_directory(ignored) && is_demo_name(entry.path().filename())) found.push_back(entry.path());
  }
  std::ranges::sort(found);  // by their time
  while (found.size() > kept) {
    if (!is_running(found.front().filename())) std::filesystem::remove_all(found.front(), ignored);
    found.erase(found.begin());
  }
}

}  // namespace

Result<std::filesystem::path> make_demo_directory(const std::string& given) {
  std::filesystem::path directory;
  if (given.empty()) {
    ATOLL_ASSIGN_OR_RETURN(const auto state, state_directory());
    remove_older(state / "demo", kKept - 1);
    directory = state / "demo" / fmt::format("{}-{}", time_stamp(), ::getpid());
  } else {
    directory = std::filesystem::absolute(given);
  }
  ATOLL_RETURN_IF_ERROR(make_directories(directory, FileMode::kPrivate));
  return directory;
}

}  // namespace atl
