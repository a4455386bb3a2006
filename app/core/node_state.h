// What an agent says of its island at one moment (`state.get`, schema status), typed. Plain values; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "net/base/deadline.h"
#include "net/control/island_state.h"

namespace atl {

struct GpuSample {          // what NVML did not say is empty
  std::uint32_t index = 0;  // as nvidia-smi counts; of an agent that does not say it, its place in the list
  std::string name;
  std::optional<double> utilisation;  // 0 to 1
  std::optional<double> memory_bytes, memory_total_bytes;
  std::optional<double> power_watts, power_limit_watts;
  std::optional<double> temperature_celsius;
  std::optional<double> sm_clock_hertz;
  std::string throttling;  // why; empty: not
  std::optional<std::uint64_t> ecc_errors;
  std::optional<double> nvlink_bytes_per_second;
};

struct TrainerExitView {
  std::string cause;  // frozen name (app/agent/trainer_exit.h)
  std::string text;   // what happened, for a person
  double time = 0;    // seconds since 1970
};

struct AgentView {
  std::string version;
  std::optional<std::int64_t> pid;
  std::string wish, followed;          // "run", "pause", "finish", "stop"
  std::optional<double> paused_until;  // seconds since 1970
  std::uint64_t restarts = 0;
  std::optional<double> restart_in_seconds;
  std::optional<double> heard_seconds_ago;  // of the trainer
  std::optional<TrainerExitView> last_exit;
  std::string warning;
};

struct NodeState {
  IslandState island;
  AgentView agent;
  std::vector<GpuSample> gpus;
  std::optional<double> mfu;  // 0 to 1
  std::optional<double> disk_free_bytes;
  std::optional<double> learning_rate, gradient_norm;

  bool joined() const { return island.state != "unjoined"; }
};

// kProtocol names the field. Fields that this version does not know are skipped.
Result<NodeState> node_state_from_json(const nlohmann::json& json);

// The list of `gpu.sample`.
Result<std::vector<GpuSample>> gpu_samples_from_json(const nlohmann::json& list);

// From this age on, what is shown must not look live.
inline constexpr std::chrono::seconds kStaleAfter{5};

}  // namespace atl
