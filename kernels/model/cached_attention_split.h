// How a GPU divides attention over a cache (cached_attention_cuda.h): by the sizes of a pass alone, so that the host
// knows what scratch a pass needs where there is no GPU, and sums are the same on every card. Pure; host and device.
#pragma once

#include <cstdint>

namespace atl {

inline constexpr std::int64_t kCachedHeadsAtOnce = 4;  // queries that share a key, of one block of threads
inline constexpr std::int64_t kMostCachedHeadDim = 512;
inline constexpr std::int64_t kCachedSplitKeys = 64;  // a part has at least so many, and a multiple

// Blocks of threads of a pass whose keys are not divided.
constexpr std::int64_t cached_groups(std::int64_t rows, std::int64_t heads, std::int64_t key_value_heads) {
  const std::int64_t shared_by = heads / key_value_heads;
  return rows * key_value_heads * ((shared_by + kCachedHeadsAtOnce - 1) / kCachedHeadsAtOnce);
}

// Into how many parts the keys of a row are divided: several where rows alone do not fill a card, as of one text that
// is written. Four blocks for each of an H100's 132 processors are full.
constexpr std::int64_t cached_splits(std::int64_t groups, std::int64_t capacity) {
  constexpr std::int64_t kFull = 528, kMost = 64;
  const std::int64_t wanted = groups == 0 ? 1 : kFull / groups;
  const std::int64_t there_are = (capacity + kCachedSplitKeys - 1) / kCachedSplitKeys;
  const std::int64_t most = there_are < kMost ? there_are : kMost;
  return wanted < 1 ? 1 : wanted < most ? wanted : most;
}

// fp32 values: of each row, head and part the sum of its values, its largest score and its sum of weights.
constexpr std::int64_t cached_scratch_numel(std::int64_t rows, std::int64_t heads, std::int64_t key_value_heads,
                                            std::int64_t head_dim, std::int64_t capacity) {
  const std::int64_t splits = cached_splits(cached_groups(rows, heads, key_value_heads), capacity);
  return splits == 1 ? 0 : rows * heads * splits * (head_dim + 2);
}

}  // namespace atl
