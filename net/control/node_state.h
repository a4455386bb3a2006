// What a machine says of its island at one moment (`state.get`, and the events that carry the state; schema status):
// what its trainer says, and the agent's part. The agent puts them together, once; a view shows it as it is. Plain
// values; any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "net/base/result.h"
#include "net/check/gpu_sample.h"
#include "net/control/island_state.h"
#include "net/control/rule_words.h"
#include "net/control/transfer_caps.h"
#include "net/control/words.h"

namespace atl {

inline constexpr std::size_t kMaxSampledGpus = 64;
inline constexpr std::size_t kMaxPauses = 32;

struct TrainerExitView {
  ExitCause cause = ExitCause::kUnknown;
  std::string text = {};  // what happened, for a person
  double time = 0;        // seconds since 1970
  int status = -1;        // 128 + signal for a signal; -1: unknown
};

// What this machine gave: summed over trainers, whatever came to their rounds.
struct Contribution {
  std::uint64_t tokens = 0;  // trained
  std::uint64_t rounds_accepted = 0;
  std::uint64_t bytes_sent = 0;
  double seconds = 0;  // inner steps and synchronisation
};

struct ContributionView {
  Contribution run = {};   // to the run that it belongs to
  Contribution life = {};  // to all runs
};

// What pauses the training though its owner wants it, and until when, for a person.
struct PausedBy {
  OwnersRule rule = OwnersRule::kUnknown;
  std::string why = {};                            // "the machine runs on its battery"
  std::string until = {};                          // "1 min after it is plugged in"
  std::optional<std::int64_t> until_seconds = {};  // where that is a time: since 1970
  std::string advice = {};                         // how to mend what may last for ever; empty: it will not

  bool operator==(const PausedBy&) const = default;
};
// "the machine runs on its battery, until 1 min after it is plugged in (rules.battery)", and the advice behind it.
std::string sentence_of(const PausedBy& pause);

struct GpuPause {                                  // of one of the island's GPUs, by its owner
  std::uint32_t gpu = 0;                           // as nvidia-smi counts
  std::optional<std::int64_t> until_seconds = {};  // since 1970; empty: until it is resumed

  bool operator==(const GpuPause&) const = default;
};

struct AgentView {
  std::optional<std::int64_t> pid = {};
  std::string version = {};
  Wish wish = Wish::kUnknown, followed = Wish::kUnknown;  // as the owner said; as it is followed at this hour
  std::int64_t since = 0;                                 // the wish: seconds since 1970
  std::optional<std::int64_t> paused_until = {};          // seconds since 1970
  double seconds = 0;                                     // that the agent runs
  std::int64_t trainer_pid = 0;                           // 0: none runs
  bool taken_over = false;                                // the trainer, from an agent before
  std::optional<double> heard_seconds_ago = {};           // of the trainer
  std::uint64_t restarts = 0;
  std::optional<double> restart_in_seconds = {};
  std::optional<TrainerExitView> last_exit = {};
  std::string warning = {};
  std::vector<PausedBy> paused_by = {};              // its owner's rules: the hours, then those that pause longest
  std::vector<GpuPause> paused_gpus = {};            // which the island would train on
  std::optional<ContributionView> contributed = {};  // an agent of before does not say
  std::optional<TransferCapView> upload_cap = {}, download_cap = {};  // likewise; that the trainer keeps to now
};

struct NodeState {
  IslandState island = {};
  bool has_agent = false;  // the agent's part is there; on a trainer's own socket it is not
  AgentView agent = {};
  std::vector<GpuSample> gpus = {};  // of state.get alone; events have them in gpu.sample
  std::optional<double> disk_free_bytes = {};

  bool joined() const { return island.state != IslandPhase::kUnjoined; }
};

nlohmann::json to_json(const NodeState& state);
// kProtocol names the field. Fields that this version does not know are skipped.
Result<NodeState> node_state_from_json(const nlohmann::json& json);

// The figures of a sample that change, by their names in JSON.
std::vector<std::pair<const char*, double>> changing_figures(const GpuSample& gpu);

// From this age on, what is shown must not look live.
inline constexpr std::chrono::seconds kStaleAfter{5};

}  // namespace atl
