#include "net/base/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "net/base/new_file.h"
#include "net/base/unique_fd.h"

namespace atl {
namespace {

ErrorCode code_of_errno(int number) {
  switch (number) {
    case ENOENT:
    case ENOTDIR: return ErrorCode::kNotFound;
    case EACCES:
    case EPERM:
    case EROFS: return ErrorCode::kPermissionDenied;
    case ENOSPC:
    case EDQUOT: return ErrorCode::kDiskFull;
    default: return ErrorCode::kIo;
  }
}

}  // namespace

Error errno_error(std::string_view action, const std::filesystem::path& path) {
  const int number = errno;
  std::string hint;
  if (number == ENOSPC || number == EDQUOT) hint = "; free some space or choose another directory";
  if (number == EROFS) hint = "; mount it to be written to, or choose another directory";
  return Error{code_of_errno(number),
               fmt::format("cannot {} {}: {}{}", action, path.string(), std::strerror(number), hint)};
}

Result<std::string> read_file(const std::filesystem::path& path, std::size_t max_bytes) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return errno_error("open", path);
  std::string content;
  char buffer[64 * 1024];
  for (;;) {
    const ssize_t count = ::read(fd.get(), buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno_error("read", path);
    if (count == 0) return content;
    if (content.size() + static_cast<std::size_t>(count) > max_bytes) {
      return Error{
          ErrorCode::kInvalidArgument,
          fmt::format("{} is larger than {} bytes, the most that is read of such a file", path.string(), max_bytes)};
    }
    content.append(buffer, static_cast<std::size_t>(count));
  }
}

Status write_file_atomically(const std::filesystem::path& path, std::string_view content, FileMode mode) {
  ATOLL_ASSIGN_OR_RETURN(NewFile file, NewFile::create(path, mode));
  ATOLL_RETURN_IF_ERROR(file.write(as_bytes(content)));
  return file.take_place();
}

Status make_directories(const std::filesystem::path& path, FileMode mode) {
  const std::filesystem::path parent = path.parent_path();
  std::error_code ignored;
  if (!parent.empty() && parent != path && !std::filesystem::exists(parent, ignored)) {
    ATOLL_RETURN_IF_ERROR(make_directories(parent, FileMode::kPublic));
  }
  if (::mkdir(path.c_str(), mode == FileMode::kPrivate ? 0700 : 0755) == 0) {
    return flush_directory(parent.empty() ? "." : parent);
  }
  if (errno == EEXIST && std::filesystem::is_directory(path, ignored)) return ok_status();
  return errno_error("create directory", path);
}

Result<MappedFile> MappedFile::open(const std::filesystem::path& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return errno_error("open", path);
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) return errno_error("examine", path);
  const auto size = static_cast<std::size_t>(info.st_size);
  if (size == 0) return MappedFile(nullptr, 0);
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, fd.get(), 0);
  if (data == MAP_FAILED) return errno_error("map", path);
  return MappedFile(static_cast<const std::byte*>(data), size);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

}  // namespace atl
