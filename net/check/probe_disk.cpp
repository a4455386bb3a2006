#include "net/check/probe_disk.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <vector>

#include "net/base/file.h"
#include "net/base/unique_fd.h"

namespace atl {
namespace {

constexpr std::size_t kPieceBytes = 4u << 20;
constexpr std::uint64_t kSyncBytes = 16u << 20;  // so that a slow disk meets the deadline

std::filesystem::path nearest_directory(std::filesystem::path path) {
  std::error_code ignored;
  path = std::filesystem::absolute(path, ignored);
  while (!std::filesystem::is_directory(path, ignored) && path.has_relative_path()) path = path.parent_path();
  return path;
}

Result<UniqueFd> nameless_file(const std::filesystem::path& directory) {
  UniqueFd file(::open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (file) return file;
  if (errno != EOPNOTSUPP && errno != EISDIR && errno != ENOENT) return errno_error("write in", directory);
  std::string name = (directory / ".atoll-check-XXXXXX").string();
  file.reset(::mkostemp(name.data(), O_CLOEXEC));
  if (!file) return errno_error("write in", directory);
  ::unlink(name.c_str());
  return file;
}

// Noise: a file system that compresses is measured by what training writes, which does not compress.
std::vector<std::uint64_t> noise() {
  std::vector<std::uint64_t> words(kPieceBytes / sizeof(std::uint64_t));
  std::uint64_t state = 0x9E3779B97F4A7C15u;
  for (std::uint64_t& word : words) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    word = state;
  }
  return words;
}

Result<double> write_rate(int file, std::uint64_t bytes, const DiskProbe& probe, const AbortSignal& abort) {
  const std::vector<std::uint64_t> piece = noise();
  const auto begin = Clock::now();
  std::uint64_t written = 0, synced = 0;
  while (written < bytes && !abort.raised()) {
    const ssize_t count = ::write(file, piece.data(), kPieceBytes);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno_error("write", "a test file");
    written += static_cast<std::uint64_t>(count);
    if (written - synced < kSyncBytes && written < bytes) continue;
    if (::fdatasync(file) != 0) return errno_error("sync", "a test file");
    synced = written;
    if (probe.deadline.expired()) break;
  }
  const Seconds took = Clock::now() - begin;
  return static_cast<double>(synced) / std::max(took.count(), 1e-9);
}

}  // namespace

std::uint64_t bytes_in(const std::filesystem::path& directory) {
  std::uint64_t bytes = 0;
  std::error_code failed;
  for (const auto& entry : std::filesystem::directory_iterator(directory, failed)) {
    std::error_code gone;
    if (!entry.is_regular_file(gone)) continue;
    const auto size = entry.file_size(gone);
    if (!gone) bytes += size / std::max<std::uintmax_t>(1, entry.hard_link_count(gone));
  }
  return bytes;
}

DiskFacts probe_disk(const std::filesystem::path& directory, const DiskProbe& probe, const AbortSignal& abort) {
  DiskFacts disk;
  const std::filesystem::path place = nearest_directory(directory);
  disk.path = place.string();
  struct statvfs space {};
  if (::statvfs(place.c_str(), &space) != 0) {
    disk.problem = errno_error("look at", place).message;
    return disk;
  }
  disk.free_bytes = std::uint64_t{space.f_bavail} * space.f_frsize;
  const auto file = nameless_file(place);
  if (!file.ok()) {
    disk.problem = file.error().message;
    return disk;
  }
  const std::uint64_t bytes = std::min(probe.bytes, disk.free_bytes / 10);
  if (bytes < kPieceBytes) return disk;  // too full to be measured; disk.free says so
  const auto rate = write_rate(file->get(), bytes, probe, abort);
  if (!rate.ok()) {
    disk.problem = fmt::format("in {}: {}", place.string(), rate.error().message);
  } else if (*rate > 0) {
    disk.write_bytes_per_second = *rate;
  }
  return disk;
}

}  // namespace atl
