#include "trainer/island/run_record.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <fstream>

#include "net/base/file.h"
#include "net/base/unique_fd.h"

namespace atl {
namespace {

constexpr std::uintmax_t kLongestLog = 64u << 20;  // then the older half goes
constexpr std::uintmax_t kReadAtStart = 2u << 20;

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

void RunRecord::load() {
  if (directory_.empty()) return;
  const std::string log = end_of(commits_file(), kReadAtStart);
  std::lock_guard lock(mutex_);
  for (std::size_t begin = 0; begin < log.size();) {
    const std::size_t end = std::min(log.find('\n', begin), log.size());
    auto commit = decode_signed_commit(std::string_view(log).substr(begin, end - begin));
    if (commit.ok()) newest_ = std::make_shared<const SignedCommit>(std::move(*commit));
    begin = end + 1;
  }
  if (const auto text = read_file(epoch_file(), 64u << 10); text.ok()) {
    auto epoch = decode_signed_epoch(*text);
    if (epoch.ok()) epoch_ = std::move(*epoch);
  }
}

Status RunRecord::add(std::shared_ptr<const SignedCommit> commit) {
  {
    std::lock_guard lock(mutex_);
    newest_ = commit;
  }
  if (directory_.empty()) return ok_status();
  ATOLL_RETURN_IF_ERROR(make_directories(directory_, FileMode::kPrivate));
  std::error_code missing;
  const std::uintmax_t size = std::filesystem::file_size(commits_file(), missing);
  if (!missing && size > kLongestLog) {
    ATOLL_RETURN_IF_ERROR(write_file_atomically(commits_file(), end_of(commits_file(), size / 2), FileMode::kPrivate));
  }
  const UniqueFd log(::open(commits_file().c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!log) return errno_error("open", commits_file());
  // A line that a crash cut short must not swallow this one.
  const std::string line = fmt::format("\n{}\n", encode(*commit));
  if (::write(log.get(), line.data(), line.size()) != static_cast<ssize_t>(line.size()) ||
      ::fdatasync(log.get()) != 0) {
    return errno_error("write", commits_file());
  }
  return ok_status();
}

std::shared_ptr<const SignedCommit> RunRecord::newest_commit() const {
  std::lock_guard lock(mutex_);
  return newest_;
}

std::optional<SignedEpoch> RunRecord::epoch() const {
  std::lock_guard lock(mutex_);
  return epoch_;
}

Status RunRecord::meet(const SignedEpoch& epoch) {
  std::lock_guard lock(mutex_);
  if (epoch_ && epoch.epoch < epoch_->epoch) {
    return Error{ErrorCode::kUnreachable,
                 "the hub that answers is the older one of two hubs of this run, and has been told so; waiting for the "
                 "newer one"};
  }
  const bool is_new = !epoch_ || epoch.epoch != epoch_->epoch;
  epoch_ = epoch;
  if (!is_new || directory_.empty()) return ok_status();
  Status kept = make_directories(directory_, FileMode::kPrivate);
  if (kept.ok()) kept = write_file_atomically(epoch_file(), encode(epoch) + "\n", FileMode::kPrivate);
  if (!kept.ok()) spdlog::warn("epoch error=\"{}\"", kept.error().message);  // it is kept in memory
  return ok_status();
}

}  // namespace atl
