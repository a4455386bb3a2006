#include "net/data/data_origin.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "net/base/file.h"
#include "net/base/unique_fd.h"

namespace atl {
namespace {

class DirectoryOrigin final : public DataOrigin {
 public:
  explicit DirectoryOrigin(std::string path) : path_(std::move(path)) {}
  std::string name() const override { return path_; }

  Result<Bytes> read(const std::string& file, std::uint64_t offset, std::uint64_t bytes, const AbortSignal&) override {
    const std::filesystem::path path = std::filesystem::path(path_) / file;
    // A run's organiser named the path: nothing is waited for that is no file.
    const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    if (!fd) return errno_error("open", path);
    struct stat info {};
    if (::fstat(fd.get(), &info) != 0) return errno_error("examine", path);
    if (!S_ISREG(info.st_mode) || static_cast<std::uint64_t>(info.st_size) < offset + bytes) {
      return Error{ErrorCode::kCorrupt,
                   fmt::format("{} is no file of {} bytes or more", path.string(), offset + bytes)};
    }
    Bytes read(bytes);
    for (std::size_t at = 0; at < read.size();) {
      const ssize_t got = ::pread(fd.get(), read.data() + at, read.size() - at, static_cast<off_t>(offset + at));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return errno_error("read", path);
      if (got == 0) return Error{ErrorCode::kCorrupt, fmt::format("{} became shorter", path.string())};
      at += static_cast<std::size_t>(got);
    }
    return read;
  }

 private:
  const std::string path_;
};

}  // namespace

std::unique_ptr<DataOrigin> directory_origin(std::string path) {
  return std::make_unique<DirectoryOrigin>(std::move(path));
}

}  // namespace atl
