// BPE: byte-level, as GPT-2 has it and Llama 3, Qwen and tiktoken's encodings since, or of characters, as Llama 2 and
// Gemma have it. Text is changed (normalizer.h) and cut into pieces, by a scanner (split_pattern.h) or by whatever the
// file says (pre_tokenizer.h), and the bytes or characters of each piece are merged (bpe_merge.h, bpe_symbols.h). The
// same tokens as tiktoken's and HuggingFace's own programs make of the same file (tests/net/tokenizer).
//
// Most of the time goes to words that were met before: those are looked up in the thread's cache (word_cache.h) by
// their bytes as two words, and their tokens copied. A piece that is not there may be a token as a whole; only then its
// bytes are merged.
//
// What others do: tiktoken runs a regular expression engine and looks up whole pieces, without a cache; HuggingFace's
// tokenizers keep words in a cache that all threads share; github/rust-gems' bpe finds tokens of a whole text by
// backtracking, without pieces, for which its vocabulary must be closed under merges. None of their code is here.
//
// Made by load_tokenizer.h; any number of threads, each with a scratch.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "net/tokenizer/added_tokens.h"
#include "net/tokenizer/bpe_merge.h"
#include "net/tokenizer/bpe_symbols.h"
#include "net/tokenizer/normalizer.h"
#include "net/tokenizer/pre_tokenizer.h"
#include "net/tokenizer/split_pattern.h"
#include "net/tokenizer/token_decoder.h"
#include "net/tokenizer/tokenizer.h"
#include "net/tokenizer/word_cache.h"

namespace atl {

// What a file says, checked: each id below tokens.size() <= kMaxVocabulary.
struct BpeVocabulary {
  struct Merge {
    TokenId left = 0, right = 0, result = 0;
  };

  Normalizer normalizer;
  // What cuts text: the scanner of `pattern`, or where there is one the pre-tokenizer.
  SplitPattern pattern = SplitPattern::kGpt2;
  std::optional<PreTokenizer> pre_tokenizer;
  std::vector<std::string> tokens;  // as pieces have them, those of added tokens, too, by id; empty: there is none
  BpeAlphabet alphabet;
  std::vector<TokenId> mergeable;  // what pieces are made of: all but added tokens
  // Either merges by rank, or none and ranks: `mergeable` by rising rank. Of merges of the same two the last counts.
  bool has_ranks = false;
  std::vector<Merge> merges;
  bool whole_pieces_first = false;  // a piece that is a token is that token, whatever merges make of it
  std::vector<AddedToken> added;
  TokenDecoder decoder;  // without steps: tokens are their bytes
};

class BpeTokenizer final : public Tokenizer {
 public:
  // `facts`: without kind, vocab_size and special tokens, which are the vocabulary's.
  static std::unique_ptr<BpeTokenizer> make(TokenizerFacts facts, BpeVocabulary vocabulary);

  std::unique_ptr<TokenizerScratch> make_scratch() const override;
  Status encode(std::string_view text, SpecialText special, TokenizerScratch& scratch,
                std::vector<TokenId>& ids) const override;
  Status decode(std::span<const TokenId> ids, std::string& bytes) const override;
  std::string within_text(TokenId id) const override;
  std::vector<TokenId> merge_order() const override;

 private:
  class Scratch;
  // A piece that is cut and not yet looked up.
  struct Pending {
    ShortPiece key;  // of up to ShortPiece::kMaxBytes bytes, as `set`
    const std::uint8_t* at;
    std::uint32_t bytes, set;
  };
  static constexpr std::size_t kTurn = 32;

  BpeTokenizer(TokenizerFacts facts, const BpeVocabulary& vocabulary);
  void add_merges(const BpeVocabulary& vocabulary);
  void add_whole_pieces(const BpeVocabulary& vocabulary);
  // Text without any added token. `at_begin`: of all that is encoded, nothing stands before it.
  Status encode_plain(std::string_view text, bool at_begin, Scratch& scratch, std::vector<TokenId>& ids) const;
  Status encode_normalized(std::string_view text, bool at_begin, SpecialText special, Scratch& scratch,
                           std::vector<TokenId>& ids) const;
  template <SplitPattern kPattern>
  void encode_pieces(std::string_view text, Scratch& scratch, std::vector<TokenId>& ids) const;
  Status encode_cut(std::string_view text, bool at_begin, Scratch& scratch, std::vector<TokenId>& ids) const;
  void encode_turn(std::span<const Pending> turn, Scratch& scratch, std::vector<TokenId>& ids) const;
  // Pieces that are not in the cache of short words.
  void encode_new_piece(std::string_view piece, Scratch& scratch, std::vector<TokenId>& ids) const;
  // The tokens that it is merged to; in the scratch.
  std::span<const TokenId> merged(std::string_view piece, Scratch& scratch) const;

  const SplitPattern pattern_;
  const std::optional<PreTokenizer> pre_tokenizer_;
  const Normalizer normalizer_;
  const TokenBytes tokens_;
  const TokenDecoder decoder_;
  const std::optional<TokenBytes> texts_;  // what each adds to text, where that is not what tokens_ has
  BpeMerges merges_;
  const std::optional<BpeSymbols> symbols_;  // none: a piece begins as a token a byte
  bool words_apart_ = false;                 // no merge joins what stands before a word's begin (U+2581) and that
  PieceTable whole_;                         // pieces that are one token
  const AddedTokens added_, added_normalized_;
};

}  // namespace atl
