#include "net/base/new_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "net/base/encoding.h"

namespace atl {
namespace {

constexpr int kTries = 8;
constexpr std::size_t kRandomBytes = 12;  // of a name, in hex
const std::string kMark = ".new.";

std::string unguessable_name() {
  std::array<std::byte, kRandomBytes> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    detail::die_on_wrong_access("the kernel gives no random bytes", "");
  }
  return hex_encode(bytes);
}

std::filesystem::path beside(const std::filesystem::path& path, std::string_view suffix) {
  std::filesystem::path name = path;
  name += suffix;
  return name;
}

std::filesystem::path directory_of(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path() : ".";
}

bool is_there_still(int fd, const std::filesystem::path& path) {
  struct stat mine {
  }, there{};
  return ::fstat(fd, &mine) == 0 && ::lstat(path.c_str(), &there) == 0 && mine.st_ino == there.st_ino;
}

// As this program names new files, and nobody else his own.
bool is_new_file_name(std::string_view name) {
  const auto mark = name.rfind(kMark);
  if (mark == std::string_view::npos) return false;
  const std::string_view random = name.substr(mark + kMark.size());
  return random.size() == 2 * kRandomBytes && random.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// Who writes one holds its lock: what nobody holds is of a process that was killed.
template <class IsOne>
void remove_forgotten(const std::filesystem::path& directory, const IsOne& is_one) {
  std::error_code failed;
  std::filesystem::directory_iterator entries(directory, failed);
  for (; !failed && entries != std::filesystem::directory_iterator(); entries.increment(failed)) {
    const std::string name = entries->path().filename().string();
    if (!is_one(name)) continue;
    const UniqueFd fd(::open(entries->path().c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    struct stat info {};
    const bool ours = fd && ::fstat(fd.get(), &info) == 0 && S_ISREG(info.st_mode) && info.st_uid == ::geteuid();
    if (ours && ::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) ::unlink(entries->path().c_str());
  }
}

}  // namespace

// ---- a file

NewFile::NewFile(std::filesystem::path path, std::filesystem::path temporary, UniqueFd fd)
    : path_(std::move(path)), temporary_(std::move(temporary)), fd_(std::move(fd)) {}

NewFile::NewFile(NewFile&& other) noexcept
    : path_(std::move(other.path_)), temporary_(std::exchange(other.temporary_, {})), fd_(std::move(other.fd_)) {}

NewFile::~NewFile() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

Result<NewFile> NewFile::create(const std::filesystem::path& path, FileMode mode) {
  const std::string prefix = path.filename().string() + kMark;
  remove_forgotten(directory_of(path), [&](const std::string& name) { return name.starts_with(prefix); });
  for (int tries = 1;; ++tries) {
    std::filesystem::path temporary = beside(path, kMark + unguessable_name());
    UniqueFd fd(
        ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, static_cast<mode_t>(mode)));
    if (!fd && (errno != EEXIST || tries == kTries)) return errno_error("create", temporary);
    if (!fd) continue;
    // Somebody may have found it before it was locked, and taken it for a forgotten one. (Not every file system knows
    // locks.)
    const bool taken = ::flock(fd.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    if (!taken && is_there_still(fd.get(), temporary)) return NewFile(path, std::move(temporary), std::move(fd));
    if (tries == kTries) return errno_error("create", temporary);
  }
}

Status NewFile::write(ByteView bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd_.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno_error("write", temporary_);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return ok_status();
}

Status NewFile::write_at(std::uint64_t offset, ByteView bytes) {
  const auto begin = static_cast<off_t>(offset);
  const auto count = static_cast<off_t>(bytes.size());
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(fd_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno_error("write", temporary_);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
    offset += static_cast<std::uint64_t>(written);
  }
  (void)::sync_file_range(fd_.get(), begin, count, SYNC_FILE_RANGE_WRITE);  // not every file system can
  return ok_status();
}

Status NewFile::take_place() {
  if (::fsync(fd_.get()) != 0) return errno_error("flush", temporary_);
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) return errno_error("replace", path_);
  temporary_.clear();
  fd_.reset();
  return flush_directory(directory_of(path_));
}

// ---- a directory

NewDirectory::NewDirectory(std::filesystem::path path, std::filesystem::path temporary)
    : path_(std::move(path)), temporary_(std::move(temporary)) {}

NewDirectory::NewDirectory(NewDirectory&& other) noexcept
    : path_(std::move(other.path_)), temporary_(std::exchange(other.temporary_, {})) {}

NewDirectory::~NewDirectory() {
  std::error_code ignored;
  if (!temporary_.empty()) std::filesystem::remove_all(temporary_, ignored);
}

Result<NewDirectory> NewDirectory::create(const std::filesystem::path& path, FileMode mode) {
  std::error_code ignored;
  if (!std::filesystem::exists(directory_of(path), ignored)) {
    ATOLL_RETURN_IF_ERROR(make_directories(directory_of(path)));
  }
  for (int tries = 1;; ++tries) {
    std::filesystem::path temporary = beside(path, kMark + unguessable_name());
    // Other than make_directories: not one that is there.
    if (::mkdir(temporary.c_str(), mode == FileMode::kPrivate ? 0700 : 0755) == 0) {
      return NewDirectory(path, std::move(temporary));
    }
    if (errno != EEXIST || tries == kTries) return errno_error("create directory", temporary);
  }
}

Status NewDirectory::take_place() {
  ATOLL_RETURN_IF_ERROR(flush_directory(temporary_));
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) return errno_error("replace", path_);
  temporary_.clear();
  return flush_directory(directory_of(path_));
}

// ---- what is there already

void remove_forgotten_files(const std::filesystem::path& directory) { remove_forgotten(directory, is_new_file_name); }

Status rename_and_flush(const std::filesystem::path& from, const std::filesystem::path& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) return errno_error("rename", from);
  ATOLL_RETURN_IF_ERROR(flush_directory(directory_of(to)));
  return directory_of(from) == directory_of(to) ? ok_status() : flush_directory(directory_of(from));
}

Status flush_directory(const std::filesystem::path& directory) {
  const UniqueFd fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // EACCES: files may be made in a directory that may not be read. EINVAL: this file system flushes none.
  if (!fd) return errno == EACCES ? ok_status() : Status(errno_error("open", directory));
  if (::fsync(fd.get()) != 0 && errno != EINVAL) return errno_error("flush", directory);
  return ok_status();
}

}  // namespace atl
