#include "net/recovery/state_answers.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <memory>
#include <optional>
#include <vector>

#include "net/base/json_reader.h"
#include "net/mesh/link_probe.h"

namespace atl {
namespace {

namespace http = boost::beast::http;

constexpr std::string_view kManifestTarget = "/state/manifest";
constexpr std::string_view kStatePrefix = "/state/";
constexpr std::string_view kRoundsPrefix = "/rounds/";
constexpr std::string_view kManifestName = "manifest", kAverageName = "average";
constexpr std::size_t kHashesAtOnce = 64;  // of pieces, 16 MiB of the disk: bytes go on moving while it is read

Answer whole(std::string_view type, Bytes content) {
  Answer answer;
  answer.type = type;
  answer.bytes = content.size();
  answer.content = std::move(content);
  return answer;
}

Bytes copy_of(ByteView bytes) { return {bytes.begin(), bytes.end()}; }

std::string etag_of(OuterStep version) { return fmt::format("\"{}\"", version.value); }

std::string repr_digest(const Digest& digest) {  // RFC 9530
  std::array<unsigned char, 48> text{};
  const int size = EVP_EncodeBlock(text.data(), reinterpret_cast<const unsigned char*>(digest.data()),
                                   static_cast<int>(digest.size()));
  return fmt::format("sha-256=:{}:",
                     std::string_view(reinterpret_cast<const char*>(text.data()), static_cast<std::size_t>(size)));
}

// A number and what comes after the slash behind it.
template <class Number>
std::optional<std::string_view> take_number(std::string_view text, Number& number) {
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number);
  if (read.ec != std::errc() || read.ptr == end || *read.ptr != '/') return std::nullopt;
  return std::string_view(read.ptr + 1, static_cast<std::size_t>(end - read.ptr - 1));
}

// ---- the outer state

struct ChunkName {
  OuterStep version;
  std::uint64_t index = 0;
};

std::optional<ChunkName> parse_chunk_target(std::string_view target) {
  ChunkName name;
  const auto rest = take_number(target.substr(kStatePrefix.size()), name.version.value);
  if (!rest) return std::nullopt;
  const char* end = rest->data() + rest->size();
  const auto index = std::from_chars(rest->data(), end, name.index);
  if (index.ec != std::errc() || index.ptr != end) return std::nullopt;
  return name;
}

Answer answer_manifest(const OuterStateSource& source) {
  const auto manifest = source.manifest();
  if (!manifest.ok()) return refuse(http::status::not_found, manifest.error().message);
  Answer answer = whole("application/json", copy_of(as_bytes(manifest->to_json())));
  answer.etag = etag_of(manifest->version);
  answer.digest = repr_digest(sha256(answer.content));
  return answer;
}

Answer answer_chunk(const OuterStateSource& source, const ChunkName& name) {
  const auto manifest = source.manifest();
  if (!manifest.ok()) return refuse(http::status::not_found, manifest.error().message);
  const auto moved_on = [] {
    return refuse(http::status::precondition_failed, "this island's outer state is of another version");
  };
  if (manifest->version != name.version) return moved_on();
  if (name.index >= manifest->chunk_sha256.size()) return refuse(http::status::not_found, "the state has fewer chunks");
  auto chunk = source.copy_chunk(name.version, name.index);
  if (!chunk.ok() && chunk.error().code == ErrorCode::kNotFound) return moved_on();
  if (!chunk.ok()) return refuse(http::status::internal_server_error, chunk.error().message);
  Answer answer = whole("application/octet-stream", std::move(chunk).value());
  answer.etag = etag_of(name.version);
  answer.digest = repr_digest(manifest->chunk_sha256[name.index]);
  return answer;
}

// ---- rounds

Answer no_such_round() { return refuse(http::status::not_found, "this island has not logged that round"); }

Answer answer_average(const RoundLog& rounds, OuterStep round, std::string_view digest) {
  auto opened = AverageFile::open(rounds.average_file(round));
  if (!opened.ok() || opened->info().round != round || opened->info().digest != digest) return no_such_round();
  const auto file = std::make_shared<AverageFile>(std::move(*opened));
  Answer answer;
  answer.bytes = file->info().bytes;
  answer.part_bytes = kServedPartBytes;
  answer.etag = fmt::format("\"{}\"", digest);
  answer.read = [file](std::uint64_t offset, std::span<std::byte> part) { return file->read(offset, part); };
  return answer;
}

Answer answer_round_manifest(ServedRounds& rounds, OuterStep round) {
  const auto found = rounds.manifest(round);
  if (!found.ok()) return no_such_round();
  Answer answer;
  answer.bytes = (*found)->bytes();
  answer.part_bytes = kHashesAtOnce * sizeof(PieceHash);
  answer.read = [text = *found](std::uint64_t offset, std::span<std::byte> part) { return text->read(offset, part); };
  return answer;
}

// /rounds/ROUND/manifest, /rounds/ROUND/DIGEST/average
Answer answer_round(std::string_view target, ServedRounds* rounds) {
  OuterStep round;
  const auto rest = take_number(target.substr(kRoundsPrefix.size()), round.value);
  if (!rest || rounds == nullptr) return no_such_round();
  if (*rest == kManifestName) return answer_round_manifest(*rounds, round);
  const auto slash = rest->find('/');
  const std::string digest(rest->substr(0, slash));
  if (slash == std::string_view::npos || rest->substr(slash + 1) != kAverageName || !is_sha256_hex(digest)) {
    return no_such_round();
  }
  return answer_average(rounds->log(), round, digest);
}

// TLS does not compress, so that any bytes do.
Answer answer_probe(std::string_view count) {
  std::uint64_t bytes = 0;
  const auto [end, error] = std::from_chars(count.data(), count.data() + count.size(), bytes);
  if (error != std::errc() || end != count.data() + count.size() || bytes == 0 || bytes > kMaxProbeBytes) {
    return refuse(http::status::bad_request, "a probe is of 1 to 16777216 bytes");
  }
  return whole("application/octet-stream", Bytes(bytes, std::byte{0x5a}));
}

}  // namespace

Answer refuse(http::status status, std::string_view why) {
  Answer answer = whole("text/plain", copy_of(as_bytes(why)));
  answer.status = status;
  return answer;
}

bool is_probe(std::string_view target) { return target.starts_with(kProbeTarget); }

Answer answer_to(std::string_view target, const OuterStateSource& state, ServedRounds* rounds) {
  if (target == kManifestTarget) return answer_manifest(state);
  if (is_probe(target)) return answer_probe(target.substr(kProbeTarget.size()));
  if (target.starts_with(kRoundsPrefix)) return answer_round(target, rounds);
  if (target.starts_with(kStatePrefix)) {
    if (const auto chunk = parse_chunk_target(target)) return answer_chunk(state, *chunk);
  }
  return refuse(http::status::not_found,
                "there is /state/manifest, /state/VERSION/CHUNK, /rounds/ROUND/manifest, "
                "/rounds/ROUND/DIGEST/average, /data/TREE/CHUNK and /v1/probe?bytes=N");
}

}  // namespace atl
