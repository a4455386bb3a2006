#include "net/tokenizer/bpe_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>

#include "net/tokenizer/normal_form.h"
#include "net/tokenizer/split_scanner.h"

namespace atl {
namespace {

std::vector<AddedToken> added_of(const BpeVocabulary& vocabulary, bool normalized) {
  std::vector<AddedToken> added;
  std::copy_if(vocabulary.added.begin(), vocabulary.added.end(), std::back_inserter(added),
               [&](const AddedToken& token) { return token.normalized == normalized; });
  return added;
}

TokenizerFacts complete(TokenizerFacts facts, const BpeVocabulary& vocabulary) {
  facts.kind = split_pattern_name(vocabulary.pattern);
  facts.vocab_size = static_cast<std::uint32_t>(vocabulary.tokens.size());
  for (const AddedToken& token : vocabulary.added) {
    if (token.special) facts.special_tokens.push_back({token.text, token.id});
  }
  std::sort(facts.special_tokens.begin(), facts.special_tokens.end(),
            [](const SpecialToken& a, const SpecialToken& b) { return a.id < b.id; });
  const auto begin_of_text = facts.begin_of_text;
  name_text_ends(facts);
  if (begin_of_text) facts.begin_of_text = begin_of_text;  // the file says which
  return facts;
}

}  // namespace

class BpeTokenizer::Scratch final : public TokenizerScratch {
 public:
  ShortWordCache short_words;
  LongWordCache long_words;
  MergeRoom room;
  std::vector<TokenId> merged;
};

Result<std::unique_ptr<BpeTokenizer>> BpeTokenizer::make(TokenizerFacts facts, BpeVocabulary vocabulary) {
  facts = complete(std::move(facts), vocabulary);
  std::unique_ptr<BpeTokenizer> made(new BpeTokenizer(std::move(facts), vocabulary));
  ATOLL_RETURN_IF_ERROR(made->add_merges(vocabulary));
  made->add_whole_pieces(vocabulary);
  return made;
}

BpeTokenizer::BpeTokenizer(TokenizerFacts facts, const BpeVocabulary& vocabulary)
    : Tokenizer(std::move(facts)),
      pattern_(vocabulary.pattern),
      normal_form_c_(vocabulary.normal_form_c),
      tokens_(vocabulary.tokens),
      merges_(std::max(vocabulary.merges.size(), vocabulary.mergeable.size())),
      whole_(tokens_, vocabulary.mergeable.size()),
      added_(added_of(vocabulary, false), tokens_),
      added_normalized_(added_of(vocabulary, true), tokens_) {}

Status BpeTokenizer::add_merges(const BpeVocabulary& vocabulary) {
  merges_.byte_ids = vocabulary.byte_ids;
  if (vocabulary.has_ranks) {
    std::vector<TokenId> ranked;
    std::copy_if(vocabulary.mergeable.begin(), vocabulary.mergeable.end(), std::back_inserter(ranked),
                 [&](TokenId id) { return tokens_[id].size() > 1; });
    add_pairs_of_ranks(ranked, tokens_, merges_);
    return ok_status();
  }
  merges_.results.reserve(vocabulary.merges.size());
  for (const BpeVocabulary::Merge& merge : vocabulary.merges) {
    const auto number = static_cast<std::uint32_t>(merges_.results.size());
    if (!merges_.pairs.insert(merge.left, merge.right, number)) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("merge {} joins the tokens {} and {}, as one before it does; get the file again", number,
                               merge.left, merge.right)};
    }
    merges_.results.push_back(merge.result);
  }
  merges_.fill_byte_pairs();
  return ok_status();
}

void BpeTokenizer::add_whole_pieces(const BpeVocabulary& vocabulary) {
  MergeRoom room;
  std::vector<TokenId> ids(kMaxTokenBytes);
  for (const TokenId id : vocabulary.mergeable) {
    const std::string_view bytes = tokens_[id];
    // Where merges alone count, only what they lead to: then the look-up saves their time and changes nothing.
    const bool is_found =
        vocabulary.whole_pieces_first || (merge_piece(merges_, bytes, room, ids.data()) == 1 && ids[0] == id);
    if (is_found) whole_.insert(id);
  }
}

std::unique_ptr<TokenizerScratch> BpeTokenizer::make_scratch() const { return std::make_unique<Scratch>(); }

void BpeTokenizer::encode(std::string_view text, SpecialText special, TokenizerScratch& scratch,
                          std::vector<TokenId>& ids) const {
  auto& own = static_cast<Scratch&>(scratch);
  std::size_t from = 0;
  while (const auto found = added_.find(text, from, special)) {
    encode_normalized(text.substr(from, found->at - from), special, own, ids);
    ids.push_back(found->id);
    from = found->at + found->bytes;
  }
  encode_normalized(text.substr(from), special, own, ids);
}

void BpeTokenizer::encode_normalized(std::string_view given, SpecialText special, Scratch& scratch,
                                     std::vector<TokenId>& ids) const {
  std::string normal;
  std::string_view text = given;
  if (normal_form_c_ && !is_surely_normal(given)) {
    normal = to_normal_form_c(given);
    text = normal;
  }
  std::size_t from = 0;
  while (const auto found = added_normalized_.find(text, from, special)) {
    encode_plain(text.substr(from, found->at - from), scratch, ids);
    ids.push_back(found->id);
    from = found->at + found->bytes;
  }
  encode_plain(text.substr(from), scratch, ids);
}

