#include "net/check/probe_child.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <optional>
#include <thread>

#include "net/base/file.h"
#include "net/base/signal_watch.h"
#include "net/base/unique_fd.h"

namespace atl {
namespace {

constexpr std::chrono::seconds kEndTime{2};  // for a killed child to be gone
constexpr std::size_t kLastWords = 300;

// Between fork and exec: only what is safe there.
[[noreturn]] void become(const char* program, char* const* arguments, int output, int errors, pid_t parent) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);
  SignalWatch::unblock_in_child();
  ::signal(SIGPIPE, SIG_DFL);
  const int input = ::open("/dev/null", O_RDONLY);
  ::dup2(input, STDIN_FILENO);
  ::dup2(output, STDOUT_FILENO);
  ::dup2(errors, STDERR_FILENO);
  ::execv(program, arguments);
  ::_exit(127);
}

struct Pipe {
  UniqueFd reading, writing;
};

Result<Pipe> make_pipe(const std::filesystem::path& program) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return errno_error("make a pipe for", program);
  ::fcntl(ends[0], F_SETFL, O_NONBLOCK);
  return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

// The child's status; killed and waited for, but not for ever.
class Child {
 public:
  explicit Child(pid_t pid) : pid_(pid) {}
  ~Child() {
    if (ended()) return;
    kill();
    const Deadline deadline = Deadline::after(kEndTime);
    while (!ended() && !deadline.expired()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  bool ended() {
    if (!status_ && ::waitpid(pid_, &raw_, WNOHANG) == pid_) status_ = raw_;
    return status_.has_value();
  }
  void kill() { ::kill(-pid_, SIGKILL); }
  int status() const { return *status_; }

 private:
  pid_t pid_;
  int raw_ = 0;
  std::optional<int> status_;
};

class Output {
 public:
  Output(std::size_t max_bytes, const std::function<void(std::string_view)>& on_line)
      : left_(max_bytes), on_line_(on_line) {}

  // Reads what is there. False at the end; too_much() when the child wrote more than it may.
  bool drain(int pipe) {
    std::array<char, 4096> buffer;
    for (;;) {
      const ssize_t count = ::read(pipe, buffer.data(), buffer.size());
      if (count <= 0) return count < 0 && (errno == EAGAIN || errno == EINTR);
      if (static_cast<std::size_t>(count) > left_) {
        too_much_ = true;
        return false;
      }
      left_ -= static_cast<std::size_t>(count);
      unfinished_.append(buffer.data(), static_cast<std::size_t>(count));
      take_lines();
    }
  }
  bool too_much() const { return too_much_; }
  std::string_view last_words() const {
    std::string_view text = unfinished_.empty() ? std::string_view(last_line_) : std::string_view(unfinished_);
    return text.substr(0, kLastWords);
  }

 private:
  void take_lines() {
    std::size_t begin = 0;
    for (std::size_t end; (end = unfinished_.find('\n', begin)) != std::string::npos; begin = end + 1) {
      last_line_ = unfinished_.substr(begin, end - begin);
      if (on_line_) on_line_(last_line_);
    }
    unfinished_.erase(0, begin);
  }

  std::size_t left_;
  const std::function<void(std::string_view)>& on_line_;
  std::string unfinished_, last_line_;
  bool too_much_ = false;
};

Result<pid_t> start(const ProbeChild& child, const Pipe& output, const Pipe& errors) {
  std::vector<char*> arguments{const_cast<char*>(child.program.c_str())};
  for (const std::string& argument : child.arguments) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return errno_error("start", child.program);
  if (pid == 0) become(child.program.c_str(), arguments.data(), output.writing.get(), errors.writing.get(), parent);
  ::setpgid(pid, pid);  // whichever of the two is first
  return pid;
}

Error ended_badly(const ProbeChild& child, int status, std::string_view last_words) {
  const std::string name = child.program.filename().string();
  if (WIFSIGNALED(status)) {
    return Error{ErrorCode::kInternal, fmt::format("{} crashed ({})", name, ::strsignal(WTERMSIG(status)))};
  }
  return Error{ErrorCode::kInternal, last_words.empty()
                                         ? fmt::format("{} ended with status {}", name, WEXITSTATUS(status))
                                         : std::string(last_words)};
}

}  // namespace

Status run_probe_child(const ProbeChild& child, const AbortSignal& abort,
                       const std::function<void(std::string_view line)>& on_line) {
  if (::access(child.program.c_str(), X_OK) != 0) return errno_error("run", child.program);
  ATOLL_ASSIGN_OR_RETURN(Pipe output, make_pipe(child.program));
  ATOLL_ASSIGN_OR_RETURN(Pipe errors, make_pipe(child.program));
  ATOLL_ASSIGN_OR_RETURN(const pid_t pid, start(child, output, errors));
  output.writing.reset();
  errors.writing.reset();
  Child process(pid);
  const std::function<void(std::string_view)> nothing;
  Output said(child.max_bytes, on_line), complained(child.max_bytes, nothing);
  for (;;) {
    const bool over = process.ended();  // before the pipes are read for the last time
    if (output.reading && !said.drain(output.reading.get())) output.reading.reset();
    if (errors.reading && !complained.drain(errors.reading.get())) errors.reading.reset();
    if (said.too_much() || complained.too_much()) {
      return Error{ErrorCode::kCorrupt, fmt::format("{} writes without end", child.program.filename().string())};
    }
    if (over) break;
    if (abort.raised()) return Error{ErrorCode::kAborted, abort.reason()};
    if (child.deadline.expired()) {
      return Error{ErrorCode::kTimeout, fmt::format("{} does not answer", child.program.filename().string())};
    }
    pollfd waits[] = {{output.reading.get(), POLLIN, 0}, {errors.reading.get(), POLLIN, 0}, {abort.fd(), POLLIN, 0}};
    ::poll(waits, 3, child.deadline.poll_milliseconds(50));
  }
  if (WIFEXITED(process.status()) && WEXITSTATUS(process.status()) == 0) return ok_status();
  return ended_badly(child, process.status(), complained.last_words());
}

}  // namespace atl
