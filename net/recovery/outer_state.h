// The outer state (parameters and momentum, fp32, in canonical order) as versioned chunks: what islands serve over
// HTTPS to those that join, and by whose tree hash the hub compares them after every round. A chunk is a slice of the
// parameters, then the momentum of the same: all that an outer step on these parameters reads and writes, so that
// chunks are stepped and hashed apart from each other.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "net/base/bytes.h"
#include "net/base/id.h"
#include "net/base/result.h"
#include "net/base/sha256.h"

namespace atl {

inline constexpr std::uint64_t kStateChunkNumel = 2u << 20;  // parameters of a chunk
inline constexpr std::uint64_t kStateChunkBytes = 2 * sizeof(float) * kStateChunkNumel;
inline constexpr std::uint64_t kMaxStateChunks = 1u << 20;

struct StateManifest {
  OuterStep version;                                     // outer steps applied
  std::uint64_t state_bytes = 0;                         // 2 * 4 * numel
  std::vector<Digest> chunk_sha256;                      // of each chunk's bytes, the last one short
  std::uint64_t chunk_bytes(std::uint64_t index) const;  // of one chunk; index < chunk_sha256.size()
  // SHA-256 over version (u32), state_bytes (u64) and all chunk digests: one value that stands for all the state.
  Digest tree_hash() const;
  std::string to_json() const;
  static Result<StateManifest> from_json(std::string_view text);  // bounded: at most kMaxStateChunks
};

std::uint64_t max_manifest_bytes(std::uint64_t state_bytes);  // of its JSON

std::uint64_t state_chunks(std::uint64_t numel);  // of a model of so many parameters
// The parameters of a chunk among `values` [numel], which may be the momentum as well.
template <class Value>
std::span<Value> of_chunk(std::span<Value> values, std::uint64_t index) {
  const std::size_t begin = index * kStateChunkNumel;
  return values.subspan(begin, std::min<std::size_t>(kStateChunkNumel, values.size() - begin));
}

// SHA-256 of a chunk: its parameters, then their momentum.
Digest chunk_digest(std::span<const float> parameters, std::span<const float> momentum);
// Of `chunks` (ascending, of a model of `numel` parameters) those that one thread hashes in step with each other
// (net/base/sha256_streams.h), which are equally long: as many as leave no processor idle.
std::vector<std::span<const std::uint64_t>> chunks_in_step(std::span<const std::uint64_t> chunks, std::uint64_t numel);
// On all processors. Both spans: [numel].
StateManifest make_state_manifest(OuterStep version, std::span<const float> parameters,
                                  std::span<const float> momentum);

// A whole state that came from another island, or from this one's disk; [numel] each.
struct FetchedState {
  OuterStep version;
  std::vector<float> parameters;
  std::vector<float> momentum;
};

// What an island serves. Called on HTTPS threads, while training goes on.
class OuterStateSource {
 public:
  virtual ~OuterStateSource() = default;
  virtual Result<StateManifest> manifest() const = 0;  // kNotFound while it holds none
  // Copies chunk `index` of `version` out under the state's lock; kNotFound when the version has moved on (HTTP 412).
  virtual Result<Bytes> copy_chunk(OuterStep version, std::uint64_t index) const = 0;
};

}  // namespace atl
