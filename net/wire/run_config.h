// What all islands of a run agree on: made by `atoll hub init`, sent by the hub in its welcome, never changed while the
// run lives. JSON on the wire and in the hub's run.json; an unknown version is refused.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "kernels/wire_format.h"
#include "net/base/id.h"
#include "net/base/result.h"
#include "net/model/attention_scope.h"
#include "net/wire/evaluation.h"
#include "net/wire/learning_rate.h"

namespace atl {

struct InnerOptimizerConfig {          // AdamW (arXiv:1711.05101) with warm-up / stable / decay
  double learning_rate = 3e-3;         // peak
  double final_learning_rate = 3e-4;   // at the end of the decay and after it
  std::uint64_t warmup_steps = 40;     // of the run: round * inner_steps + step
  std::uint64_t decay_start_step = 0;  // likewise; the warm-up is over then
  std::uint64_t decay_steps = 0;       // 0: no decay
  DecayShape decay_shape = DecayShape::kOneMinusSqrt;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double weight_decay = 0.1;
  double clip_grad_norm = 1.0;  // 0: no clipping
  double max_z_loss = 0.0;      // coefficient; 0: off
};

// What becomes of a run when the committed outer state is lost or cannot be told: its operator decides (`atoll hub
// rollback`), or it goes back by itself to the newest state that islands keep, at most kMostRoundsUndone rounds.
enum class WhenLost { kAsk, kRollBack };
inline constexpr std::uint32_t kMostRoundsUndone = 10;

struct RunConfig {
  static constexpr int kVersion = 1;
  static constexpr std::string_view kHubScheme = "hub:";  // of initial_state

  std::string run_id;        // 16 hex digits, made at init
  std::string name;          // for people
  std::string model_json;    // a HuggingFace config.json
  std::string dataset_json;  // its sources and their weights (net/data/run_dataset.h)
  std::string check_json;    // what it asks of machines (net/check/thresholds.h); empty: the defaults
  std::uint64_t seed = 1;    // initial parameters, order of sequences
  // Patterns on the names of the parameters that are trained (net/model/train_only.h); the others stay as they began.
  // Empty: all are.
  std::vector<std::string> train_only;

  std::uint32_t inner_steps = 20;        // H, of a round
  std::uint32_t sequences_per_step = 8;  // the inner batch of every island
  std::uint32_t sequence_length = 256;   // tokens
  AttentionScope attention = AttentionScope::kPacked;
  std::uint32_t max_rounds = 0;  // 0: until stopped
  InnerOptimizerConfig inner;
  // F: parts of the model that are averaged in turn (Streaming DiLoCo, arXiv:2501.18512), each every F rounds, while
  // the next is trained; 1 to kMaxFragments. 1: the whole model, and training waits for the average (DiLoCo).
  std::uint32_t fragments = 1;
  double outer_learning_rate = 0.7;  // Nesterov SGD (DiLoCo, arXiv:2311.08105)
  double outer_momentum = 0.9;

  WireFormat wire = WireFormat::kInt8Block;
  // Of the ring; 0: each island finds the best number by its goodput. At most 16 / F, for F attempts may run at once.
  std::uint32_t connections_per_edge = 0;
  std::uint32_t min_islands = 1;  // the first round begins when so many are there
  std::uint32_t max_islands = 128;
  // A round is averaged over at least so many islands that trained. 1: whoever is left goes on alone, and nobody checks
  // what it then says; 2 or more: no state is ever adopted that fewer than two islands computed.
  std::uint32_t quorum = 1;
  std::uint32_t validate_every = 5;  // rounds; 0: never
  std::uint32_t validation_sequences = 32;
  RunEvaluation evaluation;  // asked of outer states beside their validation

  std::chrono::milliseconds heartbeat{2'000};
  std::chrono::milliseconds dead_after{6'000};        // without a heartbeat
  std::chrono::milliseconds straggler_grace{60'000};  // after most are ready, before the round closes without the rest

  // An island's norm over steps may be so many times the median of the others', and of its own past; beyond it, its
  // work is left out of the round. 0: no bound.
  double norm_bound = 2;
  double validation_rise =
      1.0;  // nats over the best of late that several islands must find to call a state spoiled; 0: off
  // R: a committed round is safe once so many islands, all where there are fewer, have it on their disks.
  std::uint32_t safe_copies = 2;
  std::uint32_t keep_states = 3;  // outer states that an island keeps on its disk, 8 bytes a parameter each
  WhenLost when_lost = WhenLost::kAsk;
  std::chrono::milliseconds lost_after{60'000};  // the committed state counts as lost when nobody holds it for so long

  // An object store ("s3://BUCKET/PREFIX") to which an island that has credentials writes the outer state every so many
  // rounds; empty, 0: none does.
  std::string upload_store;
  std::uint32_t upload_every = 0;
  // Outer step 0 has these parameters and no momentum: of a published state ("s3://BUCKET/PREFIX/outer-STEP"), whose
  // manifest has this SHA-256 (hex); or of a model that the hub serves ("hub:NAME", a name for people), with which
  // outer step 0 has this tree hash (net/recovery/outer_state.h). Empty: they are drawn from the seed.
  std::string initial_state, initial_state_sha256;
  bool begins_at_hub() const { return initial_state.starts_with(kHubScheme); }
  // For people: what it begins with; empty where that is drawn from the seed.
  std::string_view beginning() const {
    return std::string_view(initial_state).substr(begins_at_hub() ? kHubScheme.size() : 0);
  }

  FragmentId fragment_of(OuterStep round) const { return FragmentId{round.value % fragments}; }

  Status validate() const;
  nlohmann::json to_json() const;
  static Result<RunConfig> from_json(std::string_view text);
};

}  // namespace atl
