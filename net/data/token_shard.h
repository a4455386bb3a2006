// The file format of token shards: what `atoll data prepare` writes and Dataset maps. Constants and header shared by
// both.
//
//   shard       := header token*                 the file ends with the last token
//   header      := magic version token_bytes vocab_size reserved token_count          32 bytes, little-endian
//   magic       := "ATOLLTOK"
//   version     := u32, 1; 2 of tokens that are marked
//   token_bytes := u32, 2 or 4; 4 of version 2
//   vocab_size  := u32, at least 1; at most 65536 when token_bytes is 2
//   reserved    := u32, 0
//   token_count := u64
//   token       := u16 or u32 as token_bytes says, below vocab_size; of version 2 with kUncountedBit where it counts
//   for
//                  nothing as a label: training predicts it from those before it, and the loss leaves it out
#pragma once

#include <cstdint>
#include <string_view>

#include "net/base/bytes.h"
#include "net/base/result.h"

namespace atl {

inline constexpr std::string_view kTokenShardMagic = "ATOLLTOK";
inline constexpr std::uint32_t kTokenShardVersion = 1, kMarkedTokenShardVersion = 2;
inline constexpr std::size_t kTokenShardHeaderBytes = 32;
// The byte-level tokenizer: token = byte, and one more between pieces of text that do not belong together.
inline constexpr std::uint32_t kEndOfText = 256;
inline constexpr std::uint32_t kByteVocabSize = 257;

inline constexpr std::uint32_t kUncountedBit = std::uint32_t{1} << 31;  // no vocabulary reaches it
constexpr std::uint32_t token_id(std::uint32_t token) { return token & ~kUncountedBit; }

struct TokenShardHeader {
  std::uint32_t token_bytes = 2;
  std::uint32_t vocab_size = kByteVocabSize;
  std::uint64_t token_count = 0;
  bool marked = false;
};

Bytes encode_token_shard_header(const TokenShardHeader& header);
// Of a whole file: its size must be what the header says. kCorrupt or kVersionUnsupported.
Result<TokenShardHeader> decode_token_shard_header(ByteView file);

}  // namespace atl
