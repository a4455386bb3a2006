#include "net/data/append_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "net/base/file.h"

namespace atl {

Result<AppendFile> AppendFile::open(const std::filesystem::path& path, std::uint64_t bytes) {
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644));
  if (!fd) return errno_error("create", path);
  struct stat now {};
  if (::fstat(fd.get(), &now) != 0) return errno_error("look at", path);
  if (static_cast<std::uint64_t>(now.st_size) < bytes) {
    return Error{ErrorCode::kCorrupt, fmt::format("{} has {} bytes and should have {}; somebody changed it: start anew "
                                                  "with --restart",
                                                  path.string(), now.st_size, bytes)};
  }
  if (::ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0) return errno_error("cut", path);
  return AppendFile(path, std::move(fd), bytes);
}

Status AppendFile::append(ByteView bytes) {
  bytes_ += bytes.size();
  return write_at(bytes_ - bytes.size(), bytes);
}

Status AppendFile::write_at(std::uint64_t offset, ByteView bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::pwrite(fd_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno_error("write", path_);
    bytes = bytes.subspan(static_cast<std::size_t>(count));
    offset += static_cast<std::uint64_t>(count);
  }
  return ok_status();
}

Status AppendFile::flush() {
  if (::fdatasync(fd_.get()) != 0) return errno_error("flush", path_);
  return ok_status();
}

}  // namespace atl
