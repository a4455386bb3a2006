#include "app/agent/trainer_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "net/base/file.h"
#include "net/base/unique_fd.h"
#include "net/control/control_client.h"
#include "net/control/json_fields.h"
#include "net/control/methods.h"
#include "net/control/trainer_contract.h"

namespace atl {
namespace {

constexpr std::size_t kMaxTrainerFileBytes = 4096;
constexpr std::size_t kLastWordsBytes = 8192;
constexpr std::chrono::seconds kTrainerAnswerTime{2};

Status record(const std::filesystem::path& file, const ChildProcess& process, const LogPlace& log_from) {
  const nlohmann::json json = {{"version", 1},
                               {"pid", process.pid()},
                               {"start_time", process.start_time()},
                               {"log_inode", log_from.inode},
                               {"log_from", log_from.offset}};
  return write_file_atomically(file, json.dump() + "\n", FileMode::kPrivate);
}

// A disk that does not take the record is no reason not to train: the next agent asks the control socket.
void note(const Status& recorded) {
  if (!recorded.ok()) spdlog::warn("trainer record=none error=\"{}\"", recorded.error().message);
}

std::string text_of(std::optional<double> cap) { return cap ? fmt::format("{}", *cap) : std::string(); }

// What only the agent says.
std::map<std::string, std::string> environment_of(const TrainerStart& start, const std::filesystem::path& log) {
  std::map<std::string, std::string> said{{kAgentPatienceVariable, std::to_string(start.patience.count())},
                                          {kUploadCapVariable, text_of(start.caps.upload)},
                                          {kDownloadCapVariable, text_of(start.caps.download)},
                                          {kLogFileVariable, log.string()},
                                          {kLogLevelVariable, start.log_level},
                                          {kLogBytesVariable, std::to_string(start.log_bytes)},
                                          {kKeepDaysVariable, std::to_string(start.keep_days)},
                                          {kKeepRoundsVariable, start.keep_rounds},
                                          {kWorkEveryVariable, std::to_string(start.work_every.count())},
                                          {kDataCacheVariable, std::to_string(start.data_cache_bytes)},
                                          {kDataMirrorsVariable, start.data_mirrors},
                                          {kCreditVariable, start.credit}};
  said.merge(store_environment(start.store));
  if (start.visible_gpus) {
    said["CUDA_VISIBLE_DEVICES"] = *start.visible_gpus;
    said["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID";  // as nvidia-smi and NVML count; CUDA's own is by speed
  }
  return said;
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

std::map<std::string, std::string> store_environment(const StoreSettings& store) {
  return {{kStoreEndpointVariable, store.endpoint},
          {kStoreRegionVariable, store.region},
          {kStoreBucketVariable, store.bucket},
          {kStoreCredentialsVariable, store.credentials_file.string()},
          {kStoreAuthoritiesVariable, store.authorities_file.string()}};
}

Result<TrainerProcess> TrainerProcess::start(const AgentHome& home, const TrainerStart& start) {
  if (::access(start.program.c_str(), X_OK) != 0) return errno_error("run", start.program);  // before the log moves
  ATOLL_ASSIGN_OR_RETURN(const UniqueFd output, open_log(home.trainer_log(), start.log_bytes));
  const LogPlace log_from = end_of(home.trainer_log());
  ATOLL_ASSIGN_OR_RETURN(ChildProcess process,
                         ChildProcess::spawn({.program = start.program,
                                              .arguments = {"run", "--home", home.island.directory.string()},
                                              .environment = environment_of(start, home.trainer_log()),
                                              .output = output.get(),
                                              .errors = output.get(),
                                              .group = ChildGroup::kSession,
                                              .end = ChildEnd::kItsOwn,
                                              .before_program = [&](const ChildProcess& waiting) {
                                                note(record(home.trainer_file(), waiting, log_from));
                                              }}));
  TrainerProcess trainer(std::move(process));
  trainer.log_from_ = log_from;
  return trainer;
}

std::optional<TrainerProcess> TrainerProcess::of_pid(pid_t pid) {
  auto process = ChildProcess::take_over(pid);
  if (!process) return std::nullopt;
  return TrainerProcess(std::move(*process));
}

std::optional<TrainerProcess> TrainerProcess::find(const AgentHome& home) {
  if (const auto text = read_file(home.trainer_file(), kMaxTrainerFileBytes); text.ok()) {
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
      if (found && found->process_.start_time() == start_time) return found;
    }
  }
  const auto deadline = Deadline::after(kTrainerAnswerTime);
  const auto client = ControlClient::connect(home.island.control_socket(), deadline);
  if (!client.ok()) return std::nullopt;
  const auto state = (*client)->call(method::StateGet::kName, nlohmann::json::object(), deadline);
  if (!state.ok() || !state->is_object()) return std::nullopt;
  const nlohmann::json pid = state->value("pid", nlohmann::json());
  if (!pid.is_number_integer()) return std::nullopt;
  auto found = of_pid(pid.get<pid_t>());
  if (found && found->pid() != ::getpid()) {
    found->log_from_ = end_of(home.trainer_log());  // what stands there may be another's
    note(record(home.trainer_file(), found->process_, found->log_from_));
    return found;
  }
  return std::nullopt;
}

TrainerProcess::State TrainerProcess::look() {
  if (process_.ended()) return State::kEnded;
  return process_.stopped() ? State::kStopped : State::kRunning;
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
