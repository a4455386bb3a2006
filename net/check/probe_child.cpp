#include "net/check/probe_child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <optional>

#include "net/base/child_process.h"

namespace atl {
namespace {

constexpr std::size_t kLastWords = 300;

class Output {
 public:
  Output(std::size_t max_bytes, const std::function<void(std::string_view)>& on_line)
      : left_(max_bytes), on_line_(on_line) {}

  // Reads what is there. False at the end; too_much() when the child wrote more than it may.
  bool drain(int pipe) {
    std::array<char, 4096> buffer;
    for (;;) {
      const ssize_t count = ::read(pipe, buffer.data(), buffer.size());
      if (count <= 0) return count < 0 && (errno == EAGAIN || errno == EINTR);
      if (static_cast<std::size_t>(count) > left_) {
        too_much_ = true;
        return false;
      }
      left_ -= static_cast<std::size_t>(count);
      unfinished_.append(buffer.data(), static_cast<std::size_t>(count));
      take_lines();
    }
  }
  bool too_much() const { return too_much_; }
  std::string_view last_words() const {
    std::string_view text = unfinished_.empty() ? std::string_view(last_line_) : std::string_view(unfinished_);
    return text.substr(0, kLastWords);
  }

 private:
  void take_lines() {
    std::size_t begin = 0;
    for (std::size_t end; (end = unfinished_.find('\n', begin)) != std::string::npos; begin = end + 1) {
      last_line_ = unfinished_.substr(begin, end - begin);
      if (on_line_) on_line_(last_line_);
    }
    unfinished_.erase(0, begin);
  }

  std::size_t left_;
  const std::function<void(std::string_view)>& on_line_;
  std::string unfinished_, last_line_;
  bool too_much_ = false;
};

Error ended_badly(const ProbeChild& child, std::optional<int> status, std::string_view last_words) {
  const std::string name = child.program.filename().string();
  if (!status) return Error{ErrorCode::kInternal, fmt::format("{} ended, nobody knows how", name)};
  if (*status > 128 && *status < 128 + NSIG) {
    return Error{ErrorCode::kInternal, fmt::format("{} crashed ({})", name, ::strsignal(*status - 128))};
  }
  return Error{ErrorCode::kInternal,
               last_words.empty() ? fmt::format("{} ended with status {}", name, *status) : std::string(last_words)};
}

}  // namespace

Status run_probe_child(const ProbeChild& child, const AbortSignal& abort,
                       const std::function<void(std::string_view line)>& on_line) {
  ATOLL_ASSIGN_OR_RETURN(Pipe output, make_pipe());
  ATOLL_ASSIGN_OR_RETURN(Pipe errors, make_pipe());
  ::fcntl(output.reading.get(), F_SETFL, O_NONBLOCK);
  ::fcntl(errors.reading.get(), F_SETFL, O_NONBLOCK);
  ATOLL_ASSIGN_OR_RETURN(ChildProcess process, ChildProcess::spawn({.program = child.program,
                                                                    .arguments = child.arguments,
                                                                    .output = output.writing.get(),
                                                                    .errors = errors.writing.get()}));
  output.writing.reset();
  errors.writing.reset();
  const std::function<void(std::string_view)> nothing;
  Output said(child.max_bytes, on_line), complained(child.max_bytes, nothing);
  for (;;) {
    const bool over = process.ended();  // before the pipes are read for the last time
    if (output.reading && !said.drain(output.reading.get())) output.reading.reset();
    if (errors.reading && !complained.drain(errors.reading.get())) errors.reading.reset();
    if (said.too_much() || complained.too_much()) {
      return Error{ErrorCode::kCorrupt, fmt::format("{} writes without end", child.program.filename().string())};
    }
    if (over) break;
    if (abort.raised()) return Error{ErrorCode::kAborted, abort.reason()};
    if (child.deadline.expired()) {
      return Error{ErrorCode::kTimeout, fmt::format("{} does not answer", child.program.filename().string())};
    }
    pollfd waits[] = {{output.reading.get(), POLLIN, 0}, {errors.reading.get(), POLLIN, 0}, {abort.fd(), POLLIN, 0}};
    ::poll(waits, 3, child.deadline.poll_milliseconds(50));
  }
  if (process.exit_status() == 0) return ok_status();
  return ended_badly(child, process.exit_status(), complained.last_words());
}

}  // namespace atl
