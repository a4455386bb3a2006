// The trainer as a process: started so that it outlives its agent, found again by the next one, watched, killed. Which
// process it is stands in <state>/trainer.json before the trainer's program begins, so that none is ever forgotten.
// One thread.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "net/base/child_process.h"
#include "net/base/result.h"
#include "net/control/home.h"
#include "net/control/transfer_caps.h"
#include "net/store/store_settings.h"

namespace atl {

struct TrainerStart {
  std::filesystem::path program;
  std::chrono::seconds patience{30};             // the trainer's, without an agent
  TransferCaps caps = {};                        // at its start; later by agent.alive
  std::optional<std::string> visible_gpus = {};  // as CUDA_VISIBLE_DEVICES, in nvidia-smi's order; empty: as ours
  std::string log_level = "info";                // as log.level has it
  std::uint64_t log_bytes = 32u << 20;           // of home.trainer_log() and what came before it together
  std::chrono::seconds work_every{0};            // as checkpoints.work_every has it
  std::uint64_t data_cache_bytes = 0;            // as island.data_cache has it
  std::string data_mirrors = {};                 // as island.data_mirrors has it
  std::string credit = {};                       // as island.credit has it
  std::uint32_t keep_days = 0;                   // as checkpoints.keep_daily has it
  std::string keep_rounds = {};                  // as checkpoints.keep_rounds has it
  StoreSettings store = {};                      // as store.* has it
};

// The owner's store, as a trainer is told of it.
std::map<std::string, std::string> store_environment(const StoreSettings& store);

// A place in a log, which keeps its inode when it becomes LOG.1.
struct LogPlace {
  std::uint64_t inode = 0;  // 0: not known
  std::uint64_t offset = 0;
};

class TrainerProcess {
 public:
  // A session of its own, output appended to home.trainer_log(), which it is told to keep within its size. The program
  // that is not there is kNotFound.
  static Result<TrainerProcess> start(const AgentHome& home, const TrainerStart& start);
  // The one that an agent before us started, or whoever serves the island's control socket; empty when none lives.
  static std::optional<TrainerProcess> find(const AgentHome& home);
  // By its number; empty when there is none, or it is another program's.
  static std::optional<TrainerProcess> of_pid(pid_t pid);

  pid_t pid() const { return process_.pid(); }
  // Where in home.trainer_log() its own words begin.
  const LogPlace& log_from() const { return log_from_; }

  enum class State { kRunning, kStopped, kEnded };
  State look();  // reaps it, if it is our child
  // After kEnded: 128 + signal when one ended it; empty when it was not our child.
  std::optional<int> exit_status() const { return process_.exit_status(); }
  void signal(int number) { process_.send_signal(number); }  // nothing once it has ended

 private:
  explicit TrainerProcess(ChildProcess process) : process_(std::move(process)) {}

  ChildProcess process_;
  LogPlace log_from_;
};

// The end of a log, and of LOG.1 where it became that since, at most 8 KiB, but nothing before `from`; empty when there
// is none.
std::string last_words(const std::filesystem::path& log, const LogPlace& from = {});
// How often the kernel of this machine has killed a process for want of memory; 0 when it does not say.
std::uint64_t memory_kills();

}  // namespace atl
