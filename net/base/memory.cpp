#include "net/base/memory.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>

namespace atl {
namespace {

struct GroupFiles {  // of one version of control groups
  const char* limit;
  const char* used;
  const char* reclaimable;  // key in memory.stat: pages of files that nobody maps now
};
constexpr GroupFiles kVersion1{"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"};
constexpr GroupFiles kVersion2{"memory.max", "memory.current", "inactive_file"};

// The file's first number; none where it begins with anything else ("max") or is not there.
std::optional<std::uint64_t> first_number(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string word;
  file >> word;
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end == word.data()) return std::nullopt;
  return value;
}

// Of lines "KEY VALUE ...", with a colon behind the key or none.
std::optional<std::uint64_t> value_of(const std::filesystem::path& path, std::string_view key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const std::size_t end = line.find_first_of(": ");
    if (end == std::string::npos || std::string_view(line).substr(0, end) != key) continue;
    const std::size_t digits = line.find_first_of("0123456789", end);
    std::uint64_t value = 0;
    if (digits == std::string::npos) return std::nullopt;
    std::from_chars(line.data() + digits, line.data() + line.size(), value);
    return value;
  }
  return std::nullopt;
}

void apply_limit(const std::filesystem::path& group, const GroupFiles& files, UsableMemory& memory) {
  const auto limit = first_number(group / files.limit);
  if (!limit) return;
  memory.total = std::min(memory.total, *limit);
  const std::uint64_t used = first_number(group / files.used).value_or(0);
  const std::uint64_t reclaimable = value_of(group / "memory.stat", files.reclaimable).value_or(0);
  const std::uint64_t held = used - std::min(used, reclaimable);
  memory.available = std::min(memory.available, *limit - std::min(*limit, held));
}

// A group is bounded by those above it, too. In a container the path may be the host's, of which nothing is mounted
// here but the top: that one is the container's own.
void apply_limits(const std::filesystem::path& mount, std::string_view path, const GroupFiles& files,
                  UsableMemory& memory) {
  apply_limit(mount, files, memory);
  std::filesystem::path group = mount;
  for (const auto& part : std::filesystem::path(path).relative_path()) {
    if (part.empty() || part == "." || part == "..") continue;
    group /= part;
    apply_limit(group, files, memory);
  }
}

}  // namespace

UsableMemory usable_memory(const std::filesystem::path& root) {
  constexpr std::uint64_t kKibi = 1024;
  UsableMemory memory;
  memory.total = value_of(root / "proc/meminfo", "MemTotal").value_or(0) * kKibi;
  memory.available = value_of(root / "proc/meminfo", "MemAvailable").value_or(0) * kKibi;
  std::string path1, path2;  // lines "ID:CONTROLLERS:PATH"; version 2 has no controllers
  std::ifstream groups(root / "proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = fmt::format(",{},", line.substr(first + 1, second - first - 1));
    if (controllers == ",,") path2 = line.substr(second + 1);
    if (controllers.find(",memory,") != std::string::npos) path1 = line.substr(second + 1);
  }
  apply_limits(root / "sys/fs/cgroup", path2, kVersion2, memory);
  apply_limits(root / "sys/fs/cgroup/unified", path2, kVersion2, memory);
  apply_limits(root / "sys/fs/cgroup/memory", path1, kVersion1, memory);
  memory.available = std::min(memory.available, memory.total);
  return memory;
}

std::uint64_t own_memory(const std::filesystem::path& root) {
  std::ifstream file(root / "proc/self/statm");
  std::uint64_t size = 0, resident = 0, shared = 0;  // pages
  file >> size >> resident >> shared;
  return (resident - std::min(resident, shared)) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace atl
