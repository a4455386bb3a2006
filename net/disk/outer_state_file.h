// outer.state: an outer state in a single file, as islands wrote it before snapshots (snapshot.h): the newest
// (outer.state) and older ones (outer.STEP.state). Read as a snapshot by snapshot.cpp, and never written. Private to
// the owner. The one definition of its bytes:
//
//   offset  bytes  what
//        0      8  "ATLOUTER"
//        8      4  u32, version of this layout: 1
//       12      4  u32, outer step: outer steps applied
//       16      8  u64, numel: the model's parameters
//       24      4  fp32 each: numel parameters, then numel values of Nesterov momentum, both in canonical order
//  24+8 numel  64  tree hash of step and values (StateManifest::tree_hash), lower-case hex
//
// Any thread; block on the disk.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "net/base/id.h"
#include "net/base/result.h"
#include "net/disk/stored_file.h"

namespace atl {

inline constexpr std::uint64_t kOuterValueBytes = 2 * sizeof(float);  // of one parameter: it and its momentum

// What such a file says of itself.
struct OuterStateInfo {
  OuterStep outer_step;
  std::uint64_t numel = 0;
  std::string tree_hash;
};

// Its header and its end. The values are not looked at: what it says may be wrong yet. kCorrupt when it is not as long
// as it says.
Result<OuterStateInfo> read_outer_state_info(const StoredFile& file);
// A chunk's values from where they lie, and their digest. Both spans: of the chunk.
Result<Digest> read_outer_state_chunk(const StoredFile& file, const OuterStateInfo& info, std::uint64_t index,
                                      std::span<float> parameters, std::span<float> momentum);

}  // namespace atl
