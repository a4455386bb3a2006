// Log-likelihoods of continuations given contexts, as lm-evaluation-harness (v0.4, models/huggingface.py) has them for
// HuggingFace's causal models: the same tokens, the same truncation, so that its published figures are comparable. One
// thread.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "net/base/result.h"
#include "trainer/engine/inference_engine.h"
#include "trainer/evaluate/model_text.h"

namespace atl {

struct TokenPair {
  std::vector<std::int32_t> context;       // at least one token
  std::vector<std::int32_t> continuation;  // at least one token
};

// White space at the context's end belongs to the continuation; both are tokenised as one text, and the continuation is
// what follows as many tokens as the context alone has. An empty context is the prefix token. kInvalidArgument: nothing
// is left as a continuation.
Result<TokenPair> encode_pair(ModelText& text, std::string_view context, std::string_view continuation);

// A text in windows of `max_length` tokens, of which each token is predicted once: the first after the prefix token,
// each later one after the token before it, the last window reaching back as far as it may.
Result<std::vector<TokenPair>> rolling_windows(ModelText& text, std::string_view whole, std::int64_t max_length);

struct LogLikelihood {
  double sum = 0;       // over the continuation's tokens, natural logarithm
  bool greedy = false;  // each of them is the likeliest
};

// Only the last max_length + 1 tokens of a pair count, and the last is only predicted. Pairs that begin alike, as the
// choices of a question do, share what their beginnings cost. max_length: at most the engine's capacity.
// `progress(done)`: how many of the pairs are computed; may be empty. kInvalidArgument: a continuation is longer than
// max_length.
Result<std::vector<LogLikelihood>> log_likelihoods(InferenceEngine& engine, std::span<const TokenPair> pairs,
                                                   std::int64_t max_length,
                                                   const std::function<void(std::size_t done)>& progress = {});

// Tokens that a slot must hold for these pairs.
std::int64_t longest_input(std::span<const TokenPair> pairs, std::int64_t max_length);

}  // namespace atl
