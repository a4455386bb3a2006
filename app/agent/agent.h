// The agent of an island: carries out what the supervisor decides, keeps the owner's wish, serves the control socket,
// forwards the trainer's events. It never opens a GPU: that is the trainer's alone. One thread calls run().
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/agent/agent_control.h"
#include "app/agent/gpu_guard.h"
#include "app/agent/history/history_store.h"
#include "app/agent/machine_reader.h"
#include "app/agent/owners_caps.h"
#include "app/agent/owners_rules.h"
#include "app/agent/supervisor.h"
#include "app/config/config.h"
#include "net/base/abort_signal.h"
#include "net/base/result.h"
#include "net/check/check_task.h"
#include "net/control/events.h"
#include "net/control/unix_socket.h"
#include "net/store/store_settings.h"

namespace atl {

struct AgentOptions {
  AgentHome home;
  SocketAccess access = SocketAccess::kOwner;  // of a system service: its group
  std::filesystem::path trainer;               // the program
  std::chrono::seconds trainer_patience{30};   // how long it goes on without an agent
  std::uint64_t trainer_log_bytes = 32u << 20;
  std::string trainer_log_level = "info";  // as log.level has it
  std::chrono::seconds work_every{0};      // as checkpoints.work_every has it
  std::uint64_t data_cache_bytes = 0;      // as island.data_cache has it
  std::string data_mirrors;                // as island.data_mirrors has it
  std::string credit;                      // as island.credit has it
  std::uint32_t keep_days = 0;             // as checkpoints.keep_daily has it
  std::string keep_rounds;                 // as checkpoints.keep_rounds has it
  StoreSettings store;                     // as store.* has it
  std::string gpus = "all";                // as island.gpus has it; what has joined follows it when it is changed
  OwnersRulesSettings rules;
  MachineReader::Places machine;  // where what the rules ask is read
  // The configuration as it is now: rules, GPUs and limits are read anew when the home's settings change. Empty: they
  // stay.
  std::function<Result<Config>()> read_config;
  SupervisorOptions supervisor;
  CapRules caps;  // of transfers
  GpuLimits gpu_limits;
  std::chrono::milliseconds gpu_sample_period{5'000};  // asked with gpu_limits.probe, if there is one
  HistoryLimits history;
  // Measures this machine for `check.run` and before a run is joined. Empty: there is no check.
  CheckTask::Check check_node;
  // The part of a foreground command: ends once nothing is left to be done (the trainer failed before it ever trained,
  // or ended as asked), instead of waiting for the next wish.
  bool foreground = false;
  // Of the trainer's and the agent's events, as they are published; on any thread, must not block. May be empty.
  std::function<void(const ControlEvent& event)> on_event;
  // Called by the loop, some times a second. May be empty.
  std::function<void()> on_turn;
};

class Agent {
 public:
  // Serves the socket and takes a living trainer over. kPermissionDenied when another agent serves it.
  static Result<std::unique_ptr<Agent>> start(AgentOptions options);
  ~Agent();

  AgentControl& control();
  // Until `end` is raised: the trainer is ended then, within SupervisorOptions::end_within; at once with `hurry`. In
  // the foreground the error of a trainer that could not be started, or that failed before it trained.
  Status run(const AbortSignal& end, const AbortSignal* hurry = nullptr);

 private:
  class Impl;
  explicit Agent(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace atl
