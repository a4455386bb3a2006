#include "app/cli/unique_child.h"

#include <sys/wait.h>

#include <csignal>

namespace atl {

UniqueChild& UniqueChild::operator=(UniqueChild&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(exit_, other.exit_);
  return *this;
}

UniqueChild::~UniqueChild() {
  if (pid_ <= 0 || poll()) return;
  send_signal(SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

std::optional<int> UniqueChild::poll() {
  int status = 0;
  // One that was moved from has no number: -1 means every process there is.
  if (pid_ > 0 && !exit_ && ::waitpid(pid_, &status, WNOHANG) == pid_) {
    exit_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }
  return exit_;
}

void UniqueChild::send_signal(int signal) {
  if (pid_ > 0 && !poll()) ::kill(pid_, signal);
}

}  // namespace atl