void BpeTokenizer::encode_plain(std::string_view text, Scratch& scratch, std::vector<TokenId>& ids) const {
  switch (pattern_) {
    case SplitPattern::kGpt2: return encode_pieces<SplitPattern::kGpt2>(text, scratch, ids);
    case SplitPattern::kCl100kBase: return encode_pieces<SplitPattern::kCl100kBase>(text, scratch, ids);
    case SplitPattern::kLlama3: return encode_pieces<SplitPattern::kLlama3>(text, scratch, ids);
    case SplitPattern::kQwen2: return encode_pieces<SplitPattern::kQwen2>(text, scratch, ids);
    case SplitPattern::kO200kBase: return encode_pieces<SplitPattern::kO200kBase>(text, scratch, ids);
  }
}

// In turns: pieces are cut and their entries asked of memory, then looked up, when these have come; one by one, each
// would be waited for.
template <SplitPattern kPattern>
void BpeTokenizer::encode_pieces(std::string_view text, Scratch& scratch, std::vector<TokenId>& ids) const {
  std::array<Pending, kTurn> turn;
  const auto* at = reinterpret_cast<const std::uint8_t*>(text.data());
  const std::uint8_t* const end = at + text.size();
  const SplitScanner scanner(end);
  while (at < end) {
    std::size_t pieces = 0;
    for (; pieces < kTurn && at < end; ++pieces) {
      const std::uint8_t* const next = scanner.piece_end<kPattern>(at);
      const auto bytes = static_cast<std::uint32_t>(next - at);
      Pending& pending = turn[pieces];
      pending.at = at;
      pending.bytes = bytes;
      if (bytes <= ShortPiece::kMaxBytes) {
        pending.key = ShortPiece::of(at, bytes, end);
        pending.set = scratch.short_words.set_of(pending.key);
        scratch.short_words.prefetch(pending.set);
      }
      at = next;
    }
    encode_turn(std::span(turn).first(pieces), scratch, ids);
  }
}

void BpeTokenizer::encode_turn(std::span<const Pending> turn, Scratch& scratch, std::vector<TokenId>& ids) const {
  std::array<TokenId, kTurn * ShortWordCache::kMaxTokens + 1> batch;  // each entry is copied whole, with its count
  std::size_t count = 0;
  const auto flush = [&] {
    ids.insert(ids.end(), batch.begin(), batch.begin() + static_cast<std::ptrdiff_t>(count));
    count = 0;
  };
  for (const Pending& pending : turn) {
    const bool is_short = pending.bytes <= ShortPiece::kMaxBytes;
    if (is_short) [[likely]] {
      if (const auto* const known = scratch.short_words.find(pending.key, pending.set)) [[likely]] {
        static_assert(sizeof(known->tokens) + sizeof(known->count) == 16);
        std::memcpy(batch.data() + count, known->tokens.data(), 16);
        count += known->count;
        continue;
      }
    }
    flush();
    const std::size_t had = ids.size();
    encode_new_piece({reinterpret_cast<const char*>(pending.at), pending.bytes}, scratch, ids);
    if (is_short && ids.size() - had <= ShortWordCache::kMaxTokens) {
      scratch.short_words.keep(pending.key, pending.set, std::span(ids).subspan(had));
    }
  }
  flush();
}

void BpeTokenizer::encode_new_piece(std::string_view piece, Scratch& scratch, std::vector<TokenId>& ids) const {
  if (const TokenId whole = whole_.find(piece); whole != PieceTable::kNoToken) return ids.push_back(whole);
  if (piece.size() > LongWordCache::kMaxBytes) {
    scratch.merged.resize(std::max(scratch.merged.size(), piece.size()));
    const std::size_t count = merge_piece(merges_, piece, scratch.room, scratch.merged.data());
    ids.insert(ids.end(), scratch.merged.begin(), scratch.merged.begin() + static_cast<std::ptrdiff_t>(count));
    return;
  }
  const std::uint64_t hash = scratch.long_words.hash_of(piece);
  if (scratch.long_words.find(piece, hash, ids)) return;
  std::array<TokenId, LongWordCache::kMaxBytes> merged;
  const std::size_t count = merge_piece(merges_, piece, scratch.room, merged.data());
  ids.insert(ids.end(), merged.begin(), merged.begin() + static_cast<std::ptrdiff_t>(count));
  scratch.long_words.keep(piece, hash, std::span(merged).first(count));
}

Status BpeTokenizer::decode(std::span<const TokenId> ids, std::string& bytes) const {
  std::size_t size = 0;
  for (const TokenId id : ids) {
    if (id >= tokens_.size() || tokens_[id].empty()) return no_such_token(id);
    size += tokens_[id].size();
  }
  bytes.reserve(bytes.size() + size);
  for (const TokenId id : ids) bytes += tokens_[id];
  return ok_status();
}

std::vector<TokenId> BpeTokenizer::merge_order() const {
  std::vector<TokenId> order;
  std::vector<bool> seen(tokens_.size());
  for (const TokenId id : merges_.results) {
    if (!seen[id]) order.push_back(id);
    seen[id] = true;
  }
  return order;
}

}  // namespace atl
