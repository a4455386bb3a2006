#include "net/base/own_output.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "net/base/file.h"
#include "net/base/mutex.h"
#include "net/base/unique_fd.h"

namespace atl {
namespace {

std::filesystem::path beside(const std::filesystem::path& path, const char* suffix) {
  std::filesystem::path name = path;
  name += suffix;
  return name;
}

bool all_write_to(const struct stat& file, const std::vector<int>& descriptors) {
  return std::ranges::all_of(descriptors, [&](int descriptor) {
    struct stat info {};
    return ::fstat(descriptor, &info) == 0 && info.st_ino == file.st_ino && info.st_dev == file.st_dev;
  });
}

}  // namespace

Status rotate_output(const std::filesystem::path& path, std::uint64_t max_bytes, const std::vector<int>& descriptors) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode) || !all_write_to(info, descriptors))
    return ok_status();
  if (static_cast<std::uint64_t>(info.st_size) <= max_bytes) return ok_status();
  // The new one is there before the old one goes: on a full disk it stays as it is.
  const std::filesystem::path fresh = beside(path, ".next"), before = beside(path, ".1");
  ::unlink(fresh.c_str());  // of a process that was killed here
  const UniqueFd fd(::open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!fd) return errno_error("create", fresh);
  if (::rename(path.c_str(), before.c_str()) != 0) {
    Status failed = errno_error("rename", path);
    ::unlink(fresh.c_str());
    return failed;
  }
  if (::rename(fresh.c_str(), path.c_str()) != 0) {
    Status failed = errno_error("rename", fresh);
    ::rename(before.c_str(), path.c_str());
    ::unlink(fresh.c_str());
    return failed;
  }
  for (const int descriptor : descriptors) {
    if (::dup2(fd.get(), descriptor) < 0) return errno_error("write to", path);
  }
  return ok_status();
}

OwnOutput::OwnOutput(std::filesystem::path path, std::uint64_t max_bytes, std::chrono::milliseconds look_every) {
  if (path.empty() || max_bytes == 0) return;
  thread_ = std::jthread([path = std::move(path), max_bytes, look_every](const std::stop_token& stop) {
    Mutex mutex;
    StoppableCondVar ended;
    MutexLock lock(mutex);
    bool said = false;
    while (!ended.wait(lock, stop, Deadline::after(look_every), [&] { return stop.stop_requested(); })) {
      const Status done = rotate_output(path, max_bytes / 2, {STDOUT_FILENO, STDERR_FILENO});
      if (!done.ok() && !said) spdlog::warn("log rotated=false error=\"{}\"", done.error().message);
      said = !done.ok();
    }
  });
}

}  // namespace atl
