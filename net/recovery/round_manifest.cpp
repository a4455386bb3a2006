#include "net/recovery/round_manifest.h"

#include <fmt/format.h>

#include <algorithm>

#include "net/mesh/commit_signature.h"

namespace atl {
namespace {

constexpr std::string_view kMagic = "ATLPIECE";
constexpr std::uint32_t kVersion = 1;
constexpr std::uint64_t kHeadBytes = 28;
constexpr std::uint32_t kMostRecordBytes = 4u << 20;  // no longer than a message of the mesh; escapes included

Error wrong(OuterStep round, std::string_view why) {
  return Error{ErrorCode::kCorrupt, fmt::format("what it says of round {} is wrong: {}", round.value, why)};
}

}  // namespace

std::size_t RoundManifest::piece_bytes(std::size_t index) const {
  return static_cast<std::size_t>(std::min<std::uint64_t>(kDigestPieceBytes, bytes - index * kDigestPieceBytes));
}

Bytes round_manifest_head(const SignedCommit& record, WireFormat wire, std::uint64_t bytes) {
  const std::string text = encode(record);
  ByteWriter head;
  head.put_bytes(as_bytes(kMagic));
  head.put(kVersion);
  head.put(static_cast<std::uint32_t>(wire));
  head.put(bytes);
  head.put(static_cast<std::uint32_t>(text.size()));
  head.put_bytes(as_bytes(text));
  return head.take();
}

std::uint64_t max_round_manifest_bytes(std::int64_t numel) {
  std::int64_t most = 0;
  for (const WireFormat wire : kWireFormats) most = std::max(most, encoded_bytes(wire, numel));
  return kHeadBytes + kMostRecordBytes + sizeof(PieceHash) * digest_pieces(static_cast<std::size_t>(most));
}

Result<RoundManifest> read_round_manifest(ByteView bytes, const Identity& self, OuterStep round, std::int64_t numel,
                                          std::uint32_t fragments) {
  ByteReader reader(bytes);
  const bool known = to_string(reader.get_bytes(kMagic.size())) == kMagic && reader.get<std::uint32_t>() == kVersion;
  const auto wire = reader.get<std::uint32_t>();
  RoundManifest manifest;
  manifest.bytes = reader.get<std::uint64_t>();
  const auto record_bytes = reader.get<std::uint32_t>();
  if (!known || !reader.ok() || record_bytes > kMostRecordBytes) return wrong(round, "it is no record of a round");
  const bool fits = wire <= UINT8_MAX && is_wire_format(static_cast<std::uint8_t>(wire)) &&
                    traits_of(static_cast<WireFormat>(wire)).for_runs &&
                    manifest.bytes == static_cast<std::uint64_t>(encoded_bytes(static_cast<WireFormat>(wire), numel));
  if (!fits) return wrong(round, "its average is of another model");
  manifest.wire = static_cast<WireFormat>(wire);
  Result<SignedCommit> record = decode_signed_commit(to_string(reader.get_bytes(record_bytes)));
  if (!record.ok()) return wrong(round, record.error().message);
  manifest.record = std::move(*record);
  const HubCommit& commit = manifest.record.commit;
  if (commit.round != round || commit.fragment.value != round.value % fragments) {
    return wrong(round, "the hub's record is of another round");
  }
  const Status is_signed = verify_commit(self, manifest.record.hub_certificate, commit);
  if (!is_signed.ok()) return wrong(round, is_signed.error().message);
  manifest.pieces.resize(digest_pieces(static_cast<std::size_t>(manifest.bytes)));
  for (PieceHash& hash : manifest.pieces) {
    std::ranges::copy(reader.get_bytes(hash.size()), hash.begin());
    if (!reader.ok()) return wrong(round, "it does not list every piece");
  }
  if (!reader.at_end()) return wrong(round, "there is more behind its end");
  if (to_hex(digest_of_pieces(manifest.pieces)) != commit.digest) {
    return wrong(round, "its pieces are not those of the average that was committed");
  }
  return manifest;
}

}  // namespace atl
