// outer.state: an outer state on an island's disk, the newest (outer.state) and older ones (outer.STEP.state). Private
// to the owner. The one definition of its bytes, for the trainer that writes and loads it and for who lists and
// verifies it without a model.
//
//   offset  bytes  what
//        0      8  "ATLOUTER"
//        8      4  u32, version of this layout: 1
//       12      4  u32, outer step: outer steps applied
//       16      8  u64, numel: the model's parameters
//       24      4  fp32 each: numel parameters, then numel values of Nesterov momentum, both in canonical order
//  24+8 numel  64  tree hash of step and values (StateManifest::tree_hash), lower-case hex
//
// Any thread; block on the disk, for as long as a model takes to be read.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "net/base/id.h"
#include "net/base/result.h"
#include "net/disk/stored_file.h"
#include "net/recovery/outer_state.h"

namespace atl {

// What such a file says of itself.
struct OuterStateInfo {
  OuterStep outer_step;
  std::uint64_t numel = 0;
  std::string tree_hash;
};

// Beside what is there until it is whole, then in its place. `tree_hash` is that of step and values, as the caller
// knows it already: it is not computed again. Both spans: [numel].
Status write_outer_state(const std::filesystem::path& path, OuterStep step, std::span<const float> parameters,
                         std::span<const float> momentum, const std::string& tree_hash);

// Its header and its end. The values are not looked at: what it says may be wrong yet. kCorrupt when it is not as long
// as it says, kNotFound when there is none.
Result<OuterStateInfo> peek_outer_state(const std::filesystem::path& path);

// Reads all of it on all processors, a chunk (16 MiB) of memory for each. kCorrupt when the values are not those of the
// tree hash.
Result<OuterStateInfo> verify_outer_state(const std::filesystem::path& path);

// All of it, verified. kCorrupt also when it is of a model of another size; nothing is allocated before that is known.
Result<FetchedState> read_outer_state(const std::filesystem::path& path, std::uint64_t numel);

// The same, into the caller's memory, which holds anything after an error. Both spans: [numel].
Result<OuterStateInfo> read_outer_state(const std::filesystem::path& path, std::span<float> parameters,
                                        std::span<float> momentum);

}  // namespace atl
