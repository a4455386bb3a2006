// Models of SentencePiece (Llama 2, Mistral 7B, Gemma), by its own library. Such a model may change text before it cuts
// it: white space is drawn together, characters are brought into a normal form, as its trainer chose; so decode() leads
// back to text like it. Any thread.
#pragma once

#include <memory>
#include <string_view>

#include "net/tokenizer/tokenizer.h"

namespace atl {

inline constexpr const char* kSentencePieceKind = "sentencepiece";

bool looks_like_sentencepiece(std::string_view content);

// `facts`: with sha256. Its control pieces (<s>, </s>) are the special tokens; texts begin with <s> where there is one,
// as Llama's do. kInvalidArgument: the file is damaged, or this build has no SentencePiece.
Result<std::unique_ptr<Tokenizer>> read_sentencepiece(std::string_view content, TokenizerFacts facts);

}  // namespace atl
