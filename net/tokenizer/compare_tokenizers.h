// Whether two tokenizers are one, whatever their files look like: a tokenizer.json that was written again, the ranks or
// the model of SentencePiece that it was made of. Compared are, of each number, the text or the special token that it
// is; the order in which merges are applied; and the tokens of texts that hold every token of the vocabulary, alone and
// beside others, and what patterns and normal forms differ in. Takes as long as encoding a few megabytes; any thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "net/tokenizer/tokenizer.h"

namespace atl {

// A tokenizer and what a person calls it, "the dataset's".
struct NamedTokenizer {
  const Tokenizer& tokenizer;
  std::string_view name;
};

struct TokenizerComparison {
  // The first that was found, as a part of a sentence; empty: the same text has the same tokens.
  std::string difference;
  // Special tokens at numbers that are free in the other one: those were added, and change no other token.
  std::vector<std::string> only_in_one, only_in_other;
};

TokenizerComparison compare_tokenizers(const NamedTokenizer& one, const NamedTokenizer& other);

}  // namespace atl
