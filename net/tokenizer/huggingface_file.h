// HuggingFace's tokenizer.json, of models of BPE: byte-level (GPT-2, Llama 3, Qwen) and of characters (Llama 2, Gemma).
// Each field that changes what tokens are is read, and what is not supported is refused by its name: a tokenizer that
// almost fits would train a model on other tokens than its authors'. Pure functions; any thread.
#pragma once

#include <string_view>

#include "net/tokenizer/bpe_tokenizer.h"

namespace atl {

bool looks_like_huggingface(std::string_view content);  // an object of JSON

// `facts`: gets what the post-processor says of a token that texts begin with.
Result<BpeVocabulary> read_huggingface(std::string_view content, TokenizerFacts& facts);

}  // namespace atl
