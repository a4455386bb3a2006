#include "app/cli/remote/piped_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <utility>

namespace atl {
namespace {

struct Pipe {
  UniqueFd reading, writing;
};

Result<Pipe> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return Error{ErrorCode::kIo, fmt::format("make a pipe: {}", std::strerror(errno))};
  return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

std::vector<char*> pointers_to(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (const std::string& string : strings) pointers.push_back(const_cast<char*>(string.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

class SpawnAttributes {
 public:
  explicit SpawnAttributes(bool own_group) {
    ::posix_spawnattr_init(&attributes_);
    short flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
    sigset_t blocked, defaults;
    ::sigemptyset(&blocked);
    ::sigemptyset(&defaults);
    ::sigaddset(&defaults, SIGPIPE);
    if (own_group) {
      flags |= POSIX_SPAWN_SETPGROUP;
    } else {
      // Ctrl-C is ours to pass on, not a reason for it to die; it stays in our group to ask for a password.
      ::sigaddset(&blocked, SIGINT);
    }
    ::posix_spawnattr_setsigmask(&attributes_, &blocked);
    ::posix_spawnattr_setsigdefault(&attributes_, &defaults);
    ::posix_spawnattr_setflags(&attributes_, flags);
  }
  ~SpawnAttributes() { ::posix_spawnattr_destroy(&attributes_); }
  SpawnAttributes(const SpawnAttributes&) = delete;
  SpawnAttributes& operator=(const SpawnAttributes&) = delete;
  const posix_spawnattr_t* get() const { return &attributes_; }

 private:
  posix_spawnattr_t attributes_;
};

}  // namespace

Result<PipedProcess> PipedProcess::spawn(const PipedOptions& options) {
  ATOLL_ASSIGN_OR_RETURN(Pipe input, make_pipe());
  ATOLL_ASSIGN_OR_RETURN(Pipe output, make_pipe());
  ATOLL_ASSIGN_OR_RETURN(Pipe errors, make_pipe());
  std::vector<std::string> arguments = options.arguments;
  arguments.insert(arguments.begin(), options.program);
  std::vector<std::string> environment = options.environment;
  for (char** entry = environ; *entry != nullptr; ++entry) environment.emplace_back(*entry);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, input.reading.get(), STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, output.writing.get(), STDOUT_FILENO);
  if (options.own_errors) ::posix_spawn_file_actions_adddup2(&actions, errors.writing.get(), STDERR_FILENO);
  const SpawnAttributes attributes(options.own_group);
  pid_t pid = -1;
  const int failure = ::posix_spawnp(&pid, options.program.c_str(), &actions, attributes.get(),
                                     pointers_to(arguments).data(), pointers_to(environment).data());
  ::posix_spawn_file_actions_destroy(&actions);
  if (failure != 0) {
    return Error{failure == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo,
                 fmt::format("cannot run {}: {}; install it, or see to it that it is on PATH", options.program,
                             std::strerror(failure))};
  }
  PipedProcess process(pid);
  process.input = std::move(input.writing);
  process.output = std::move(output.reading);
  if (options.own_errors) process.errors = std::move(errors.reading);
  return process;
}

std::optional<int> PipedProcess::wait(Deadline deadline) {
  std::optional<int> exit = poll();
  while (!exit && !deadline.expired()) {
    ::poll(nullptr, 0, deadline.poll_milliseconds(20));
    exit = poll();
  }
  return exit;
}

}  // namespace atl
