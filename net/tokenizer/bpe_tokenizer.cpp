#include "net/tokenizer/bpe_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>

#include "net/tokenizer/split_scanner.h"
#include "net/tokenizer/utf8_text.h"

namespace atl {
namespace {

constexpr std::string_view kWordBegin = "\xE2\x96\x81";  // U+2581, which stands for a space in tokens of characters

// A normalized one is found as the normalizer makes it, which whoever read the file has tried.
std::vector<AddedToken> added_of(const BpeVocabulary& vocabulary, bool normalized) {
  std::vector<AddedToken> added;
  std::copy_if(vocabulary.added.begin(), vocabulary.added.end(), std::back_inserter(added),
               [&](const AddedToken& token) { return token.normalized == normalized; });
  if (!normalized) return added;
  RegexRoom room;
  for (AddedToken& token : added) {
    std::string changed;
    token.text = std::string(vocabulary.normalizer.apply(token.text, room, changed).value());
  }
  return added;
}

std::optional<TokenBytes> texts_of(const BpeVocabulary& vocabulary) {
  if (vocabulary.decoder.is_empty()) return std::nullopt;
  std::vector<std::string> texts = vocabulary.tokens;
  for (const TokenId id : vocabulary.mergeable) texts[id] = vocabulary.decoder.text_of(texts[id], false);
  for (const bool normalized : {false, true}) {
    for (const AddedToken& token : added_of(vocabulary, normalized)) {
      texts[token.id] = token.special ? vocabulary.tokens[token.id] : vocabulary.decoder.text_of(token.text, false);
    }
  }
  return TokenBytes(texts);
}

std::optional<BpeSymbols> symbols_of(const BpeVocabulary& vocabulary, const TokenBytes& tokens) {
  if (vocabulary.alphabet.of_bytes && vocabulary.alphabet.has_all_bytes()) return std::nullopt;
  std::vector<TokenId> characters;
  for (const TokenId id : vocabulary.mergeable) {
    const TextChar first = char_at(tokens[id], 0);
    if (first.code_point != kNoCodePoint && first.bytes == tokens[id].size()) characters.push_back(id);
  }
  return BpeSymbols(vocabulary.alphabet, tokens, characters);
}

std::string kind_of(const BpeVocabulary& vocabulary) {
  if (!vocabulary.pre_tokenizer) return std::string(split_pattern_name(vocabulary.pattern));
  return vocabulary.alphabet.of_bytes ? "byte_level_bpe" : "bpe";
}

TokenizerFacts complete(TokenizerFacts facts, const BpeVocabulary& vocabulary) {
  facts.kind = kind_of(vocabulary);
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
  PreTokenizerRoom cut;
};

std::unique_ptr<BpeTokenizer> BpeTokenizer::make(TokenizerFacts facts, BpeVocabulary vocabulary) {
  facts = complete(std::move(facts), vocabulary);
  std::unique_ptr<BpeTokenizer> made(new BpeTokenizer(std::move(facts), vocabulary));
  made->add_merges(vocabulary);
  made->add_whole_pieces(vocabulary);
  return made;
}

BpeTokenizer::BpeTokenizer(TokenizerFacts facts, const BpeVocabulary& vocabulary)
    : Tokenizer(std::move(facts)),
      pattern_(vocabulary.pattern),
      pre_tokenizer_(vocabulary.pre_tokenizer),
      normalizer_(vocabulary.normalizer),
      tokens_(vocabulary.tokens),
      decoder_(vocabulary.decoder),
      texts_(texts_of(vocabulary)),
      merges_(std::max(vocabulary.merges.size(), vocabulary.mergeable.size())),
      symbols_(symbols_of(vocabulary, tokens_)),
      whole_(tokens_, vocabulary.mergeable.size()),
      added_(added_of(vocabulary, false)),
      added_normalized_(added_of(vocabulary, true)) {}

void BpeTokenizer::add_merges(const BpeVocabulary& vocabulary) {
  merges_.byte_ids = vocabulary.alphabet.byte_ids;
  if (vocabulary.has_ranks) {
    std::vector<TokenId> ranked;
    std::copy_if(vocabulary.mergeable.begin(), vocabulary.mergeable.end(), std::back_inserter(ranked),
                 [&](TokenId id) { return tokens_[id].size() > 1; });
    add_pairs_of_ranks(ranked, tokens_, merges_);
    return;
  }
  merges_.results.resize(vocabulary.merges.size());
  words_apart_ = !vocabulary.alphabet.of_bytes && !vocabulary.whole_pieces_first;
  for (std::size_t number = vocabulary.merges.size(); number-- > 0;) {
    const BpeVocabulary::Merge& merge = vocabulary.merges[number];
    merges_.results[number] = merge.result;
    merges_.pairs.insert(merge.left, merge.right, static_cast<std::uint32_t>(number));
    if (tokens_[merge.right].starts_with(kWordBegin) && !tokens_[merge.left].ends_with(kWordBegin))
      words_apart_ = false;
  }
  // An unknown character and one behind the word's begin may be one.
  std::vector<TokenId> begin;
  if (symbols_) symbols_->append(kWordBegin, begin);
  if (begin.size() != 1 || tokens_[begin.front()] != kWordBegin) words_apart_ = false;
  if (!symbols_) merges_.fill_byte_pairs();
}

void BpeTokenizer::add_whole_pieces(const BpeVocabulary& vocabulary) {
  Scratch scratch;
  for (const TokenId id : vocabulary.mergeable) {
    // Where merges alone count, only what they lead to: then the look-up saves their time and changes nothing.
    const auto leads_to_it = [&] {
      const auto ids = merged(tokens_[id], scratch);
      return ids.size() == 1 && ids.front() == id;
    };
    if (vocabulary.whole_pieces_first || leads_to_it()) whole_.insert(id);
  }
}

std::span<const TokenId> BpeTokenizer::merged(std::string_view piece, Scratch& scratch) const {
  std::vector<TokenId>& ids = scratch.merged;
  if (symbols_) {
    ids.clear();
    symbols_->append(piece, ids);
    return std::span(ids).first(merge_ids(merges_, ids, scratch.room));
  }
  ids.resize(std::max(ids.size(), piece.size()));
  return std::span(ids).first(merge_piece(merges_, piece, scratch.room, ids.data()));
}

std::unique_ptr<TokenizerScratch> BpeTokenizer::make_scratch() const { return std::make_unique<Scratch>(); }

Status BpeTokenizer::encode(std::string_view text, SpecialText special, TokenizerScratch& scratch,
                            std::vector<TokenId>& ids) const {
  auto& own = static_cast<Scratch&>(scratch);
  return added_.for_each_part(
      text, special, [&](TokenId id) { ids.push_back(id); },
      [&](std::string_view part, bool at_begin) { return encode_normalized(part, at_begin, special, own, ids); });
}

Status BpeTokenizer::encode_normalized(std::string_view given, bool at_begin, SpecialText special, Scratch& scratch,
                                       std::vector<TokenId>& ids) const {
  std::string changed;
  ATOLL_ASSIGN_OR_RETURN(const std::string_view text, normalizer_.apply(given, scratch.cut.regex, changed));
  return added_normalized_.for_each_part(
      text, special, [&](TokenId id) { ids.push_back(id); },
      [&](std::string_view part, bool part_at_begin) {
        return encode_plain(part, at_begin && part_at_begin, scratch, ids);
      });
}

Status BpeTokenizer::encode_plain(std::string_view text, bool at_begin, Scratch& scratch,
                                  std::vector<TokenId>& ids) const {
  if (pre_tokenizer_) return encode_cut(text, at_begin, scratch, ids);
  switch (pattern_) {
    case SplitPattern::kGpt2: encode_pieces<SplitPattern::kGpt2>(text, scratch, ids); break;
    case SplitPattern::kCl100kBase: encode_pieces<SplitPattern::kCl100kBase>(text, scratch, ids); break;
    case SplitPattern::kLlama3: encode_pieces<SplitPattern::kLlama3>(text, scratch, ids); break;
    case SplitPattern::kQwen2: encode_pieces<SplitPattern::kQwen2>(text, scratch, ids); break;
    case SplitPattern::kO200kBase: encode_pieces<SplitPattern::kO200kBase>(text, scratch, ids); break;
  }
  return ok_status();
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

Status BpeTokenizer::encode_cut(std::string_view text, bool at_begin, Scratch& scratch,
                                std::vector<TokenId>& ids) const {
  std::array<Pending, kTurn> turn;
  std::size_t pieces = 0;
  ATOLL_ASSIGN_OR_RETURN(const auto cut, pre_tokenizer_->cut(text, at_begin, scratch.cut));
  if (cut.empty()) return ok_status();
  const auto* const end = reinterpret_cast<const std::uint8_t*>(cut.back().data() + cut.back().size());
  const auto add = [&](std::string_view piece) {
    Pending& pending = turn[pieces++];
    pending.at = reinterpret_cast<const std::uint8_t*>(piece.data());
    pending.bytes = static_cast<std::uint32_t>(piece.size());
    if (piece.size() <= ShortPiece::kMaxBytes) {
      pending.key = ShortPiece::of(pending.at, piece.size(), end);
      pending.set = scratch.short_words.set_of(pending.key);
      scratch.short_words.prefetch(pending.set);
    }
    if (pieces < kTurn) return;
    encode_turn(turn, scratch, ids);
    pieces = 0;
  };
  for (std::string_view piece : cut) {
    while (words_apart_ && !piece.empty()) {  // those of a piece, each with what it begins with
      std::size_t to = 0;
      while (piece.substr(to).starts_with(kWordBegin)) to += kWordBegin.size();
      to = std::min(piece.find(kWordBegin, to), piece.size());
      add(piece.substr(0, to));
      piece.remove_prefix(to);
    }
    if (!piece.empty()) add(piece);
  }
  encode_turn(std::span(turn).first(pieces), scratch, ids);
  return ok_status();
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
  const bool is_kept = piece.size() <= LongWordCache::kMaxBytes;
  const std::uint64_t hash = is_kept ? scratch.long_words.hash_of(piece) : 0;
  if (is_kept && scratch.long_words.find(piece, hash, ids)) return;
  const auto found = merged(piece, scratch);
  ids.insert(ids.end(), found.begin(), found.end());
  if (is_kept) scratch.long_words.keep(piece, hash, found);
}

Status BpeTokenizer::decode(std::span<const TokenId> ids, std::string& bytes) const {
  for (const TokenId id : ids) {
    if (id >= tokens_.size() || tokens_[id].empty()) return no_such_token(id);
  }
  const TokenBytes& texts = texts_ ? *texts_ : tokens_;
  std::size_t size = 0;
  for (const TokenId id : ids) size += texts[id].size();
  std::string text;
  text.reserve(size);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const bool is_changed = i == 0 && decoder_.changes_first() && !is_special(ids[i]);
    if (is_changed) {
      text += decoder_.text_of(tokens_[ids[i]], true);
    } else {
      text += texts[ids[i]];
    }
  }
  bytes += decoder_.finish(std::move(text));
  return ok_status();
}

std::string BpeTokenizer::within_text(TokenId id) const {
  if (id >= tokens_.size() || is_special(id)) return {};
  return std::string((texts_ ? *texts_ : tokens_)[id]);
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
