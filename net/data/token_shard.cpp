#include "net/data/token_shard.h"

#include <fmt/format.h>

namespace atl {

Bytes encode_token_shard_header(const TokenShardHeader& header) {
  ByteWriter writer;
  writer.put_bytes(as_bytes(kTokenShardMagic));
  writer.put(header.marked ? kMarkedTokenShardVersion : kTokenShardVersion);
  writer.put(header.token_bytes);
  writer.put(header.vocab_size);
  writer.put(std::uint32_t{0});
  writer.put(header.token_count);
  return writer.take();
}

Result<TokenShardHeader> decode_token_shard_header(ByteView file) {
  ByteReader reader(file);
  const std::string magic = to_string(reader.get_bytes(kTokenShardMagic.size()));
  const auto version = reader.get<std::uint32_t>();
  TokenShardHeader header;
  header.token_bytes = reader.get<std::uint32_t>();
  header.vocab_size = reader.get<std::uint32_t>();
  const auto reserved = reader.get<std::uint32_t>();
  header.token_count = reader.get<std::uint64_t>();
  if (!reader.ok() || magic != kTokenShardMagic) return Error{ErrorCode::kCorrupt, "this is no token shard"};
  if (version != kTokenShardVersion && version != kMarkedTokenShardVersion) {
    return Error{ErrorCode::kVersionUnsupported,
                 fmt::format("token shard of version {}, this program reads {} and {}; prepare the data again with "
                             "'atoll data prepare'",
                             version, kTokenShardVersion, kMarkedTokenShardVersion)};
  }
  header.marked = version == kMarkedTokenShardVersion;
  const bool known_width = header.token_bytes == 4 || (header.token_bytes == 2 && !header.marked);
  const bool vocabulary_fits = header.vocab_size >= 1 && (header.token_bytes == 4 || header.vocab_size <= 65536) &&
                               header.vocab_size <= kUncountedBit;
  if (!known_width || !vocabulary_fits || reserved != 0) {
    return Error{ErrorCode::kCorrupt, "token shard with an impossible header"};
  }
  const std::uint64_t payload_bytes = file.size() - kTokenShardHeaderBytes;
  if (payload_bytes % header.token_bytes != 0 || header.token_count != payload_bytes / header.token_bytes) {
    return Error{ErrorCode::kCorrupt,
                 fmt::format("token shard whose header says {} tokens of {} bytes, but {} bytes follow; "
                             "the file was cut short or damaged",
                             header.token_count, header.token_bytes, payload_bytes)};
  }
  return header;
}

}  // namespace atl
