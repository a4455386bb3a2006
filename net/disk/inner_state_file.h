// inner.state: the work of an island in the middle of an inner phase, which a pause writes to the disk, and from which
// the trainer that comes back within the round goes on. Beside the checkpoint of the outer state, without which it is
// nothing. Private to the owner. 12 to 16 bytes a parameter that is trained; the one definition of its bytes:
//
//   offset  bytes  what
//        0      8  "ATLINNER"
//        8      4  u32, version of this layout: 2
//       12      4  u32, round
//       16      4  u32, inner steps of the round
//       20      4  u32, inner steps taken
//       24      8  u64, lease: first sequence
//       32      8  u64, lease: sequences
//       40      8  fp64, sum of the losses over the steps taken (nats a token)
//       48      8  fp64, seconds that they took
//       56      8  u64, steps of the optimiser so far
//       64      8  u64, numel: the model's parameters that are trained
//       72      8  u64, values of the residual: numel, or 0
//       80     64  tree hash of the outer state from which the phase began, lower-case hex
//      144      4  fp32 each, in canonical order: numel parameters, numel first moments, numel second moments, residual
//      end     32  SHA-256 of all before it
//
// Version 1, which is read, too, has values of all parameters, also of those that are frozen (net/model/train_only.h):
// these are the outer state's, and their moments 0.
//
// The island's thread; blocks on the disk.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "net/base/id.h"
#include "net/base/result.h"
#include "net/model/fragments.h"
#include "net/wire/mesh.h"

namespace atl {

struct InnerState {
  HubRoundBegin round;           // as the hub began it: round, steps, lease
  std::string outer_hash;        // tree hash of the outer state from which it began, hex
  std::uint32_t inner_step = 0;  // taken
  double loss_sum = 0;           // over those
  double inner_seconds = 0;      // over those
  std::int64_t optimizer_steps = 0;
  // Of what is trained, in canonical order. The residual (error feedback of earlier rounds) may be empty.
  std::vector<float> parameters, first_moment, second_moment, residual;

  // Whether the round that the hub begins now is the one that was interrupted, from the same outer state.
  bool belongs_to(const HubRoundBegin& begun, const std::string& outer_hash_now) const;
};

// What such a file says of itself: all of InnerState but the values.
struct InnerStateInfo {
  InnerState work;
  std::uint64_t numel = 0, residual_numel = 0;
  bool has_frozen = false;  // of version 1
};

// Replaced atomically. Hashed while it is written, from the caller's memory.
Status save_inner_state(const std::filesystem::path& file, const InnerState& state);
// Its header alone. kNotFound when there is none, kCorrupt when it is not as long as it says.
Result<InnerStateInfo> peek_inner_state(const std::filesystem::path& file);
// Reads all of it, in constant memory. kCorrupt when it is not what was written.
Result<InnerStateInfo> verify_inner_state(const std::filesystem::path& file);
// All of it, verified. `numel`: the model's parameters; `trained`: those that are, ascending (ranges_of). kNotFound
// when there is none; kCorrupt when it is not whole, or of a model of another size, which is known before anything is
// allocated.
Result<InnerState> load_inner_state(const std::filesystem::path& file, std::uint64_t numel,
                                    std::span<const ParameterRange> trained);

}  // namespace atl
