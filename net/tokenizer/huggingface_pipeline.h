// What stands around the model of a tokenizer.json: normalizer, pre-tokenizer, decoder. Each of their kinds that
// tokenizers with BPE have is read; others are refused by their names. Pure functions; any thread.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "net/tokenizer/bpe_tokenizer.h"

namespace atl::huggingface {

Status read_normalizer(const nlohmann::json& root, BpeVocabulary& vocabulary);
// Also says whether pieces are bytes (alphabet.of_bytes): where ByteLevel is the last step.
Status read_pre_tokenizer(const nlohmann::json& root, BpeVocabulary& vocabulary);
// After the pre-tokenizer: the decoder of one that ends in ByteLevel is empty, as tokens are their bytes then.
Status read_decoder(const nlohmann::json& root, BpeVocabulary& vocabulary);

}  // namespace atl::huggingface
