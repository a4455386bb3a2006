#include "net/recovery/outer_state.h"

#include <fmt/format.h>

#include <algorithm>

#include "net/base/encoding.h"
#include "net/wire/json_archive.h"

namespace atl {
namespace {

constexpr std::size_t kDigestTextBytes = 67;  // in hex, with quotes and comma
constexpr int kMaxDepth = 2;

// The bytes [begin, begin + count) of `first` followed by `second`, to the hash.
void update_with_slice(Sha256& hash, ByteView first, ByteView second, std::uint64_t begin, std::uint64_t count) {
  if (begin < first.size()) {
    const auto part = std::min<std::uint64_t>(count, first.size() - begin);
    hash.update(first.subspan(begin, part));
    begin += part;
    count -= part;
  }
  if (count > 0) hash.update(second.subspan(begin - first.size(), count));
}

std::uint64_t chunks_of(std::uint64_t state_bytes) { return (state_bytes + kStateChunkBytes - 1) / kStateChunkBytes; }

Error bad_manifest(std::string_view why) {
  return Error{ErrorCode::kProtocol, fmt::format("the manifest of the outer state is wrong: {}", why)};
}

}  // namespace

std::uint64_t max_manifest_bytes(std::uint64_t state_bytes) { return chunks_of(state_bytes) * kDigestTextBytes + 1024; }

std::uint64_t StateManifest::chunk_bytes(std::uint64_t index) const {
  return std::min(kStateChunkBytes, state_bytes - index * kStateChunkBytes);
}

Digest StateManifest::tree_hash() const {
  ByteWriter head;
  head.put(version.value);
  head.put(state_bytes);
  Sha256 hash;
  hash.update(head.bytes());
  for (const Digest& chunk : chunk_sha256) hash.update(chunk);
  return hash.finish();
}

std::string StateManifest::to_json() const {
  nlohmann::json chunks = nlohmann::json::array();
  for (const Digest& chunk : chunk_sha256) chunks.push_back(to_hex(chunk));
  return dump_json({{"version", version.value}, {"state_bytes", state_bytes}, {"chunks", std::move(chunks)}});
}

Result<StateManifest> StateManifest::from_json(std::string_view text) {
  ATOLL_ASSIGN_OR_RETURN(const nlohmann::json object,
                         parse_bounded_json(text, max_manifest_bytes(kMaxStateChunks * kStateChunkBytes), kMaxDepth));
  JsonReader reader(object);
  StateManifest manifest;
  reader.field("version", manifest.version);
  reader.field("state_bytes", manifest.state_bytes);
  const nlohmann::json* chunks = reader.find("chunks");
  if (!reader.status().ok()) return bad_manifest(reader.status().error().message);
  if (manifest.state_bytes > kMaxStateChunks * kStateChunkBytes) return bad_manifest("the state is too large");
  if (!chunks->is_array() || chunks->size() != chunks_of(manifest.state_bytes)) {
    return bad_manifest("it does not list a digest for every chunk");
  }
  manifest.chunk_sha256.reserve(chunks->size());
  for (const nlohmann::json& entry : *chunks) {
    const auto digest = hex_decode(entry.is_string() ? entry.get_ref<const std::string&>() : std::string());
    if (!digest.ok() || digest->size() != sizeof(Digest)) return bad_manifest("a chunk's digest is no SHA-256");
    std::ranges::copy(*digest, manifest.chunk_sha256.emplace_back().begin());
  }
  return manifest;
}

StateManifest make_state_manifest(OuterStep version, std::span<const float> parameters,
                                  std::span<const float> momentum) {
  const ByteView first = std::as_bytes(parameters);
  const ByteView second = std::as_bytes(momentum);
  StateManifest manifest{version, first.size() + second.size(), {}};
  manifest.chunk_sha256.resize(chunks_of(manifest.state_bytes));
  for (std::uint64_t index = 0; index < manifest.chunk_sha256.size(); ++index) {
    Sha256 hash;
    update_with_slice(hash, first, second, index * kStateChunkBytes, manifest.chunk_bytes(index));
    manifest.chunk_sha256[index] = hash.finish();
  }
  return manifest;
}

StateManifestWriter::StateManifestWriter(OuterStep version, std::uint64_t numel)
    : manifest_{version, 2 * sizeof(float) * numel, {}} {}

void StateManifestWriter::add(std::span<const float> values) {
  ByteView bytes = std::as_bytes(values);
  while (!bytes.empty()) {
    const auto count = std::min<std::uint64_t>(bytes.size(), kStateChunkBytes - in_chunk_);
    chunk_->update(bytes.first(count));
    bytes = bytes.subspan(count);
    in_chunk_ += count;
    if (in_chunk_ < kStateChunkBytes) continue;
    manifest_.chunk_sha256.push_back(chunk_->finish());
    chunk_ = std::make_unique<Sha256>();
    in_chunk_ = 0;
  }
}

StateManifest StateManifestWriter::finish() {
  if (in_chunk_ > 0) manifest_.chunk_sha256.push_back(chunk_->finish());
  return std::move(manifest_);
}

}  // namespace atl
