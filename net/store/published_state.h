// An outer state as it lies in an object store, whoever wrote it. The one definition of its names and bytes:
//
//   PREFIX/outer-STEP/       STEP: outer steps applied
//     chunks.00000 ...       chunk after chunk (net/recovery/outer_state.h), kChunksOfObject in each (2 GiB)
//     model.json             a HuggingFace config.json
//     manifest.json          what it is, with the digest of each chunk; there only once all the others are
//     uploading.json         while it is being written: which state, of which run; gone afterwards
//   PREFIX/latest.json       the newest that is whole, written last
//
// A prefix is one run's: where another's states lie, nothing is written or taken away.
//
// A state of the same step that is written over another takes its manifest away first: whoever reads one finds what it
// names, or chunks whose digest tells that another state has taken its place. Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "net/model/attention_scope.h"
#include "net/recovery/outer_state.h"
#include "net/store/store_url.h"

namespace atl {

// 16 MiB each: parts of a multipart upload, which stores take from 5 MiB on, 10,000 an object.
inline constexpr std::uint64_t kChunksOfObject = 128;

inline constexpr const char* kManifestObject = "manifest.json";
inline constexpr const char* kModelObject = "model.json";
inline constexpr const char* kUploadingObject = "uploading.json";
inline constexpr const char* kLatestObject = "latest.json";

std::string published_name(OuterStep step);                      // "outer-12"
std::optional<OuterStep> published_step(std::string_view name);  // of such a name
std::string chunk_object(std::uint64_t object);                  // "chunks.00000"
std::uint64_t chunk_objects(const StateManifest& state);         // how many
std::uint64_t first_chunk_of(std::uint64_t object);
std::uint64_t chunks_of_object(const StateManifest& state, std::uint64_t object);
std::uint64_t bytes_of_object(const StateManifest& state, std::uint64_t object);
// SHA-256, hex, over the digests of its chunks: what an object says of itself (x-amz-meta-atoll-chunks).
std::string chunks_digest(const StateManifest& state, std::uint64_t object);
inline constexpr const char* kChunksHeader = "x-amz-meta-atoll-chunks";

struct PublishedManifest {
  static constexpr int kVersion = 1;
  std::string run_id, run_name;
  std::string model_json;
  StateManifest state;
  // The tree hash, hex, of outer step 0 with these parameters and no momentum: of a run that begins with them.
  std::string initial_hash;
  std::optional<AttentionScope> attention = {};  // with which it was trained; one of before does not say
  // Of the data it was trained on: the tokenizer's kind, and its file's hash (hex), which bytes have not. One of before
  // does not say.
  std::string tokenizer = {}, tokenizer_sha256 = {};

  std::string to_json() const;
  static Result<PublishedManifest> from_json(std::string_view text);
};
inline constexpr std::size_t kMaxPublishedManifest = 80u << 20;  // of the largest state

struct LatestState {
  static constexpr int kVersion = 1;
  OuterStep outer_step;
  std::string state_hash;       // tree hash, hex
  std::string manifest_sha256;  // hex

  std::string to_json() const;
  static Result<LatestState> from_json(std::string_view text);
};
inline constexpr std::size_t kMaxLatestBytes = 4096;

}  // namespace atl
