// The merges of byte-level BPE within one piece of text. The piece begins as one token a byte; then, again and again,
// of all pairs of neighbours that a merge joins the one of the least rank is joined, the leftmost of equals, until none
// is left (Sennrich et al., arXiv:1508.07909).
//
// HuggingFace's files list merges; tiktoken's give a rank to each token, and two neighbours merge when their bytes
// together are one. Both are a table from pairs to ranks: whatever stands around them, the bytes of a token are merged
// among themselves in the order in which they would be merged alone, as long as no merge crosses its ends. So only one
// pair of tokens can ever merge to a given token: the last two that merging its bytes alone leaves (pairs_of_ranks).
//
// A piece of up to 64 bytes is searched anew for each merge: the least of a few numbers in a row, which vectors find
// fastest. A longer one has a heap, so that n bytes take n log n steps (tiktoken searches pieces below 100 bytes, and
// has a heap for others; github/rust-gems' crate bpe describes linear ways).
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "net/tokenizer/bpe_tables.h"

namespace atl {

struct BpeMerges {
  explicit BpeMerges(std::size_t capacity) : pairs(capacity) {}

  std::array<TokenId, 256> byte_ids{};  // the token of each byte
  PairTable pairs;
  std::vector<TokenId> results;  // what each merge makes, by its number
  // The merge of two bytes, at first * 256 + second: each piece begins with a look at all of its pairs. By
  // fill_byte_pairs, once byte_ids and the merges of bytes are there.
  std::vector<std::uint32_t> byte_pairs;

  void fill_byte_pairs();
};

// Room to work, kept from piece to piece. One thread.
struct MergeRoom {
  struct Part {
    TokenId id;
    std::uint32_t merge;           // of this part and the next one
    std::uint32_t previous, next;  // their places
  };
  std::vector<Part> parts;
  std::vector<std::uint64_t> heap;  // merge << 32 | place, least first
};

// The tokens of a piece that is not empty, in `ids`, whose room is piece.size() tokens or more; how many.
std::size_t merge_piece(const BpeMerges& merges, std::string_view piece, MergeRoom& room, TokenId* ids);

// The same of tokens that are no single bytes: what they merge to stands in their place, at the begin; how many.
std::size_t merge_ids(const BpeMerges& merges, std::span<TokenId> ids, MergeRoom& room);

// Adds the merges that ranks mean: of each token its pair, numbered by rank. `ranked`: the tokens of two bytes and
// more, by rising rank; byte_ids are there.
void add_pairs_of_ranks(std::span<const TokenId> ranked, const TokenBytes& tokens, BpeMerges& merges);

}  // namespace atl
