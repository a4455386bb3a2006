#include "net/base/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string_view>
#include <utility>

#include "net/base/file.h"

namespace atl {
namespace {

constexpr int kExecFailed = 127;
constexpr int kLookMilliseconds = 20;
constexpr std::chrono::seconds kKilledTime{2};  // for a killed child to be gone
constexpr std::chrono::seconds kBeginTime{10};  // for its program to begin; a disk that does not answer takes longer

// What is done between fork and exec, where memory must not be allocated.
struct Execution {
  const char* program;
  char* const* arguments;
  char* const* environment;
  std::array<int, 3> streams;  // ChildOptions::kOurs, or a descriptor
  sigset_t blocked;
  ChildGroup group;
  bool ends_with_parent;
  pid_t parent;
  int go;        // read before the program begins; -1: nobody makes it wait
  int go_other;  // its other end, or it would wait for itself
  int failure;   // errno goes here
};

[[noreturn]] void fail(int to) {
  const int number = errno;
  (void)!::write(to, &number, sizeof number);
  ::_exit(kExecFailed);
}

// Descriptors 0 to 2 may have been closed here, and a pipe or file of ours have one of these numbers.
int above_standard(int fd, int failure) {
  if (fd < 0 || fd > STDERR_FILENO) return fd;
  const int other = ::fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  if (other < 0) fail(failure);
  return other;
}

[[noreturn]] void become(Execution execution) {
  execution.failure = above_standard(execution.failure, execution.failure);
  const int failure = execution.failure;
  if (execution.group == ChildGroup::kSession) ::setsid();
  if (execution.group == ChildGroup::kOwn) ::setpgid(0, 0);
  if (execution.ends_with_parent) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != execution.parent) ::_exit(kExecFailed);  // it died before the line above
  }
  execution.go = above_standard(execution.go, failure);
  for (int& stream : execution.streams) stream = above_standard(stream, failure);
  for (int i = 0; i < 3; ++i) {
    const int stream = execution.streams[static_cast<std::size_t>(i)];
    if (stream >= 0 && ::dup2(stream, i) < 0) fail(failure);
  }
  if (execution.go >= 0) {
    ::close(execution.go_other);
    char byte = 0;
    if (::read(execution.go, &byte, 1) != 1) ::_exit(kExecFailed);  // our parent died before it had said so
  }
  ::signal(SIGPIPE, SIG_DFL);
  ::pthread_sigmask(SIG_SETMASK, &execution.blocked, nullptr);
  ::execve(execution.program, execution.arguments, execution.environment);
  fail(failure);
}

Result<std::filesystem::path> on_path(const std::filesystem::path& program) {
  if (program.string().find('/') != std::string::npos) return program;
  const char* const path = std::getenv("PATH");
  std::istringstream directories(path != nullptr ? path : "/usr/bin:/bin");
  for (std::string directory; std::getline(directories, directory, ':');) {
    const auto found = std::filesystem::path(directory.empty() ? "." : directory) / program;
    std::error_code ignored;
    if (std::filesystem::is_regular_file(found, ignored) && ::access(found.c_str(), X_OK) == 0) return found;
  }
  return Error{ErrorCode::kNotFound, fmt::format("cannot run {}: no such program; install it, or see to it that it is "
                                                 "on PATH",
                                                 program.string())};
}

