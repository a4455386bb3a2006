#include "net/data/parquet_text.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <vector>

#include "net/base/child_process.h"
#include "net/base/file.h"
#include "net/base/printable.h"
#include "net/data/parquet_stream.h"

namespace atl {
namespace {

constexpr char kProgram[] = "atoll-parquet";
constexpr char kProgramVariable[] = "ATOLL_PARQUET";
constexpr std::size_t kBufferBytes = 256 * 1024;
constexpr int kPipeBytes = 1 << 20;
constexpr std::size_t kMostBlockRows = 1u << 16;  // of rows without text there may be any number
constexpr std::chrono::minutes kSilence{10};      // a row group of some GB is decompressed meanwhile
constexpr std::chrono::seconds kGoodbye{10};
constexpr int kKilled = 128 + SIGKILL;
constexpr int kNotLoaded = 127;  // what the system's loader ends a program with that lacks a library

std::filesystem::path find_program() {
  const char* const chosen = std::getenv(kProgramVariable);
  std::error_code ignored;
  const auto here = std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path();
  std::vector<std::filesystem::path> places = {here / kProgram, here.parent_path() / "bin" / kProgram};
  if (chosen != nullptr && chosen[0] != '\0') places = {chosen};
  for (const auto& place : places) {
    if (::access(place.c_str(), X_OK) == 0) return place;
  }
  return {};
}

// The process that reads a file, and what it says.
class ParquetChild {
 public:
  static Result<std::unique_ptr<ParquetChild>> start(const std::filesystem::path& file, const std::string& column,
                                                     const AbortSignal* interrupt) {
    const std::filesystem::path program = find_program();
    if (program.empty()) {
      return Error{
          ErrorCode::kNotFound,
          fmt::format("{}: this build of Atoll reads no Parquet ({} is not beside it), for Apache Arrow was not "
                      "there when it was built; run installer/arrow.sh and build again, or convert the file to "
                      ".jsonl.zst",
                      file.string(), kProgram)};
    }
    ATOLL_ASSIGN_OR_RETURN(Pipe pipe, make_pipe());
    (void)::fcntl(pipe.reading.get(), F_SETPIPE_SZ, kPipeBytes);
    ATOLL_ASSIGN_OR_RETURN(ChildProcess process,
                           ChildProcess::spawn({.program = program,
                                                .arguments = {std::filesystem::absolute(file).string(), column},
                                                .output = pipe.writing.get(),
                                                .errors = ChildOptions::kNothing}));
    return std::unique_ptr<ParquetChild>(
        new ParquetChild(file, std::move(process), std::move(pipe.reading), interrupt));
  }

  // All of it, or why not. `row`: which is read, for what is said.
  Status read(char* to, std::size_t bytes, std::uint64_t row) {
    while (bytes > 0) {
      if (begin_ == end_) ATOLL_RETURN_IF_ERROR(fill(row));
      const std::size_t count = std::min(bytes, end_ - begin_);
      std::memcpy(to, buffer_.data() + begin_, count);
      begin_ += count;
      to += count;
      bytes -= count;
    }
    return ok_status();
  }
  Result<std::uint32_t> read_number(std::uint64_t row) {
    std::uint32_t number = 0;
    ATOLL_RETURN_IF_ERROR(read(reinterpret_cast<char*>(&number), sizeof(number), row));
    return number;
  }

 private:
  ParquetChild(std::filesystem::path file, ChildProcess process, UniqueFd output, const AbortSignal* interrupt)
      : file_(std::move(file)),
        interrupt_(interrupt),
        output_(std::move(output)),
        process_(std::move(process)),
        buffer_(kBufferBytes) {}

