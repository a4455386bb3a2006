#include "app/agent/files/rotating_log.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>

#include "net/base/file.h"

namespace atl {

Result<RotatingLog> RotatingLog::open(std::filesystem::path path, std::uint64_t max_bytes) {
  RotatingLog log(std::move(path), max_bytes);
  ATOLL_RETURN_IF_ERROR(make_directories(log.path_.parent_path(), FileMode::kPrivate));
  ATOLL_RETURN_IF_ERROR(log.open_file());
  return log;
}

Status RotatingLog::open_file() {
  file_.reset(::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600));
  struct stat info {};
  if (!file_ || ::fstat(file_.get(), &info) != 0) return errno_error("open", path_);
  bytes_ = static_cast<std::uint64_t>(info.st_size);
  return ok_status();
}

Status RotatingLog::write(std::string_view text) {
  if (!file_) ATOLL_RETURN_IF_ERROR(open_file());
  if (bytes_ > 0 && bytes_ + text.size() > max_bytes_ / 2) {
    std::filesystem::path before = path_;
    before += ".1";
    // What somebody else moved away is begun anew; what cannot be renamed goes on growing rather than be silent.
    const bool renamed = ::rename(path_.c_str(), before.c_str()) == 0 || errno == ENOENT;
    if (renamed) ATOLL_RETURN_IF_ERROR(open_file());
  }
  while (!text.empty()) {
    const ssize_t count = ::write(file_.get(), text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno_error("write", path_);
    text.remove_prefix(static_cast<std::size_t>(count));
    bytes_ += static_cast<std::uint64_t>(count);
  }
  return ok_status();
}

}  // namespace atl