std::vector<std::string> environment_with(const std::map<std::string, std::string>& changes) {
  std::vector<std::string> environment;
  for (char** entry = ::environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (!changes.contains(std::string(text.substr(0, text.find('='))))) environment.emplace_back(text);
  }
  for (const auto& [name, value] : changes) environment.push_back(fmt::format("{}={}", name, value));
  return environment;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// The standard streams of a child, and what of them was opened for it.
struct Streams {
  std::array<int, 3> descriptors;
  UniqueFd nothing, log;
};

Result<Streams> open_streams(const ChildOptions& options) {
  Streams streams{{options.input, options.output, options.errors}, {}, {}};
  if (!options.log.empty()) {
    streams.log.reset(::open(options.log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    if (!streams.log) return errno_error("open", options.log);
    streams.descriptors[1] = streams.descriptors[2] = streams.log.get();
  }
  streams.nothing.reset(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!streams.nothing) return errno_error("open", "/dev/null");
  for (int& descriptor : streams.descriptors) {
    if (descriptor == ChildOptions::kNothing) descriptor = streams.nothing.get();
  }
  return streams;
}

sigset_t blocked_signals(const ChildOptions& options) {
  sigset_t blocked;
  ::sigemptyset(&blocked);
  if (options.blocks_interrupt) ::sigaddset(&blocked, SIGINT);
  return blocked;
}

// The errno that came through the pipe; empty when it was closed by exec, or a disk keeps us waiting for that.
std::optional<int> failure_of_exec(const Pipe& pipe) {
  const Deadline deadline = Deadline::after(kBeginTime);
  while (!deadline.expired()) {
    pollfd readable{pipe.reading.get(), POLLIN, 0};
    if (::poll(&readable, 1, deadline.poll_milliseconds()) <= 0) continue;
    int number = 0;
    const ssize_t count = ::read(pipe.reading.get(), &number, sizeof number);
    if (count < 0 && errno == EINTR) continue;
    return count == sizeof number ? std::optional(number) : std::nullopt;
  }
  return std::nullopt;
}

struct ProcessFacts {
  char state = 'Z';
  std::uint64_t start_time = 0;
};

// /proc/PID/stat: the name, which may hold anything, is in parentheses; the state is the first field after it, the
// start time the 20th.
std::optional<ProcessFacts> facts_of(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string text((std::istreambuf_iterator<char>(file)), {});
  const auto end_of_name = text.rfind(')');
  if (end_of_name == std::string::npos) return std::nullopt;
  std::istringstream fields(text.substr(end_of_name + 1));
  ProcessFacts facts;
  fields >> facts.state;
  std::string skipped;
  for (int i = 0; i < 18; ++i) fields >> skipped;
  fields >> facts.start_time;
  if (!fields) return std::nullopt;
  return facts;
}

bool lives(const std::optional<ProcessFacts>& facts) { return facts && facts->state != 'Z' && facts->state != 'X'; }

}  // namespace

Result<Pipe> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return errno_error("make", "a pipe");
  return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

Result<ChildProcess> ChildProcess::spawn(const ChildOptions& options) {
  ATOLL_ASSIGN_OR_RETURN(const auto program, on_path(options.program));
  ATOLL_ASSIGN_OR_RETURN(const Streams streams, open_streams(options));
  ATOLL_ASSIGN_OR_RETURN(Pipe failed, make_pipe());
  Pipe go;
  if (options.before_program) {
    ATOLL_ASSIGN_OR_RETURN(go, make_pipe());
  }
  std::vector<std::string> arguments{options.program.string()};
  arguments.insert(arguments.end(), options.arguments.begin(), options.arguments.end());
  std::vector<std::string> environment = environment_with(options.environment);
  const std::vector<char*> argument_pointers = pointers_to(arguments), environment_pointers = pointers_to(environment);
  const Execution execution{.program = program.c_str(),
                            .arguments = argument_pointers.data(),
                            .environment = environment_pointers.data(),
                            .streams = streams.descriptors,
                            .blocked = blocked_signals(options),
                            .group = options.group,
                            .ends_with_parent = options.end == ChildEnd::kWithThread,
                            .parent = ::getpid(),
                            .go = go.reading.get(),
                            .go_other = go.writing.get(),
                            .failure = failed.writing.get()};
  const pid_t pid = ::fork();
  if (pid < 0) return errno_error("start", options.program);
  if (pid == 0) become(execution);
  if (options.group == ChildGroup::kOwn) ::setpgid(pid, pid);  // whichever of the two is first
  const auto facts = facts_of(pid);
  ChildProcess process(pid, facts ? facts->start_time : 0, /*is_child=*/true, options.group != ChildGroup::kOurs,
                       options.end);
  failed.writing.reset();
  if (options.before_program) {
    options.before_program(process);
    if (::write(go.writing.get(), "g", 1) != 1) return errno_error("start", options.program);
  }
  if (const auto number = failure_of_exec(failed)) {
    (void)process.wait(Deadline::after(kKilledTime));
    errno = *number;
    return errno_error("run", options.program);
  }
  return process;
}

// Where /proc does not show others' processes the kernel still knows whether there is one.
bool is_process_alive(pid_t pid) {
  const auto facts = facts_of(pid);
  return facts ? lives(facts) : ::kill(pid, 0) == 0 || errno != ESRCH;
}

std::optional<ChildProcess> ChildProcess::take_over(pid_t pid) {
  if (pid <= 1) return std::nullopt;
  const auto facts = facts_of(pid);
  if (!lives(facts)) return std::nullopt;
  return ChildProcess(pid, facts->start_time, /*is_child=*/false, /*leads_group=*/false, ChildEnd::kItsOwn);
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      start_time_(other.start_time_),
      is_child_(other.is_child_),
      leads_group_(other.leads_group_),
      end_(other.end_),
      ended_(other.ended_),
      exit_status_(other.exit_status_) {}

ChildProcess& ChildProcess::operator=(ChildProcess&& other) noexcept {
  if (this == &other) return *this;
  abandon();
  pid_ = std::exchange(other.pid_, -1);
  start_time_ = other.start_time_;
  is_child_ = other.is_child_;
  leads_group_ = other.leads_group_;
  end_ = other.end_;
  ended_ = other.ended_;
  exit_status_ = other.exit_status_;
  return *this;
}

ChildProcess::~ChildProcess() { abandon(); }

void ChildProcess::abandon() {
  // One that was moved from has no number: -1 means every process there is.
  if (pid_ <= 0 || ended() || end_ == ChildEnd::kItsOwn) return;
  ::kill(leads_group_ ? -pid_ : pid_, SIGKILL);
  (void)wait(Deadline::after(kKilledTime));
}

bool ChildProcess::ended() {
  if (pid_ <= 0 || ended_) return ended_;
  if (!is_child_) {
    const auto facts = facts_of(pid_);
    return ended_ = !lives(facts) || facts->start_time != start_time_;
  }
  int status = 0;
  const pid_t waited = ::waitpid(pid_, &status, WNOHANG);
  if (waited == pid_) exit_status_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  ended_ = waited == pid_ || (waited < 0 && errno == ECHILD);
  return ended_;
}

bool ChildProcess::stopped() const {
  if (pid_ <= 0 || ended_) return false;
  const auto facts = facts_of(pid_);
  return facts && facts->state == 'T';
}

std::optional<int> ChildProcess::poll() {
  (void)ended();
  return exit_status_;
}

Result<int> ChildProcess::wait(Deadline deadline, const AbortSignal* interrupt) {
  for (;;) {
    if (ended()) {
      if (exit_status_) return *exit_status_;
      return Error{ErrorCode::kNotFound, fmt::format("process {} has ended, and only its parent knows how", pid_)};
    }
    if (interrupt != nullptr && interrupt->raised()) return Error{ErrorCode::kAborted, interrupt->reason()};
    if (deadline.expired()) return Error{ErrorCode::kTimeout, fmt::format("process {} is still running", pid_)};
    pollfd wake{interrupt != nullptr ? interrupt->fd() : -1, POLLIN, 0};
    ::poll(&wake, 1, deadline.poll_milliseconds(kLookMilliseconds));
  }
}

void ChildProcess::send_signal(int signal) {
  if (pid_ > 0 && !ended()) ::kill(pid_, signal);
}

void ChildProcess::terminate(Deadline deadline) {
  send_signal(SIGTERM);
  if (wait(deadline).ok()) return;
  send_signal(SIGKILL);
  (void)wait(Deadline::after(kKilledTime));
}

}  // namespace atl
