#include "net/data/dataset_fetch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>

#include "net/base/backoff.h"
#include "net/base/file.h"
#include "net/base/new_file.h"
#include "net/base/plain_name.h"
#include "net/base/sha256.h"
#include "net/base/unique_fd.h"
#include "net/https/http_status.h"
#include "net/https/https_fetcher.h"

namespace atl {
namespace {

constexpr std::chrono::milliseconds kTurn{200};

// What has arrived so far, on disk.
class PartialFile {
 public:
  static Result<PartialFile> open(const std::filesystem::path& path, std::uint64_t whole_bytes) {
    UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644));
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
    return rename_and_flush(path_, destination);
  }

 private:
  PartialFile(UniqueFd fd, std::filesystem::path path, std::uint64_t size)
      : fd_(std::move(fd)), path_(std::move(path)), size_(size) {}
  UniqueFd fd_;
  std::filesystem::path path_;
  std::uint64_t size_ = 0;
};

// A full disk or the hub's refusal stays what it is. All else may be the network's, or mended by the hub's operator.
bool is_worth_another_try(ErrorCode code) {
  switch (code) {
    case ErrorCode::kUnreachable:
    case ErrorCode::kTimeout:
    case ErrorCode::kPeerLost:
    case ErrorCode::kProtocol:
    case ErrorCode::kCertificate:
    case ErrorCode::kNotFound:
    case ErrorCode::kCorrupt: return true;
    default: return false;
  }
}

// One file on its way from the hub, through as many tries as it takes.
class DatasetFetch {
 public:
  DatasetFetch(HttpsFetcher fetcher, const std::vector<Address>& hub, const std::string& name, PartialFile file,
               std::uint64_t whole_bytes, const AbortSignal& abort, const FetchProgress& progress,
               const FetchTrouble& trouble, const DatasetFetchOptions& options)
      : fetcher_(std::move(fetcher)),
        hub_(hub),
        name_(name),
        file_(std::move(file)),
        whole_bytes_(whole_bytes),
        abort_(abort),
        progress_(progress),
        trouble_(trouble),
        pause_(options.retry_after, options.longest_retry),
        pause_of_wrong_(options.retry_wrong_after, options.longest_retry_wrong) {}

  // Until the file with this hash is at `destination`.
  Status run(const std::string& sha256_hex, const std::filesystem::path& destination) {
    for (;;) {
      // What an earlier try left may be of another file: a wrong hash then means once more from the start, at once.
      const bool resumed = file_.size() > 0;
      ATOLL_RETURN_IF_ERROR(fill());
      ATOLL_ASSIGN_OR_RETURN(const std::string hash, file_.hash());
      if (hash == sha256_hex) return file_.become(destination);
      ATOLL_RETURN_IF_ERROR(file_.start_over());
      if (resumed) continue;
      const Error wrong{ErrorCode::kCorrupt,
                        "the hub's file is not the one that the run's dataset names (its SHA-256 differs); the run's "
                        "operator has to restore it"};
      ATOLL_RETURN_IF_ERROR(wait_after(wrong));
    }
  }

 private:
  // Until all bytes are there, from whichever address answers.
  Status fill() {
    while (file_.size() < whole_bytes_) {
      const std::uint64_t before = file_.size();
      Status fetched = fetch_rest(hub_[turn_++ % hub_.size()]);
      if (file_.size() == whole_bytes_) break;
      if (fetched.ok()) fetched = Error{ErrorCode::kProtocol, "the hub's answer was shorter than the file"};
      if (!is_worth_another_try(fetched.error().code)) return fetched;
      if (file_.size() > before) pause_.reset();
      ATOLL_RETURN_IF_ERROR(wait_after(fetched.error()));
    }
    return ok_status();
  }

