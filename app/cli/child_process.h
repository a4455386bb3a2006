// A child process: started, watched, ended. It is killed with its owner, and dies with this process, however that ends
// (PR_SET_PDEATHSIG). It is the leader of a process group of its own, so that Ctrl-C in the terminal reaches only us.
// Spawn and use from the main thread: the kernel ties the death signal to the thread that forked.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "app/cli/unique_child.h"
#include "net/base/abort_signal.h"
#include "net/base/deadline.h"
#include "net/base/result.h"

namespace atl {

struct ChildOptions {
  std::filesystem::path program;
  std::vector<std::string> arguments;
  // Appended to, made 0600: stdout and stderr. Empty: ours.
  std::filesystem::path log;
};

class ChildProcess {
 public:
  // kNotFound when the program is not there.
  static Result<ChildProcess> spawn(const ChildOptions& options);

  pid_t pid() const { return child_.pid(); }
  std::optional<int> poll() { return child_.poll(); }  // the exit status, 128 + signal
  // kTimeout at the deadline; kAborted when `interrupt`, if any, is raised.
  Result<int> wait(Deadline deadline, const AbortSignal* interrupt = nullptr);
  void send_signal(int signal) { child_.send_signal(signal); }
  // SIGTERM, and SIGKILL at the deadline.
  void terminate(Deadline deadline);

 private:
  explicit ChildProcess(pid_t pid) : child_(pid) {}
  UniqueChild child_;
};

// `name` beside this program's own file, or what the environment variable says.
Result<std::filesystem::path> locate_program(const char* name, const char* environment_variable);
Result<std::filesystem::path> locate_trainer();    // ATOLL_TRAINER
Result<std::filesystem::path> locate_atoll();      // ATOLL_PROGRAM
Result<std::filesystem::path> locate_gpu_probe();  // ATOLL_GPU_PROBE

}  // namespace atl
