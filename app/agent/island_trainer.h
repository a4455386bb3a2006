// The trainer's process as its agent has it: found or started, asked to end, killed, and judged once it has ended.
// Owned by the agent, whose loop calls it: one thread.
#pragma once

#include <spdlog/common.h>

#include <cstdint>
#include <optional>
#include <string>

#include "app/agent/supervisor.h"
#include "app/agent/trainer_process.h"
#include "app/config/gpu_list.h"
#include "net/control/home.h"

namespace atl {

class IslandTrainer {
 public:
  // `start` but for the GPUs, which each start has. What it does is logged at `news_level`.
  IslandTrainer(AgentHome home, TrainerStart start, spdlog::level::level_enum news_level)
      : home_(std::move(home)), start_(std::move(start)), news_level_(news_level) {}

  pid_t pid() const { return process_ ? process_->pid() : 0; }  // 0: none runs

  // While none runs: takes a living one over, or starts one.
  bool find();
  Status start(const GpuList& gpus);
  // What the next one is told at its start.
  void set_caps(const TransferCaps& caps) { start_.caps = caps; }

  // What the supervisor is to be told, if anything: TrainerStopped, or TrainerEnded, after which none runs.
  std::optional<SupervisorEvent> look();
  void ask_to(Wish wish);              // by its control socket, or SIGTERM when that does not answer
  void kill(const std::string& hung);  // why, if it is for that; else empty

 private:
  Status start_process(const GpuList& gpus);
  void expect_another();
  TrainerExit exit() const;

  const AgentHome home_;
  TrainerStart start_;
  const spdlog::level::level_enum news_level_;
  std::optional<TrainerProcess> process_;
  // Of this process:
  std::uint64_t memory_kills_ = 0;  // of the machine, before it
  std::string hung_;
  bool told_to_end_ = false;
};

}  // namespace atl
