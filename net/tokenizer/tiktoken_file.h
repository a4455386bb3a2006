// Files of tiktoken: a line for each token, its bytes in base64, a space, its rank, which is also its id. Llama 3's
// tokenizer.model is one. The pattern and the special tokens stand in the programs that read them: named encodings,
// here as there. Pure functions; any thread.
#pragma once

#include <optional>
#include <string_view>

#include "net/tokenizer/bpe_tokenizer.h"

namespace atl {

// The first bytes of any text are such a line's.
bool looks_like_tiktoken(std::string_view content);

// `pattern`: which encoding it is; without it, the one that has as many tokens, which all known ones differ in.
// kInvalidArgument, with the line, when it is none.
Result<BpeVocabulary> read_tiktoken(std::string_view content, std::optional<SplitPattern> pattern);

}  // namespace atl
