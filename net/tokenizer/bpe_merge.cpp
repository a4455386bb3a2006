#include "net/tokenizer/bpe_merge.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <numeric>

namespace atl {
namespace {

constexpr std::uint32_t kNone = PairTable::kNoMerge;

// Parts stay at the places of their first bytes; those that are there are the bits of `alive_`. The pair of a part and
// the next one is a number of merge and place, of which the least is wanted: the first of the merges of least rank.
class SearchedMerge {
 public:
  static constexpr std::size_t kMaxBytes = 64;

  explicit SearchedMerge(const BpeMerges& merges) : merges_(merges) {}

  std::size_t run(std::string_view piece, TokenId* ids) {
    begin(piece);
    return join_all(ids);
  }
  // Of tokens that are there already, at most kMaxBytes.
  std::size_t run(std::span<TokenId> ids) {
    begin(ids);
    return join_all(ids.data());
  }

 private:
  std::size_t join_all(TokenId* ids) {
    for (std::int32_t least = find_least(); least != kNoPair; least = find_least()) {
      join(static_cast<unsigned>(least) % kMaxBytes, static_cast<std::uint32_t>(least) / kMaxBytes);
    }
    std::size_t count = 0;
    for (std::uint64_t left = alive_; left != 0; left &= left - 1) ids[count++] = ids_[std::countr_zero(left)];
    return count;
  }

  static constexpr std::int32_t kNoPair = INT32_MAX;
  static_assert(static_cast<std::uint64_t>(kMaxMerges) * kMaxBytes <= INT32_MAX);
  static constexpr std::size_t kStride = 8;

  static std::int32_t pair_of(std::uint32_t merge, unsigned place) {
    return merge == kNone ? kNoPair : static_cast<std::int32_t>(merge * kMaxBytes + place);
  }
  void begin_parts(std::size_t size) {
    alive_ = size == kMaxBytes ? ~std::uint64_t{0} : (std::uint64_t{1} << size) - 1;
    padded_ = (size + kStride - 1) / kStride * kStride;
    for (std::size_t i = size - 1; i < padded_; ++i) pairs_[i] = kNoPair;
  }
  void begin(std::string_view piece) {
    const std::size_t size = piece.size();
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(piece[i]); };
    begin_parts(size);
    for (std::size_t i = 0; i < size; ++i) ids_[i] = merges_.byte_ids[byte(i)];
    for (std::size_t i = 0; i + 1 < size; ++i) {
      pairs_[i] = pair_of(merges_.byte_pairs[byte(i) * 256u + byte(i + 1)], static_cast<unsigned>(i));
    }
  }
  void begin(std::span<const TokenId> ids) {
    begin_parts(ids.size());
    std::copy(ids.begin(), ids.end(), ids_.begin());
    for (std::size_t i = 0; i + 1 < ids.size(); ++i) {
      pairs_[i] = pair_of(merges_.pairs.find(ids[i], ids[i + 1]), static_cast<unsigned>(i));
    }
  }
  std::int32_t find_least() const {
    std::array<std::int32_t, kStride> least;
    std::copy(pairs_.begin(), pairs_.begin() + kStride, least.begin());
    for (std::size_t i = kStride; i < padded_; i += kStride) {
      for (std::size_t j = 0; j < kStride; ++j) least[j] = pairs_[i + j] < least[j] ? pairs_[i + j] : least[j];
    }
    for (std::size_t half = kStride / 2; half > 0; half /= 2) {
      for (std::size_t j = 0; j < half; ++j) least[j] = least[j + half] < least[j] ? least[j + half] : least[j];
    }
    return least[0];
  }
  void join(unsigned at, std::uint32_t merge) {
    const unsigned gone = next(at);
    alive_ &= ~(std::uint64_t{1} << gone);
    pairs_[gone] = kNoPair;
    ids_[at] = merges_.results[merge];
    look_again(at);
    const std::uint64_t before = alive_ & ((std::uint64_t{1} << at) - 1);
    if (before != 0) look_again(kMaxBytes - 1 - static_cast<unsigned>(std::countl_zero(before)));
  }
  // The part after that at `place`; kMaxBytes: it is the last.
  unsigned next(unsigned place) const {
    const std::uint64_t after = place == kMaxBytes - 1 ? 0 : alive_ >> (place + 1) << (place + 1);
    return static_cast<unsigned>(std::countr_zero(after));
  }
  void look_again(unsigned place) {
    const unsigned after = next(place);
    pairs_[place] = after == kMaxBytes ? kNoPair : pair_of(merges_.pairs.find(ids_[place], ids_[after]), place);
  }

  const BpeMerges& merges_;
  std::uint64_t alive_ = 0;
  std::size_t padded_ = 0;  // places that are searched: whole vectors
  std::array<TokenId, kMaxBytes> ids_;
  std::array<std::int32_t, kMaxBytes> pairs_;
};

// Parts as a list that is linked both ways, and a heap of its pairs. An entry of the heap is stale when the part at its
// place has another merge by now; the same merge means the same two tokens.
class HeapMerge {
 public:
  HeapMerge(const BpeMerges& merges, MergeRoom& room) : merges_(merges), parts_(room.parts), heap_(room.heap) {}

