#include "net/recovery/outer_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "net/base/encoding.h"
#include "net/base/parallel.h"
#include "net/base/sha256_streams.h"
#include "net/wire/json_archive.h"

namespace atl {
namespace {

constexpr std::size_t kDigestTextBytes = 67;  // in hex, with quotes and comma
constexpr int kMaxDepth = 2;

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

std::uint64_t state_chunks(std::uint64_t numel) { return chunks_of(2 * sizeof(float) * numel); }

Digest chunk_digest(std::span<const float> parameters, std::span<const float> momentum) {
  Sha256 hash;
  hash.update(std::as_bytes(parameters));
  hash.update(std::as_bytes(momentum));
  return hash.finish();
}

std::vector<std::span<const std::uint64_t>> chunks_in_step(std::span<const std::uint64_t> chunks, std::uint64_t numel) {
  std::vector<std::span<const std::uint64_t>> groups;
  // The last chunk may be short.
  const bool short_end = !chunks.empty() && (chunks.back() + 1) * kStateChunkNumel > numel;
  const std::size_t whole = chunks.size() - (short_end ? 1 : 0);
  const std::size_t processors = parallel_threads();
  const std::size_t most = std::clamp<std::size_t>((whole + processors - 1) / processors, 1, kSha256Streams);
  for (std::size_t i = 0; i < whole; i += most) groups.push_back(chunks.subspan(i, std::min(most, whole - i)));
  if (short_end) groups.push_back(chunks.last(1));
  return groups;
}

StateManifest make_state_manifest(OuterStep version, std::span<const float> parameters,
                                  std::span<const float> momentum) {
  StateManifest manifest{version, parameters.size_bytes() + momentum.size_bytes(), {}};
  manifest.chunk_sha256.resize(state_chunks(parameters.size()));
  std::vector<std::uint64_t> chunks(manifest.chunk_sha256.size());
  std::iota(chunks.begin(), chunks.end(), 0);
  const auto groups = chunks_in_step(chunks, parameters.size());
  parallel_for(groups.size(), [&](std::size_t part) {
    Sha256Streams hash(groups[part].size());
    for (const std::span<const float> values : {parameters, momentum}) {
      std::vector<ByteView> parts;
      for (const std::uint64_t index : groups[part]) parts.push_back(std::as_bytes(of_chunk(values, index)));
      hash.update(parts);
    }
    std::ranges::copy(hash.finish(), manifest.chunk_sha256.begin() + static_cast<std::ptrdiff_t>(groups[part].front()));
  });
  return manifest;
}

}  // namespace atl
