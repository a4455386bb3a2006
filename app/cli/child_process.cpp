#include "app/cli/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "net/base/file.h"
#include "net/base/signal_watch.h"
#include "net/base/unique_fd.h"

namespace atl {
namespace {

constexpr int kExecFailed = 127;

// Between fork and exec: only what is safe there.
[[noreturn]] void become(const char* program, char* const* arguments, int input, int output, pid_t parent) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(kExecFailed);  // it died before the line above
  SignalWatch::unblock_in_child();
  ::signal(SIGPIPE, SIG_DFL);
  ::dup2(input, STDIN_FILENO);
  if (output >= 0) {
    ::dup2(output, STDOUT_FILENO);
    ::dup2(output, STDERR_FILENO);
  }
  ::execv(program, arguments);
  ::_exit(kExecFailed);
}

}  // namespace

Result<ChildProcess> ChildProcess::spawn(const ChildOptions& options) {
  if (::access(options.program.c_str(), X_OK) != 0) return errno_error("run", options.program);
  const UniqueFd input(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!input) return errno_error("open", "/dev/null");
  UniqueFd log;
  if (!options.log.empty()) {
    log.reset(::open(options.log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    if (!log) return errno_error("open", options.log);
  }
  std::vector<char*> arguments{const_cast<char*>(options.program.c_str())};
  for (const std::string& argument : options.arguments) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return errno_error("start", options.program);
  if (pid == 0) {
    become(options.program.c_str(), arguments.data(), input.get(), log.get(), parent);
  }
  ::setpgid(pid, pid);  // whichever of the two is first
  return ChildProcess(pid);
}

Result<int> ChildProcess::wait(Deadline deadline, const AbortSignal* interrupt) {
  while (true) {
    if (const auto code = poll()) return *code;
    if (interrupt != nullptr && interrupt->raised()) return Error{ErrorCode::kAborted, interrupt->reason()};
    if (deadline.expired()) return Error{ErrorCode::kTimeout, fmt::format("process {} is still running", pid())};
    pollfd wake{interrupt != nullptr ? interrupt->fd() : -1, POLLIN, 0};
    ::poll(&wake, 1, deadline.poll_milliseconds(50));
  }
}

void ChildProcess::terminate(Deadline deadline) {
  send_signal(SIGTERM);
  if (wait(deadline).ok()) return;
  send_signal(SIGKILL);
  (void)wait(Deadline::after(std::chrono::seconds(5)));
}

Result<std::filesystem::path> locate_program(const char* name, const char* environment_variable) {
  const char* chosen = std::getenv(environment_variable);
  if (chosen != nullptr && chosen[0] != '\0') return std::filesystem::path(chosen);
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::filesystem::path found = self.parent_path() / name;
  if (!error && ::access(found.c_str(), X_OK) == 0) return found;
  return Error{ErrorCode::kTrainerFailed,
               fmt::format("{} is not beside {}; build or install it, or say where it is with {}=/path/to/{}", name,
                           self.string(), environment_variable, name)};
}

Result<std::filesystem::path> locate_trainer() { return locate_program("atoll-trainer", "ATOLL_TRAINER"); }
Result<std::filesystem::path> locate_atoll() { return locate_program("atoll", "ATOLL_PROGRAM"); }
Result<std::filesystem::path> locate_gpu_probe() { return locate_program("atoll-gpu-probe", "ATOLL_GPU_PROBE"); }

}  // namespace atl
