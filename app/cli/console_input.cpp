#include "app/cli/console_input.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>

#include "net/base/file.h"
#include "net/base/unique_fd.h"

namespace atl {

namespace {

Result<std::string> read_from(int fd, const AbortSignal& interrupt) {
  for (;;) {
    pollfd waits[] = {{fd, POLLIN, 0}, {interrupt.fd(), POLLIN, 0}};
    if (::poll(waits, 2, -1) < 0 && errno != EINTR) return errno_error("wait for", "standard input");
    if (interrupt.raised()) return Error{ErrorCode::kAborted, interrupt.reason()};
    if (waits[0].revents == 0) continue;
    char buffer[4096];
    const ssize_t count = ::read(fd, buffer, sizeof buffer);
    if (count >= 0) return std::string(buffer, static_cast<std::size_t>(count));
    if (errno != EINTR && errno != EAGAIN) return errno_error("read", "standard input");
  }
}

UniqueFd terminal_of_process() { return UniqueFd(::open("/dev/tty", O_RDONLY | O_NOCTTY | O_CLOEXEC)); }

}  // namespace

Result<std::string> read_input(const AbortSignal& interrupt) { return read_from(STDIN_FILENO, interrupt); }

bool input_is_terminal() { return ::isatty(STDIN_FILENO) == 1; }

UnseenInput::UnseenInput() {
  termios now{};
  if (::tcgetattr(STDIN_FILENO, &now) != 0) return;
  before_ = now;
  now.c_lflag &= ~static_cast<tcflag_t>(ECHO);
  now.c_lflag |= ECHONL;
  (void)::tcsetattr(STDIN_FILENO, TCSANOW, &now);
}

UnseenInput::~UnseenInput() {
  if (before_) (void)::tcsetattr(STDIN_FILENO, TCSANOW, &*before_);
}

bool can_ask() { return input_is_terminal() || terminal_of_process(); }

Result<bool> said_yes(const AbortSignal& interrupt) {
  const UniqueFd terminal = input_is_terminal() ? UniqueFd() : terminal_of_process();
  ATOLL_ASSIGN_OR_RETURN(const std::string answer, read_from(terminal ? terminal.get() : STDIN_FILENO, interrupt));
  return answer == "y\n" || answer == "Y\n" || answer == "yes\n";
}

}  // namespace atl
