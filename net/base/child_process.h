// A child process: how it is started, watched, signalled and ended. The only place that forks and execs; app/core,
// whose event loop must not wait, has Qt's QProcess. What the system refuses between fork and exec comes back as the
// error of spawn. One thread at a time.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "net/base/abort_signal.h"
#include "net/base/deadline.h"
#include "net/base/result.h"
#include "net/base/unique_fd.h"

namespace atl {

class ChildProcess;

// Both ends close on exec.
struct Pipe {
  UniqueFd reading, writing;
};
Result<Pipe> make_pipe();

enum class ChildEnd {
  kWithOwner,   // killed and reaped by the destructor
  kWithThread,  // the same, and by the kernel when the thread that spawned it ends, however that ends
  kItsOwn,      // it outlives its owner and this process
};

enum class ChildGroup {
  kOurs,     // the terminal's Ctrl-C is for it as well, and it may ask for a password there
  kOwn,      // the terminal's Ctrl-C reaches only us
  kSession,  // neither the terminal nor the end of our session is for it
};

struct ChildOptions {
  // A descriptor for one of the child's standard streams is a number that is open here, or one of these.
  static constexpr int kOurs = -1;
  static constexpr int kNothing = -2;  // /dev/null

  std::filesystem::path program;                        // without a slash: found on PATH
  std::vector<std::string> arguments = {};              // without the program
  std::map<std::string, std::string> environment = {};  // instead of our values, or beside them
  int input = kNothing;
  int output = kOurs;
  int errors = kOurs;
  std::filesystem::path log = {};  // where not empty, output and errors: appended to, made 0600
  ChildGroup group = ChildGroup::kOwn;
  ChildEnd end = ChildEnd::kWithThread;
  bool blocks_interrupt = false;  // its SIGINT stays blocked: Ctrl-C is ours to pass on
  // The process is there, its program waits. Should this process die meanwhile, the program never begins.
  std::function<void(const ChildProcess&)> before_program = {};
};

// Whether the process runs. One that was killed does not, though threads of it may wait for a disk in the kernel, and
// all that it had open stays open until they are through.
bool is_process_alive(pid_t pid);

class ChildProcess {
 public:
  // Returns when the program has begun. kNotFound when there is none.
  static Result<ChildProcess> spawn(const ChildOptions& options);
  // A process that another started, by its number; it ends on its own. Empty where none lives.
  static std::optional<ChildProcess> take_over(pid_t pid);

  // One that was moved from is neither signalled nor reaped.
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&& other) noexcept;
  // Unless it ends on its own: kills it, with its group where it leads one, and waits for it, but not for ever: one
  // that sleeps in a driver is left behind.
  ~ChildProcess();

  pid_t pid() const { return pid_; }  // -1: moved from
  // In ticks since boot: tells a process from a later one of the same number. 0: not known.
  std::uint64_t start_time() const { return start_time_; }

  bool ended();          // reaps it, if it is our child
  bool stopped() const;  // by SIGSTOP, and not ended
  // After ended(): 128 + signal when one ended it; empty when it was not our child.
  std::optional<int> exit_status() const { return exit_status_; }
  // The same, asking whether it has ended.
  std::optional<int> poll();

  // The exit status. kTimeout at the deadline; kAborted when `interrupt`, if any, is raised; kNotFound when it has
  // ended and was not our child.
  Result<int> wait(Deadline deadline, const AbortSignal* interrupt = nullptr);
  void send_signal(int signal);  // nothing once it has ended
  // SIGTERM, and SIGKILL at the deadline.
  void terminate(Deadline deadline);

 private:
  ChildProcess(pid_t pid, std::uint64_t start_time, bool is_child, bool leads_group, ChildEnd end)
      : pid_(pid), start_time_(start_time), is_child_(is_child), leads_group_(leads_group), end_(end) {}
  void abandon();

  pid_t pid_;
  std::uint64_t start_time_;
  bool is_child_;
  bool leads_group_;
  ChildEnd end_;
  bool ended_ = false;
  std::optional<int> exit_status_;
};

}  // namespace atl
