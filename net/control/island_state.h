// What a trainer says of itself on the control socket (`state.get`): read by `atoll status` and the demo. Plain values;
// any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "net/base/result.h"
#include "net/control/words.h"

namespace atl {

// Where the time of an inner step goes, in seconds. The parts are of one local rank; what is left of the whole is
// between them.
struct StepTimes {
  double total = 0;  // of the whole step, from asking for its batch on
  double data = 0;   // the wait for that
  // Where the device tells. Communication: what computing waited for.
  std::optional<double> matmul = {}, attention = {}, elementwise = {}, loss = {}, optimiser = {}, communication = {};
};

struct IslandState {
  IslandPhase state = IslandPhase::kUnknown;
  std::string island;  // "isl-..."
  std::string name;    // for people
  std::string run_id;
  std::string run_name;
  std::int64_t pid = 0;
  std::uint64_t parameters = 0;  // of the model
  // Once the run is known: sequences that a rank computes at once, and what the trainer will hold at most (bytes).
  std::optional<std::uint32_t> micro_batch;
  std::optional<std::uint64_t> memory_bytes;

  std::uint32_t round = 0;
  std::uint32_t inner_step = 0;
  std::uint32_t inner_steps = 0;  // H of this round
  double loss_nats = 0;           // of the last inner step; 0 before the first
  std::optional<double> validation_loss_nats;
  double tokens_per_second = 0;
  // Of the last inner step, where known: part of what the processors could do at best, 0 to 1, with torchtitan's
  // count of FLOPs (net/step/flops.h); as given to the optimiser; of the whole gradient, before it was clipped.
  std::optional<double> mfu, learning_rate, gradient_norm;
  std::optional<double> flops_per_second;   // of the last inner step, as net/step/flops.h counts them: 6 N + 12 L d S
  std::optional<StepTimes> step_seconds;    // of the last inner step that was measured
  std::optional<double> next_sync_seconds;  // estimate
  std::uint32_t islands_live = 0;
  std::uint32_t islands_total = 0;
  std::optional<std::uint32_t> islands_needed;  // for a round to begin; once the run is known

  std::optional<double> last_sync_seconds;
  std::optional<std::uint32_t> accepted_round;  // the last one to whose average it contributed
  std::uint64_t passes = 0;  // parts of a step or a validation, computed; these five: since it started
  std::uint64_t tokens = 0;
  std::uint64_t bytes_sent = 0;
  double inner_seconds = 0;
  double sync_seconds = 0;
  std::optional<std::uint64_t> rounds_accepted;  // since it started; a trainer of before does not say

  std::uint32_t outer_step = 0;                  // outer steps applied
  std::optional<std::uint32_t> safe_outer_step;  // up to which the run is safe on the islands' disks, as the hub says
  std::string state_hash;                        // tree hash of parameters and momentum, hex
  std::string error;  // in kError and kReconnecting: why; else what is amiss while it goes on

  nlohmann::json to_json() const;
  static Result<IslandState> from_json(const nlohmann::json& json);
};

}  // namespace atl
