// The owner's rules as the agent follows them: what they ask for is read (machine_reader.h, trainer_gpus.h), they are
// decided (owners_rules.h), and what pauses is said. They may change at any time. Owned by the agent, whose loop calls
// it.
#pragma once

#include <spdlog/common.h>
#include <sys/types.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "app/agent/machine_reader.h"
#include "app/agent/owners_rules.h"
#include "app/agent/trainer_gpus.h"
#include "app/config/config.h"
#include "net/control/home.h"
#include "net/control/node_state.h"

namespace atl {

class RulesWatch {
 public:
  struct Options {
    std::string gpus;  // as island.gpus has it
    OwnersRulesSettings rules;
    GpuLimits gpu_limits;
    MachineReader::Places machine;
    std::chrono::milliseconds gpu_sample_period;
    spdlog::level::level_enum news_level;
  };
  // `tell` as TrainerGpus has it; its alerts come from the loop's thread, too.
  RulesWatch(const AgentHome& home, Options options, TrainerGpus::Tell tell);

  // After the settings changed. One of which the rules cannot be read changes nothing.
  Status follow(const Config& config);
  void set_trainer(pid_t pid);  // 0: none runs
  void turn();                  // some times a second
  TrainerGpus& gpus() { return gpus_; }

  // What they ask for was read, or has had its time: until then none pauses, and nothing should begin.
  bool known() const;
  bool pause() const { return !paused_by_.empty(); }
  const std::vector<PausedBy>& paused_by() const { return paused_by_; }  // as OwnersRules has them
  // What cannot be watched or kept, for the owner; empty: nothing.
  std::string warning() const;

 private:
  void set(const OwnersRulesSettings& rules, std::optional<double> gpu_power_watts);
  void read();
  void tell_heat(const GpusReading& gpus);
  void log_changes(const std::vector<PausedBy>& before) const;

  const MachineReader::Places places_;
  const spdlog::level::level_enum news_level_;
  const TrainerGpus::Tell tell_;
  std::string island_gpus_;  // as they were set last
  OwnersRules rules_;
  std::vector<PausedBy> paused_by_;
  std::optional<MachineReading> machine_;  // as it was read last
  pid_t trainer_ = 0;
  Clock::time_point known_by_;
  // Last: their threads.
  TrainerGpus gpus_;
  std::optional<MachineReader> reader_;  // while a rule asks for it
};

}  // namespace atl
