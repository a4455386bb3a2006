// Byte-level BPE, as GPT-2 has it and Llama 3, Qwen and tiktoken's encodings since: text is cut into pieces by a
// pattern (split_pattern.h), and the bytes of each piece are merged (bpe_merge.h). The same tokens as tiktoken's and
// HuggingFace's own programs make of the same file (tests/net/tokenizer).
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
#include <vector>

#include "net/tokenizer/added_tokens.h"
#include "net/tokenizer/bpe_merge.h"
#include "net/tokenizer/split_pattern.h"
#include "net/tokenizer/tokenizer.h"
#include "net/tokenizer/word_cache.h"

namespace atl {

// What a file says, checked: each id below tokens.size() <= kMaxVocabulary, all 256 bytes are tokens.
struct BpeVocabulary {
  struct Merge {
    TokenId left = 0, right = 0, result = 0;
  };

  SplitPattern pattern = SplitPattern::kGpt2;
  std::vector<std::string> tokens;  // bytes by id, those of added tokens, too; empty: there is none
  std::array<TokenId, 256> byte_ids{};
  std::vector<TokenId> mergeable;  // what pieces are made of: all but added tokens
  // Either merges by rank, or none and ranks: `mergeable` by rising rank.
  bool has_ranks = false;
  std::vector<Merge> merges;
  bool whole_pieces_first = false;  // a piece that is a token is that token, whatever merges make of it
  bool normal_form_c = false;       // text is brought into it before anything else
  std::vector<AddedToken> added;
};

class BpeTokenizer final : public Tokenizer {
 public:
  // `facts`: without kind, vocab_size and special tokens, which are the vocabulary's. kInvalidArgument where merges
  // contradict.
  static Result<std::unique_ptr<BpeTokenizer>> make(TokenizerFacts facts, BpeVocabulary vocabulary);

  std::unique_ptr<TokenizerScratch> make_scratch() const override;
  void encode(std::string_view text, SpecialText special, TokenizerScratch& scratch,
              std::vector<TokenId>& ids) const override;
  Status decode(std::span<const TokenId> ids, std::string& bytes) const override;
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
  Status add_merges(const BpeVocabulary& vocabulary);
  void add_whole_pieces(const BpeVocabulary& vocabulary);
  // Text without any added token.
  void encode_plain(std::string_view text, Scratch& scratch, std::vector<TokenId>& ids) const;
  void encode_normalized(std::string_view text, SpecialText special, Scratch& scratch, std::vector<TokenId>& ids) const;
  template <SplitPattern kPattern>
  void encode_pieces(std::string_view text, Scratch& scratch, std::vector<TokenId>& ids) const;
  void encode_turn(std::span<const Pending> turn, Scratch& scratch, std::vector<TokenId>& ids) const;
  // Pieces that are not in the cache of short words.
  void encode_new_piece(std::string_view piece, Scratch& scratch, std::vector<TokenId>& ids) const;

  const SplitPattern pattern_;
  const bool normal_form_c_;
  const TokenBytes tokens_;
  BpeMerges merges_;
  PieceTable whole_;  // pieces that are one token
  const AddedTokens added_, added_normalized_;
};

}  // namespace atl
