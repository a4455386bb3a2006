#include "app/cli/console_input.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>

#include "net/base/file.h"

namespace atl {

Result<std::string> read_input(const AbortSignal& interrupt) {
  for (;;) {
    pollfd waits[] = {{STDIN_FILENO, POLLIN, 0}, {interrupt.fd(), POLLIN, 0}};
    if (::poll(waits, 2, -1) < 0 && errno != EINTR) return errno_error("wait for", "standard input");
    if (interrupt.raised()) return Error{ErrorCode::kAborted, interrupt.reason()};
    if (waits[0].revents == 0) continue;
    char buffer[4096];
    const ssize_t count = ::read(STDIN_FILENO, buffer, sizeof buffer);
    if (count >= 0) return std::string(buffer, static_cast<std::size_t>(count));
    if (errno != EINTR && errno != EAGAIN) return errno_error("read", "standard input");
  }
}

bool input_is_terminal() { return ::isatty(STDIN_FILENO) == 1; }

Result<bool> said_yes(const AbortSignal& interrupt) {
  ATOLL_ASSIGN_OR_RETURN(const std::string answer, read_input(interrupt));
  return answer == "y\n" || answer == "Y\n" || answer == "yes\n";
}

}  // namespace atl
