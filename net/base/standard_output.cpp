#include "net/base/standard_output.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <iostream>

#include "net/base/exit_code.h"

namespace atl {
namespace {

constexpr std::size_t kWrittenAtOnce = 64 * 1024;  // bytes that wait for others, where nobody watches

bool pipe_signal_is_ignored() {
  struct sigaction action {};
  return ::sigaction(SIGPIPE, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

// 0, or why not all of it was written.
int write_all(std::string_view text) {
  while (!text.empty()) {
    const ssize_t taken = ::write(STDOUT_FILENO, text.data(), text.size());
    if (taken >= 0) {
      text.remove_prefix(static_cast<std::size_t>(taken));
    } else if (errno == EAGAIN) {  // another program made it so that writes do not wait
      pollfd writable{STDOUT_FILENO, POLLOUT, 0};
      ::poll(&writable, 1, -1);
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

// A network's disk says only when a file is closed that it is full.
int close_copy() {
  const int copy = ::dup(STDOUT_FILENO);
  return copy >= 0 && ::close(copy) != 0 && errno != EINTR ? errno : 0;
}

}  // namespace

StandardOutput::Buffer::Buffer(StandardOutput& of) : of_(of), is_terminal_(::isatty(STDOUT_FILENO) == 1) {}

StandardOutput::Buffer::int_type StandardOutput::Buffer::overflow(int_type next) {
  if (traits_type::eq_int_type(next, traits_type::eof())) return traits_type::not_eof(next);
  const char letter = traits_type::to_char_type(next);
  return xsputn(&letter, 1) == 1 ? next : traits_type::eof();
}

std::streamsize StandardOutput::Buffer::xsputn(const char* text, std::streamsize size) {
  text_.append(text, static_cast<std::size_t>(size));
  const bool due = text_.size() >= kWrittenAtOnce || (is_terminal_ && text_.find('\n') != std::string::npos);
  return !due || write_out() ? size : 0;
}

int StandardOutput::Buffer::sync() { return write_out() ? 0 : -1; }

bool StandardOutput::Buffer::write_out() {
  if (std::fflush(stdout) != 0) of_.note_failure(errno);  // what libraries said before
  const int failure = write_all(text_);
  text_.clear();
  if (failure == 0) return true;
  of_.note_failure(failure);
  if (of_.on_failure_) of_.on_failure_();
  return false;
}

StandardOutput::StandardOutput(std::function<void()> on_failure)
    : on_failure_(std::move(on_failure)),
      pipe_signal_ignored_(pipe_signal_is_ignored()),
      buffer_(*this),
      before_(std::cout.rdbuf(&buffer_)) {}

StandardOutput::~StandardOutput() {
  std::cout.flush();
  std::cout.rdbuf(before_);
}

void StandardOutput::note_failure(int error_number) {
  int none = 0;
  error_number_.compare_exchange_strong(none, error_number);
}

int StandardOutput::finish(int exit_code, std::string_view program) {
  std::cout.flush();
  if (std::fflush(stdout) != 0) note_failure(errno);
  if (std::ferror(stdout) != 0) note_failure(kUnknown);  // earlier
  if (const int failure = close_copy(); failure != 0) note_failure(failure);
  if (!failed()) return exit_code;
  if (error_number_ == EPIPE && !pipe_signal_ignored_) {
    std::signal(SIGPIPE, SIG_DFL);
    std::raise(SIGPIPE);
  }
  const std::string why = error_number_ == kUnknown ? "" : fmt::format(": {}", std::strerror(error_number_));
  fmt::print(stderr, "{}: cannot write to standard output{}; what it printed is not complete\n", program, why);
  return exit_code == kExitOk || exit_code == kExitInterrupted ? static_cast<int>(kExitOther) : exit_code;
}

}  // namespace atl
