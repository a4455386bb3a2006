// The work of an island in the middle of an inner phase: what a pause writes to the disk, and what the trainer that
// comes back within the round goes on from. Beside the checkpoint of the outer state, without which it is nothing.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "net/base/id.h"
#include "net/base/result.h"
#include "net/wire/mesh.h"

namespace atl {

struct InnerState {
  HubRoundBegin round;           // as the hub began it: round, steps, lease
  std::string outer_hash;        // tree hash of the outer state from which it began, hex
  std::uint32_t inner_step = 0;  // taken
  double loss_sum = 0;           // over those
  double inner_seconds = 0;      // over those
  std::int64_t optimizer_steps = 0;
  // Canonical order. The residual (error feedback of earlier rounds) may be empty.
  std::vector<float> parameters, first_moment, second_moment, residual;

  // Whether the round that the hub begins now is the one that was interrupted, from the same outer state.
  bool belongs_to(const HubRoundBegin& begun, const std::string& outer_hash_now) const;
};

// Replaced atomically; 12 to 16 bytes a parameter.
Status save_inner_state(const std::filesystem::path& file, const InnerState& state);
// kNotFound when there is none; kCorrupt when it is not whole, or of a model of another size.
Result<InnerState> load_inner_state(const std::filesystem::path& file, std::uint64_t numel);

}  // namespace atl
