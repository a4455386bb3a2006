#include "net/disk/commit_log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "net/base/file.h"
#include "net/base/new_file.h"
#include "net/base/unique_fd.h"

namespace atl {
namespace {

constexpr std::uintmax_t kLongestLog = 64u << 20;
constexpr std::uintmax_t kReadAtStart = 2u << 20;
constexpr std::size_t kMaxEpochBytes = 64u << 10;

// The last `bytes` of a file, from the beginning of a line.
std::string end_of(const std::filesystem::path& file, std::uintmax_t bytes) {
  std::ifstream stream(file, std::ios::binary | std::ios::ate);
  if (!stream) return {};
  const auto size = static_cast<std::uintmax_t>(stream.tellg());
  const std::uintmax_t count = std::min(size, bytes);
  stream.seekg(static_cast<std::streamoff>(size - count));
  std::string text(count, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(count));
  if (count < size) text.erase(0, text.find('\n') + 1);
  return text;
}

}  // namespace

Status append_commit(const std::filesystem::path& log, const SignedCommit& commit) {
  std::error_code missing;
  const std::uintmax_t size = std::filesystem::file_size(log, missing);
  if (!missing && size > kLongestLog) {
    ATOLL_RETURN_IF_ERROR(write_file_atomically(log, end_of(log, size / 2), FileMode::kPrivate));
  }
  const UniqueFd fd(::open(log.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) return errno_error("open", log);
  const std::string line = fmt::format("\n{}\n", encode(commit));
  if (::write(fd.get(), line.data(), line.size()) != static_cast<ssize_t>(line.size()) || ::fdatasync(fd.get()) != 0) {
    return errno_error("write", log);
  }
  return missing ? flush_directory(log.parent_path()) : ok_status();
}

std::optional<SignedCommit> newest_kept_commit(const std::filesystem::path& log) {
  const std::string text = end_of(log, kReadAtStart);
  for (std::size_t end = text.size(); end > 0;) {
    const std::size_t before = text.rfind('\n', end - 1);
    const std::size_t begin = before == std::string::npos ? 0 : before + 1;
    if (auto commit = decode_signed_commit(std::string_view(text).substr(begin, end - begin)); commit.ok()) {
      return std::move(*commit);
    }
    end = before == std::string::npos ? 0 : before;
  }
  return std::nullopt;
}

Status write_epoch(const std::filesystem::path& file, const SignedEpoch& epoch) {
  return write_file_atomically(file, encode(epoch) + "\n", FileMode::kPrivate);
}

Result<SignedEpoch> read_epoch(const std::filesystem::path& file) {
  ATOLL_ASSIGN_OR_RETURN(const std::string text, read_file(file, kMaxEpochBytes));
  return decode_signed_epoch(text);
}

}  // namespace atl