  Status fill(std::uint64_t row) {
    const Deadline deadline = Deadline::after(kSilence);
    while (!deadline.expired()) {
      pollfd ready[] = {{output_.get(), POLLIN, 0}, {interrupt_ != nullptr ? interrupt_->fd() : -1, POLLIN, 0}};
      ::poll(ready, 2, deadline.poll_milliseconds());
      if (interrupt_ != nullptr && interrupt_->raised()) return Error{ErrorCode::kAborted, interrupt_->reason()};
      if (ready[0].revents == 0) continue;
      const ssize_t count = ::read(output_.get(), buffer_.data(), buffer_.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return errno_error("read", file_);
      if (count == 0) return ended(row);
      begin_ = 0;
      end_ = static_cast<std::size_t>(count);
      return ok_status();
    }
    return Error{ErrorCode::kTimeout, fmt::format("{} cannot be read: {} gave nothing behind row {} for {} minutes",
                                                  file_.string(), kProgram, row - 1, kSilence.count())};
  }

  Error ended(std::uint64_t row) {
    const auto status = process_.wait(Deadline::after(kGoodbye));
    if (!status.ok()) return status.error().with_context(file_.string());
    if (*status == kKilled) {
      return Error{ErrorCode::kIo, fmt::format("{}: {} was killed behind row {}, as the system does where memory is "
                                               "short; free some, or say fewer --threads, and call it again",
                                               file_.string(), kProgram, row - 1)};
    }
    if (*status == kNotLoaded && row == 1) {
      return Error{ErrorCode::kNotFound,
                   fmt::format("{}: {} cannot be started, for a library that it needs is missing: install Atoll again, "
                               "or convert the file to .jsonl.zst",
                               file_.string(), find_program().string())};
    }
    const std::string how = *status > 128 ? fmt::format("signal {}, {}", *status - 128, ::strsignal(*status - 128))
                                          : fmt::format("status {}", *status);
    return Error{
        ErrorCode::kCorrupt,
        fmt::format("{} cannot be read behind row {}: Apache Arrow ended with {}, as it does on damaged files; "
                    "get the file again",
                    file_.string(), row - 1, how)};
  }

  const std::filesystem::path file_;
  const AbortSignal* const interrupt_;
  const UniqueFd output_;
  ChildProcess process_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0, end_ = 0;
};

class ParquetBlocks : public TextBlocks {
 public:
  ParquetBlocks(TextFile file, std::unique_ptr<ParquetChild> child, std::size_t block_bytes)
      : file_(std::move(file)), child_(std::move(child)), block_bytes_(block_bytes) {}

  Result<std::optional<TextBlock>> next() override {
    TextBlock block{
        .bytes = {}, .ends = {}, .first = row_, .offset = 0, .mark_bytes = 0, .disk_bytes = file_.disk_bytes};
    while (!ended_ && block.bytes.size() < block_bytes_ && block.ends.size() < kMostBlockRows) {
      ATOLL_RETURN_IF_ERROR(read_row(block));
    }
    if (block.ends.empty()) return std::optional<TextBlock>();
    return std::optional(std::move(block));
  }

 private:
  Status read_row(TextBlock& block) {
    ATOLL_ASSIGN_OR_RETURN(const std::uint32_t number, child_->read_number(row_));
    if (number == kReadingFailed) return read_failure();
    ended_ = number == kEndOfRows;
    if (ended_) return ok_status();
    const std::uint32_t bytes = number == kRowWithoutText ? 0 : number;
    if (bytes > kMaxDocumentBytes) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("{} row {} is longer than {} MiB", file_.path.string(), row_, kMaxDocumentBytes >> 20)};
    }
    const std::size_t before = block.bytes.size();
    block.bytes.resize(before + bytes);
    ATOLL_RETURN_IF_ERROR(child_->read(block.bytes.data() + before, bytes, row_));
    block.ends.push_back(block.bytes.size());
    ++row_;
    return ok_status();
  }

  Status read_failure() {
    ATOLL_ASSIGN_OR_RETURN(const std::uint32_t bytes, child_->read_number(row_));
    std::string why(std::min(bytes, kLongestFailure), '\0');
    ATOLL_RETURN_IF_ERROR(child_->read(why.data(), why.size(), row_));
    if (row_ == 1) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("{} cannot be read: {}", file_.path.string(), printable(why))};
    }
    return Error{ErrorCode::kCorrupt, fmt::format("{} cannot be read behind row {}: {}; get the file again",
                                                  file_.path.string(), row_ - 1, printable(why))};
  }

  const TextFile file_;
  const std::unique_ptr<ParquetChild> child_;
  const std::size_t block_bytes_;
  std::uint64_t row_ = 1;
  bool ended_ = false;
};

}  // namespace

bool reads_parquet() { return !find_program().empty(); }

Result<std::unique_ptr<TextBlocks>> open_parquet_text(const TextFile& file, const ReadOptions& options,
                                                      const AbortSignal* interrupt) {
  std::string name = file.path.extension().string();
  for (char& c : name) c = static_cast<char>(c | 0x20);
  if (name != ".parquet") {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{} is compressed as a whole; decompress it first: Parquet is read from both ends, and "
                             "compressed inside",
                             file.path.string())};
  }
  ATOLL_ASSIGN_OR_RETURN(std::unique_ptr<ParquetChild> child, ParquetChild::start(file.path, options.field, interrupt));
  return std::unique_ptr<TextBlocks>(std::make_unique<ParquetBlocks>(file, std::move(child), options.block_bytes));
}

}  // namespace atl
