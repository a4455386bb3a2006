#include "net/store/published_state.h"

#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>

#include "net/base/json_reader.h"

namespace atl {
namespace {

constexpr std::string_view kDirectory = "outer-";
constexpr std::size_t kMaxModelBytes = 64u << 10;
constexpr int kMaxManifestDepth = 8;  // a model's configuration has objects in objects
constexpr int kMaxLatestDepth = 1;

Error wrong(std::string_view what, std::string_view why) {
  return Error{ErrorCode::kCorrupt, fmt::format("the {} in the store is not what Atoll writes: {}", what, why)};
}

// An older program must not take a newer one's for its own.
Status check_version(JsonReader& reader, int known, std::string_view what) {
  int version = 0;
  reader.field("version", version);
  if (!reader.status().ok()) return wrong(what, reader.status().error().message);
  if (version == known) return ok_status();
  return Error{
      ErrorCode::kVersionUnsupported,
      fmt::format("the {} in the store is of version {}, here {} is known; update atoll", what, version, known)};
}

}  // namespace

std::string published_name(OuterStep step) { return fmt::format("{}{}", kDirectory, step.value); }

std::optional<OuterStep> published_step(std::string_view name) {
  if (!name.starts_with(kDirectory)) return std::nullopt;
  OuterStep step;
  const char* end = name.data() + name.size();
  const auto [stopped, error] = std::from_chars(name.data() + kDirectory.size(), end, step.value);
  if (error != std::errc() || stopped != end || published_name(step) != name) return std::nullopt;
  return step;
}

std::string chunk_object(std::uint64_t object) { return fmt::format("chunks.{:05}", object); }
std::uint64_t first_chunk_of(std::uint64_t object) { return object * kChunksOfObject; }

std::uint64_t chunk_objects(const StateManifest& state) {
  return (state.chunk_sha256.size() + kChunksOfObject - 1) / kChunksOfObject;
}

std::uint64_t chunks_of_object(const StateManifest& state, std::uint64_t object) {
  return std::min<std::uint64_t>(kChunksOfObject, state.chunk_sha256.size() - first_chunk_of(object));
}

std::uint64_t bytes_of_object(const StateManifest& state, std::uint64_t object) {
  const std::uint64_t begin = first_chunk_of(object) * kStateChunkBytes;
  return std::min(kChunksOfObject * kStateChunkBytes, state.state_bytes - begin);
}

std::string chunks_digest(const StateManifest& state, std::uint64_t object) {
  Sha256 hash;
  for (std::uint64_t i = 0; i < chunks_of_object(state, object); ++i) {
    hash.update(state.chunk_sha256[first_chunk_of(object) + i]);
  }
  return to_hex(hash.finish());
}

std::string PublishedManifest::to_json() const {
  const auto state_object = parse_bounded_json(state.to_json(), kMaxPublishedManifest, kMaxManifestDepth);
  nlohmann::json json = {{"version", kVersion},
                         {"run_id", run_id},
                         {"run_name", run_name},
                         {"model_json", model_json},
                         {"state", state_object.ok() ? *state_object : nlohmann::json()},
                         {"state_hash", to_hex(state.tree_hash())},
                         {"initial_hash", initial_hash}};
  if (attention) json["attention"] = attention_scope_name(*attention);
  if (!tokenizer.empty()) json["tokenizer"] = tokenizer;
  if (!tokenizer_sha256.empty()) json["tokenizer_sha256"] = tokenizer_sha256;
  return dump_json(json);
}

Result<PublishedManifest> PublishedManifest::from_json(std::string_view text) {
  const auto object = parse_bounded_json(text, kMaxPublishedManifest, kMaxManifestDepth);
  if (!object.ok()) return wrong("manifest", object.error().message);
  JsonReader reader(*object);
  ATOLL_RETURN_IF_ERROR(check_version(reader, kVersion, "manifest"));
  PublishedManifest manifest;
  std::string hash;
  reader.bounded("run_id", manifest.run_id, 16);
  reader.text("run_name", manifest.run_name);
  reader.bounded("model_json", manifest.model_json, kMaxModelBytes);
  reader.hash("state_hash", hash);
  reader.hash("initial_hash", manifest.initial_hash);
  if (reader.has("attention")) {
    std::string name;
    reader.text("attention", name);
    manifest.attention = attention_scope_named(name);
    if (!manifest.attention) return wrong("manifest", "it was trained with an attention that this atoll does not know");
  }
  reader.text_if_any("tokenizer", manifest.tokenizer, kMaxPersonName);
  if (reader.has("tokenizer_sha256")) reader.hash("tokenizer_sha256", manifest.tokenizer_sha256);
  const nlohmann::json* state = reader.find("state");
  if (!reader.status().ok()) return wrong("manifest", reader.status().error().message);
  auto decoded = StateManifest::from_json(dump_json(*state));
  if (!decoded.ok()) return wrong("manifest", decoded.error().message);
  manifest.state = std::move(*decoded);
  if (to_hex(manifest.state.tree_hash()) != hash) return wrong("manifest", "its hashes do not fit each other");
  return manifest;
}

std::string LatestState::to_json() const {
  return dump_json({{"version", kVersion},
                    {"outer_step", outer_step.value},
                    {"state_hash", state_hash},
                    {"manifest_sha256", manifest_sha256}});
}

Result<LatestState> LatestState::from_json(std::string_view text) {
  const auto object = parse_bounded_json(text, kMaxLatestBytes, kMaxLatestDepth);
  if (!object.ok()) return wrong("latest.json", object.error().message);
  JsonReader reader(*object);
  ATOLL_RETURN_IF_ERROR(check_version(reader, kVersion, "latest.json"));
  LatestState latest;
  reader.field("outer_step", latest.outer_step);
  reader.hash("state_hash", latest.state_hash);
  reader.hash("manifest_sha256", latest.manifest_sha256);
  if (!reader.status().ok()) return wrong("latest.json", reader.status().error().message);
  return latest;
}

}  // namespace atl
