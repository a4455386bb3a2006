// A child process: started, watched, ended. It dies with this process, however that ends (PR_SET_PDEATHSIG), and is the
// leader of a process group of its own, so that Ctrl-C in the terminal reaches only us. Spawn and use from the main
// thread: the kernel ties the death signal to the thread that forked.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

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
  ChildProcess(ChildProcess&& other) noexcept : pid_(std::exchange(other.pid_, -1)), exit_(other.exit_) {}
  ChildProcess& operator=(ChildProcess&& other) noexcept;
  ~ChildProcess();  // kills and reaps what still runs

  pid_t pid() const { return pid_; }
  // The exit status (128 + signal when one ended it), once it has ended.
  std::optional<int> poll();
  // kTimeout at the deadline; kAborted when `interrupt`, if any, is raised.
  Result<int> wait(Deadline deadline, const AbortSignal* interrupt = nullptr);
  void send_signal(int signal);  // nothing once it has ended
  // SIGTERM, and SIGKILL at the deadline.
  void terminate(Deadline deadline);

 private:
  explicit ChildProcess(pid_t pid) : pid_(pid) {}
  pid_t pid_ = -1;
  std::optional<int> exit_;
};

// `name` beside this program's own file, or what the environment variable says.
Result<std::filesystem::path> locate_program(const char* name, const char* environment_variable);
Result<std::filesystem::path> locate_trainer();    // ATOLL_TRAINER
Result<std::filesystem::path> locate_atoll();      // ATOLL_PROGRAM
Result<std::filesystem::path> locate_gpu_probe();  // ATOLL_GPU_PROBE

}  // namespace atl
