// fetch_dataset_file: one file from the hub, resumed where it broke off.
#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>

#include "net/base/file.h"
#include "net/base/unique_fd.h"
#include "net/recovery/https_fetcher.h"
#include "net/recovery/state_fetch.h"

namespace atl {
namespace {

constexpr std::chrono::milliseconds kTurn{200};
constexpr std::size_t kMaxNameBytes = 128;
constexpr long kStatusOk = 200;
constexpr long kStatusPartialContent = 206;

// What has arrived so far, on disk.
class PartialFile {
 public:
  static Result<PartialFile> open(const std::filesystem::path& path, std::uint64_t whole_bytes) {
    UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
    if (!fd) return errno_error("create", path);
    struct stat info {};
    if (::fstat(fd.get(), &info) != 0) return errno_error("examine", path);
    PartialFile file(std::move(fd), path, static_cast<std::uint64_t>(info.st_size));
    if (file.size_ > whole_bytes) ATOLL_RETURN_IF_ERROR(file.start_over());
    if (::lseek(file.fd_.get(), 0, SEEK_END) < 0) return errno_error("examine", path);
    return file;
  }

  std::uint64_t size() const { return size_; }

  Status append(ByteView bytes) {
    while (!bytes.empty()) {
      const ssize_t written = ::write(fd_.get(), bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return errno_error("write", path_);
      size_ += static_cast<std::uint64_t>(written);
      bytes = bytes.subspan(static_cast<std::size_t>(written));
    }
    return ok_status();
  }
  Status start_over() {
    size_ = 0;
    if (::ftruncate(fd_.get(), 0) != 0 || ::lseek(fd_.get(), 0, SEEK_SET) < 0) return errno_error("empty", path_);
    return ok_status();
  }
  Result<std::string> hash() const {
    Sha256 hash;
    std::array<std::byte, 256 * 1024> buffer{};
    for (std::uint64_t at = 0; at < size_;) {
      const ssize_t count = ::pread(fd_.get(), buffer.data(), buffer.size(), static_cast<off_t>(at));
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return errno_error("read", path_);
      hash.update(std::span(buffer).first(static_cast<std::size_t>(count)));
      at += static_cast<std::uint64_t>(count);
    }
    return to_hex(hash.finish());
  }
  Status become(const std::filesystem::path& destination) {
    if (::fsync(fd_.get()) != 0) return errno_error("flush", path_);
    if (::rename(path_.c_str(), destination.c_str()) != 0) return errno_error("replace", destination);
    return ok_status();
  }

 private:
  PartialFile(UniqueFd fd, std::filesystem::path path, std::uint64_t size)
      : fd_(std::move(fd)), path_(std::move(path)), size_(size) {}
  UniqueFd fd_;
  std::filesystem::path path_;
  std::uint64_t size_ = 0;
};

bool is_plain_file_name(const std::string& name) {
  return !name.empty() && name.size() <= kMaxNameBytes && name.front() != '.' && std::ranges::all_of(name, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' || c == '_' ||
           c == '-';
  });
}

// One request for what is missing, from one of the hub's addresses; appends what comes.
Status fetch_rest(HttpsFetcher& fetcher, const Address& hub, const std::string& name, std::uint64_t whole_bytes,
                  PartialFile& file, const AbortSignal& abort, const FetchProgress& progress) {
  HttpsRequest request;
  request.peer = IslandId{kHubName};
  request.address = hub;
  request.path = "/data/" + name;
  request.max_bytes = whole_bytes;
  if (file.size() > 0) request.resume_at = file.size();
  bool first = true;
  request.on_body = [&](ByteView bytes, bool partial) -> Status {
    // A hub that does not resume sends all of it.
    if (std::exchange(first, false) && !partial && file.size() > 0) ATOLL_RETURN_IF_ERROR(file.start_over());
    if (file.size() + bytes.size() > whole_bytes) {
      return Error{ErrorCode::kCorrupt, fmt::format("the hub's {} is larger than the dataset says", name)};
    }
    return file.append(bytes);
  };
  const TransferId id = fetcher.start(std::move(request));
  for (;;) {
    const auto outcomes = fetcher.wait(Deadline::after(kTurn), abort);
    if (progress) progress(file.size(), whole_bytes);
    if (!outcomes.ok()) {
      fetcher.cancel(id);
      return outcomes.error();
    }
    if (outcomes->empty()) continue;
    const HttpsOutcome& outcome = outcomes->front();
    if (outcome.error) return *outcome.error;
    if (outcome.http_status == kStatusOk || outcome.http_status == kStatusPartialContent) return ok_status();
    const ErrorCode code = outcome.http_status == 404 ? ErrorCode::kNotFound : ErrorCode::kProtocol;
    return Error{code, fmt::format("the hub at {} answers to GET /data/{} with HTTP status {}", to_string(hub), name,
                                   outcome.http_status)};
  }
}

bool is_worth_another_try(ErrorCode code) {
  return code == ErrorCode::kUnreachable || code == ErrorCode::kTimeout || code == ErrorCode::kPeerLost ||
         code == ErrorCode::kProtocol;
}

// Waits without the network; kAborted when stopped.
Status pause(std::chrono::milliseconds duration, HttpsFetcher& fetcher, const AbortSignal& abort) {
  const auto waited = fetcher.wait(Deadline::after(duration), abort);
  return waited.ok() ? ok_status() : Status(waited.error());
}

// Until all bytes are there, from whichever address answers, giving up after max_failures tries that brought nothing.
Status fill(PartialFile& file, const Identity& self, const std::vector<Address>& hub, const std::string& name,
            std::uint64_t whole_bytes, const AbortSignal& abort, const FetchProgress& progress,
            const FetchOptions& options) {
  ATOLL_ASSIGN_OR_RETURN(HttpsFetcher fetcher, HttpsFetcher::create(self, options.stall));
  int failures = 0;
  for (std::size_t turn = 0; file.size() < whole_bytes; ++turn) {
    const std::uint64_t before = file.size();
    const Status fetched = fetch_rest(fetcher, hub[turn % hub.size()], name, whole_bytes, file, abort, progress);
    if (!fetched.ok() && !is_worth_another_try(fetched.error().code)) return fetched;
    failures = file.size() > before ? 0 : failures + 1;
    if (file.size() == whole_bytes) break;
    if (failures >= options.max_failures) {
      return fetched.ok()
                 ? Error{ErrorCode::kCorrupt, fmt::format("the hub's {} is smaller than the dataset says", name)}
                 : fetched.error();
    }
    spdlog::warn("data file={} bytes={} of={} retry=1 message=\"{}\"", name, file.size(), whole_bytes,
                 fetched.ok() ? "the hub's answer was short" : fetched.error().message);
    ATOLL_RETURN_IF_ERROR(pause(options.retry_after, fetcher, abort));
  }
  return ok_status();
}

}  // namespace

Status fetch_dataset_file(const Identity& self, const std::vector<Address>& hub, const std::string& name,
                          std::uint64_t size_bytes, const std::string& sha256_hex,
                          const std::filesystem::path& destination, const AbortSignal& abort,
                          const FetchProgress& progress, const FetchOptions& options) {
  if (!is_plain_file_name(name) || hub.empty()) {
    return Error{ErrorCode::kInvalidArgument, fmt::format("'{}' is no file of a dataset on a known hub", name)};
  }
  std::filesystem::path partial = destination;
  partial += ".part";
  ATOLL_ASSIGN_OR_RETURN(PartialFile file, PartialFile::open(partial, size_bytes));
  // What an earlier try left may be of another file: a wrong hash then means once more from the start.
  for (const bool resumed : {file.size() > 0, false}) {
    const Status filled = fill(file, self, hub, name, size_bytes, abort, progress, options);
    if (!filled.ok()) return filled.error().with_context(fmt::format("cannot fetch {} from the hub", name));
    ATOLL_ASSIGN_OR_RETURN(const std::string hash, file.hash());
    if (hash == sha256_hex) return file.become(destination);
    ATOLL_RETURN_IF_ERROR(file.start_over());
    if (!resumed) break;
  }
  return Error{
      ErrorCode::kCorrupt,
      fmt::format("{} from the hub is not the file that the run's dataset names (its SHA-256 differs); the run's "
                  "operator has to restore it",
                  name)};
}

}  // namespace atl