  std::size_t run(std::string_view piece, TokenId* ids) {
    begin(piece.size(), [&](std::size_t i) { return merges_.byte_ids[static_cast<unsigned char>(piece[i])]; });
    return join_all(ids);
  }
  std::size_t run(std::span<TokenId> ids) {
    begin(ids.size(), [&](std::size_t i) { return ids[i]; });
    return join_all(ids.data());
  }

 private:
  std::size_t join_all(TokenId* ids) {
    while (!heap_.empty()) {
      std::pop_heap(heap_.begin(), heap_.end(), std::greater<>());
      const std::uint64_t least = heap_.back();
      heap_.pop_back();
      const auto at = static_cast<std::uint32_t>(least);
      if (parts_[at].merge == least >> 32) join(at);
    }
    std::size_t count = 0;
    for (std::uint32_t at = 0; at != kNone; at = parts_[at].next) ids[count++] = parts_[at].id;
    return count;
  }
  template <class IdAt>
  void begin(std::size_t parts, IdAt id_at) {
    const auto size = static_cast<std::uint32_t>(parts);
    parts_.resize(size);
    heap_.clear();
    for (std::uint32_t i = 0; i < size; ++i) {
      parts_[i] = {id_at(i), kNone, i == 0 ? kNone : i - 1, i + 1 == size ? kNone : i + 1};
    }
    for (std::uint32_t i = 0; i + 1 < size; ++i) {
      parts_[i].merge = merges_.pairs.find(parts_[i].id, parts_[i + 1].id);
      if (parts_[i].merge != kNone) heap_.push_back(entry(i));
    }
    std::make_heap(heap_.begin(), heap_.end(), std::greater<>());
  }
  std::uint64_t entry(std::uint32_t at) const { return static_cast<std::uint64_t>(parts_[at].merge) << 32 | at; }

  void join(std::uint32_t at) {
    MergeRoom::Part& part = parts_[at];
    MergeRoom::Part& gone = parts_[part.next];
    part.id = merges_.results[part.merge];
    part.next = gone.next;
    gone.merge = kNone;
    if (part.next != kNone) parts_[part.next].previous = at;
    look_again(at);
    if (part.previous != kNone) look_again(part.previous);
  }
  void look_again(std::uint32_t at) {
    MergeRoom::Part& part = parts_[at];
    part.merge = part.next == kNone ? kNone : merges_.pairs.find(part.id, parts_[part.next].id);
    if (part.merge == kNone) return;
    heap_.push_back(entry(at));
    std::push_heap(heap_.begin(), heap_.end(), std::greater<>());
  }

  const BpeMerges& merges_;
  std::vector<MergeRoom::Part>& parts_;
  std::vector<std::uint64_t>& heap_;
};

}  // namespace

void BpeMerges::fill_byte_pairs() {
  byte_pairs.resize(256u * 256u);
  for (std::size_t i = 0; i < byte_pairs.size(); ++i) byte_pairs[i] = pairs.find(byte_ids[i / 256], byte_ids[i % 256]);
}

std::size_t merge_piece(const BpeMerges& merges, std::string_view piece, MergeRoom& room, TokenId* ids) {
  if (piece.size() == 1) {
    ids[0] = merges.byte_ids[static_cast<unsigned char>(piece[0])];
    return 1;
  }
  if (piece.size() <= SearchedMerge::kMaxBytes) return SearchedMerge(merges).run(piece, ids);
  return HeapMerge(merges, room).run(piece, ids);
}

std::size_t merge_ids(const BpeMerges& merges, std::span<TokenId> ids, MergeRoom& room) {
  if (ids.size() <= 1) return ids.size();
  if (ids.size() <= SearchedMerge::kMaxBytes) return SearchedMerge(merges).run(ids);
  return HeapMerge(merges, room).run(ids);
}

void add_pairs_of_ranks(std::span<const TokenId> ranked, const TokenBytes& tokens, BpeMerges& merges) {
  merges.results.assign(ranked.begin(), ranked.end());
  std::vector<std::uint32_t> by_length(ranked.size());
  std::iota(by_length.begin(), by_length.end(), 0u);
  // Shorter ones first: what a token's bytes merge to on the way is shorter than the token.
  std::stable_sort(by_length.begin(), by_length.end(), [&](std::uint32_t a, std::uint32_t b) {
    return tokens[ranked[a]].size() < tokens[ranked[b]].size();
  });
  MergeRoom room;
  std::vector<TokenId> parts(kMaxTokenBytes);
  merges.fill_byte_pairs();
  bool has_pairs_of_bytes = false;
  for (const std::uint32_t number : by_length) {
    if (!has_pairs_of_bytes && tokens[ranked[number]].size() > 2) {
      merges.fill_byte_pairs();
      has_pairs_of_bytes = true;
    }
    // More than two are left of a token that merges never make: it is only ever a whole piece.
    if (merge_piece(merges, tokens[ranked[number]], room, parts.data()) == 2) {
      merges.pairs.insert(parts[0], parts[1], number);
    }
  }
  merges.fill_byte_pairs();
}

}  // namespace atl
