#include "tests/wan/wan_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>

#include "net/base/file.h"

namespace atl::wan {
namespace {

constexpr int kExecFailed = 127;

// Between fork and exec: only what is safe there.
[[noreturn]] void become(int network_namespace, char* const* arguments, int input, int output, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(kExecFailed);  // it died before the line above
  if (::setns(network_namespace, CLONE_NEWNET) != 0) ::_exit(kExecFailed);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::dup2(input, STDIN_FILENO);
  ::dup2(output, STDOUT_FILENO);
  ::execvp(arguments[0], arguments);
  ::_exit(kExecFailed);
}

Result<std::pair<UniqueFd, UniqueFd>> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return errno_error("make", "a pipe");
  return std::pair{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

}  // namespace

Result<WanProcess> WanProcess::start(const HostNetwork& host, const std::vector<std::string>& arguments) {
  ATOLL_ASSIGN_OR_RETURN(auto input, make_pipe());
  ATOLL_ASSIGN_OR_RETURN(auto output, make_pipe());
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return errno_error("start", arguments.front());
  if (pid == 0) become(host.network_namespace(), argv.data(), input.first.get(), output.second.get(), parent);
  return WanProcess(pid, std::move(input.second), std::move(output.first));
}

WanProcess::WanProcess(WanProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      exit_(other.exit_),
      input_(std::move(other.input_)),
      output_(std::move(other.output_)),
      buffered_(std::move(other.buffered_)) {}

WanProcess::~WanProcess() {
  if (pid_ < 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

Status WanProcess::write_line(const std::string& line) {
  const std::string text = line + "\n";
  for (std::size_t sent = 0; sent < text.size();) {
    const ssize_t count = ::write(input_.get(), text.data() + sent, text.size() - sent);
    if (count <= 0) return errno_error("write to", fmt::format("process {}", pid_));
    sent += static_cast<std::size_t>(count);
  }
  return ok_status();
}

Result<std::string> WanProcess::read_line(Deadline deadline) {
  for (;;) {
    if (const std::size_t end = buffered_.find('\n'); end != std::string::npos) {
      std::string line = buffered_.substr(0, end);
      buffered_.erase(0, end + 1);
      return line;
    }
    pollfd watched{output_.get(), POLLIN, 0};
    if (::poll(&watched, 1, deadline.poll_milliseconds()) == 0) {
      if (deadline.expired()) return Error{ErrorCode::kTimeout, fmt::format("process {} says nothing", pid_)};
      continue;
    }
    std::array<char, 4096> text{};
    const ssize_t count = ::read(output_.get(), text.data(), text.size());
    if (count <= 0) return Error{ErrorCode::kPeerLost, fmt::format("process {} closed its output", pid_)};
    buffered_.append(text.data(), static_cast<std::size_t>(count));
  }
}

void WanProcess::send_signal(int signal) {
  if (pid_ >= 0) ::kill(pid_, signal);
}

Result<int> WanProcess::wait(Deadline deadline) {
  while (pid_ >= 0) {
    int status = 0;
    if (::waitpid(pid_, &status, WNOHANG) == pid_) {
      pid_ = -1;
      exit_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
      break;
    }
    if (deadline.expired()) return Error{ErrorCode::kTimeout, fmt::format("process {} still runs", pid_)};
    ::poll(nullptr, 0, deadline.poll_milliseconds(5));
  }
  return exit_;
}

}  // namespace atl::wan