  // One request for what is missing, from one of the hub's addresses; appends what comes.
  Status fetch_rest(const Address& hub) {
    HttpsRequest request;
    request.peer = IslandId{kHubName};
    request.address = hub;
    request.path = "/data/" + name_;
    request.max_bytes = whole_bytes_;
    if (file_.size() > 0) request.resume_at = file_.size();
    bool first = true;
    request.on_body = [&](ByteView bytes, bool partial) -> Status {
      // A hub that does not resume sends all of it.
      if (std::exchange(first, false) && !partial && file_.size() > 0) ATOLL_RETURN_IF_ERROR(file_.start_over());
      if (file_.size() + bytes.size() > whole_bytes_) {
        return Error{ErrorCode::kCorrupt, "the hub's file is larger than the dataset says"};
      }
      if (std::exchange(troubled_, false) && trouble_) trouble_({});
      return file_.append(bytes);
    };
    const TransferId id = fetcher_.start(std::move(request));
    for (;;) {
      const auto outcomes = fetcher_.wait(Deadline::after(kTurn), abort_);
      if (progress_) progress_(file_.size(), whole_bytes_);
      if (!outcomes.ok()) {
        fetcher_.cancel(id);
        return outcomes.error();
      }
      if (!outcomes->empty()) return judge(outcomes->front(), hub);
    }
  }

  // Only an answer that came whole counts: until then nobody knows whose word it is.
  Status judge(const HttpsOutcome& outcome, const Address& hub) const {
    if (outcome.error) return *outcome.error;
    if (outcome.http_status == kStatusOk || outcome.http_status == kStatusPartialContent) return ok_status();
    if (outcome.http_status == kStatusForbidden) {
      return Error{ErrorCode::kPermissionDenied,
                   "it no longer has this island in its roster: it was removed; join again with a new invite"};
    }
    const ErrorCode code = outcome.http_status == 404 ? ErrorCode::kNotFound : ErrorCode::kProtocol;
    return Error{code, fmt::format("the hub at {} answers to GET /data/{} with HTTP status {}", to_string(hub), name_,
                                   outcome.http_status)};
  }

  // Without the network; kAborted when stopped.
  Status wait_after(const Error& failure) {
    Backoff& pause = failure.code == ErrorCode::kCorrupt ? pause_of_wrong_ : pause_;
    spdlog::warn("data file={} bytes={} of={} retry=1 message=\"{}\"", name_, file_.size(), whole_bytes_,
                 failure.message);
    troubled_ = true;
    if (trouble_) trouble_(fmt::format("cannot fetch {} from the hub: {}; trying again", name_, failure.message));
    const auto waited = fetcher_.wait(Deadline::after(pause.next()), abort_);
    return waited.ok() ? ok_status() : Status(waited.error());
  }

  HttpsFetcher fetcher_;
  const std::vector<Address>& hub_;
  const std::string& name_;
  PartialFile file_;
  const std::uint64_t whole_bytes_;
  const AbortSignal& abort_;
  const FetchProgress& progress_;
  const FetchTrouble& trouble_;
  Backoff pause_, pause_of_wrong_;
  std::size_t turn_ = 0;  // which address is next
  bool troubled_ = false;
};

}  // namespace

Status fetch_dataset_file(const Identity& self, const std::vector<Address>& hub, const std::string& name,
                          std::uint64_t size_bytes, const std::string& sha256_hex,
                          const std::filesystem::path& destination, const AbortSignal& abort,
                          const FetchProgress& progress, const FetchTrouble& trouble,
                          const DatasetFetchOptions& options) {
  const auto slash = name.find('/');
  const bool plain =
      is_plain_name(name.substr(slash + 1)) && (slash == std::string::npos || is_plain_name(name.substr(0, slash)));
  if (!plain || hub.empty()) {
    return Error{ErrorCode::kInvalidArgument, fmt::format("'{}' is no file of a dataset on a known hub", name)};
  }
  std::filesystem::path partial = destination;
  partial += ".part";
  ATOLL_ASSIGN_OR_RETURN(PartialFile file, PartialFile::open(partial, size_bytes));
  ATOLL_ASSIGN_OR_RETURN(HttpsFetcher fetcher, HttpsFetcher::create(self, options.stall, options.download));
  DatasetFetch fetch(std::move(fetcher), hub, name, std::move(file), size_bytes, abort, progress, trouble, options);
  const Status fetched = fetch.run(sha256_hex, destination);
  return fetched.ok() ? fetched : fetched.error().with_context(fmt::format("cannot fetch {} from the hub", name));
}

}  // namespace atl
