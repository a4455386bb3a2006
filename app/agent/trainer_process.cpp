#include "app/agent/trainer_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <vector>

#include "net/base/file.h"
#include "net/base/signal_watch.h"
#include "net/base/unique_fd.h"
#include "net/control/control_client.h"
#include "net/control/json_fields.h"
#include "net/control/trainer_contract.h"

namespace atl {
namespace {

constexpr int kExecFailed = 127;
constexpr std::size_t kMaxFileBytes = 4096;
constexpr std::size_t kLastWordsBytes = 8192;
constexpr std::chrono::seconds kAnswerTime{2};

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

Status record(const std::filesystem::path& file, pid_t pid, std::uint64_t start_time, const LogPlace& log_from) {
  const nlohmann::json json = {{"version", 1},
                               {"pid", pid},
                               {"start_time", start_time},
                               {"log_inode", log_from.inode},
                               {"log_from", log_from.offset}};
  return write_file_atomically(file, json.dump() + "\n", FileMode::kPrivate);
}

// A disk that does not take the record is no reason not to train: the next agent asks the control socket.
void note(const Status& recorded) {
  if (!recorded.ok()) spdlog::warn("trainer record=none error=\"{}\"", recorded.error().message);
}

// Between fork and exec: only what is safe there.
[[noreturn]] void become(const char* program, char* const* arguments, char* const* environment, int input, int output,
                         int go) {
  ::setsid();  // neither the terminal's Ctrl-C nor the end of the agent's session is for it
  SignalWatch::unblock_in_child();
  ::signal(SIGPIPE, SIG_DFL);
  ::dup2(input, STDIN_FILENO);
  ::dup2(output, STDOUT_FILENO);
  ::dup2(output, STDERR_FILENO);
  char byte = 0;
  if (::read(go, &byte, 1) != 1) ::_exit(kExecFailed);  // the agent died before it had written down who we are
  ::execve(program, arguments, environment);
  ::_exit(kExecFailed);
}

// Ours, but for what only the agent says.
std::vector<std::string> environment_of(const TrainerStart& start, const std::filesystem::path& log) {
  std::map<std::string_view, std::string> said{{kAgentPatienceVariable, std::to_string(start.patience.count())},
                                               {kUploadLimitVariable, {}},
                                               {kLogFileVariable, log.string()},
                                               {kLogLevelVariable, start.log_level},
                                               {kLogBytesVariable, std::to_string(start.log_bytes)}};
  if (start.upload_bytes_per_second) said[kUploadLimitVariable] = std::to_string(*start.upload_bytes_per_second);
  if (start.visible_gpus) {
    said["CUDA_VISIBLE_DEVICES"] = *start.visible_gpus;
    said["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID";  // as nvidia-smi and NVML count; CUDA's own is by speed
  }
  std::vector<std::string> environment;
  for (char** entry = ::environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (!said.contains(text.substr(0, text.find('=')))) environment.emplace_back(text);
  }
  for (const auto& [name, value] : said) environment.push_back(fmt::format("{}={}", name, value));
  return environment;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

std::filesystem::path before(const std::filesystem::path& log) {
  std::filesystem::path name = log;
  name += ".1";
  return name;
}

LogPlace end_of(const std::filesystem::path& log) {
  struct stat info {};
  if (::stat(log.c_str(), &info) != 0) return {};
  return {info.st_ino, static_cast<std::uint64_t>(info.st_size)};
}

// The end of a file, nothing before `from`.
std::string tail_of(const std::filesystem::path& path, std::uint64_t from, std::size_t most_bytes) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return {};
  const auto size = static_cast<std::uint64_t>(std::max<std::streamoff>(0, file.tellg()));
  const std::size_t count = std::min<std::uint64_t>(size - std::min(size, from), most_bytes);
  file.seekg(static_cast<std::streamoff>(size - count));
  std::string text(count, '\0');
  file.read(text.data(), static_cast<std::streamsize>(count));
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text;
}

Result<UniqueFd> open_log(const std::filesystem::path& log, std::uint64_t max_bytes) {
  std::error_code ignored;
  if (end_of(log).offset > max_bytes / 2) std::filesystem::rename(log, before(log), ignored);
  UniqueFd file(::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (file) return file;
  // A disk that cannot be written to is no reason not to train.
  UniqueFd nowhere(::open("/dev/null", O_WRONLY | O_CLOEXEC));
  if (!nowhere) return errno_error("open", "/dev/null");
  return nowhere;
}

}  // namespace

Result<TrainerProcess> TrainerProcess::start(const AgentHome& home, const TrainerStart& start) {
  if (::access(start.program.c_str(), X_OK) != 0) return errno_error("run", start.program);
  const UniqueFd input(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  ATOLL_ASSIGN_OR_RETURN(const UniqueFd output, open_log(home.trainer_log(), start.log_bytes));
  const LogPlace log_from = end_of(home.trainer_log());
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return errno_error("make a pipe for", start.program);
  UniqueFd waiting(ends[0]), go(ends[1]);
  std::vector<std::string> arguments{start.program.string(), "run", "--home", home.island.directory.string()};
  std::vector<std::string> environment = environment_of(start, home.trainer_log());
  const auto argument_pointers = pointers(arguments), environment_pointers = pointers(environment);
  const pid_t pid = ::fork();
  if (pid < 0) return errno_error("start", start.program);
  if (pid == 0) {
    ::close(go.get());  // else it would wait for itself
    become(start.program.c_str(), argument_pointers.data(), environment_pointers.data(), input.get(), output.get(),
           waiting.get());
  }
  const auto facts = facts_of(pid);
  TrainerProcess process(pid, facts ? facts->start_time : 0, /*is_child=*/true);
  process.log_from_ = log_from;
  note(record(home.trainer_file(), pid, process.start_time_, process.log_from_));
  if (::write(go.get(), "g", 1) != 1) return errno_error("start", start.program);
  return process;
}

std::optional<TrainerProcess> TrainerProcess::of_pid(pid_t pid) {
  const auto facts = facts_of(pid);
  if (pid <= 1 || !lives(facts)) return std::nullopt;
  return TrainerProcess(pid, facts->start_time, /*is_child=*/false);
}

std::optional<TrainerProcess> TrainerProcess::find(const AgentHome& home) {
  if (const auto text = read_file(home.trainer_file(), kMaxFileBytes); text.ok()) {
    if (const auto json = parse_control_json(*text); json.ok()) {
      pid_t pid = 0;
      std::uint64_t start_time = 0;
      LogPlace log_from;
      std::optional<std::uint64_t> log_inode;  // agents of before did not write it
      JsonFields fields(*json, "trainer.json");
      fields.read("pid", pid)
          .read("start_time", start_time)
          .read("log_from", log_from.offset)
          .read("log_inode", log_inode);
      log_from.inode = log_inode.value_or(0);
      auto found = fields.status().ok() ? of_pid(pid) : std::nullopt;
      if (found) found->log_from_ = log_from;
      if (found && found->start_time_ == start_time) return found;
    }
  }
  const auto deadline = Deadline::after(kAnswerTime);
  const auto client = ControlClient::connect(home.island.control_socket(), deadline);
  if (!client.ok()) return std::nullopt;
  const auto state = (*client)->call("state.get", nlohmann::json::object(), deadline);
  if (!state.ok() || !state->is_object()) return std::nullopt;
  const nlohmann::json pid = state->value("pid", nlohmann::json());
  if (!pid.is_number_integer()) return std::nullopt;
  auto found = of_pid(pid.get<pid_t>());
  if (found && found->pid_ != ::getpid()) {
    found->log_from_ = end_of(home.trainer_log());  // what stands there may be another's
    note(record(home.trainer_file(), found->pid_, found->start_time_, found->log_from_));
    return found;
  }
  return std::nullopt;
}

TrainerProcess::State TrainerProcess::look() {
  if (ended_) return State::kEnded;
  if (is_child_) {
    int status = 0;
    const pid_t waited = ::waitpid(pid_, &status, WNOHANG);
    if (waited == pid_) exit_status_ = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    ended_ = waited == pid_ || (waited < 0 && errno == ECHILD);
    if (ended_) return State::kEnded;
  }
  const auto facts = facts_of(pid_);
  if (!is_child_ && (!lives(facts) || facts->start_time != start_time_)) {
    ended_ = true;
    return State::kEnded;
  }
  return facts && facts->state == 'T' ? State::kStopped : State::kRunning;
}

void TrainerProcess::signal(int number) const {
  if (ended_) return;
  const auto facts = is_child_ ? std::nullopt : facts_of(pid_);
  if (is_child_ || (facts && facts->start_time == start_time_)) ::kill(pid_, number);
}

std::string last_words(const std::filesystem::path& log, const LogPlace& from) {
  const LogPlace now = end_of(log);
  const bool rotated = from.inode != 0 && now.inode != from.inode;
  if (!rotated) return tail_of(log, from.offset, kLastWordsBytes);
  const std::string words = tail_of(log, 0, kLastWordsBytes);
  const std::uint64_t first = end_of(before(log)).inode == from.inode ? from.offset : 0;
  return tail_of(before(log), first, kLastWordsBytes - words.size()) + words;
}

std::uint64_t memory_kills() {
  std::ifstream file("/proc/vmstat");
  for (std::string name, value; file >> name >> value;) {
    if (name == "oom_kill") return std::strtoull(value.c_str(), nullptr, 10);
  }
  return 0;
}

}  // namespace atl
