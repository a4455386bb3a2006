// A small byte-level model that is asked questions, the same parameters on every machine; and where the questions lie.
#pragma once

#include <algorithm>
#include <filesystem>
#include <limits>
#include <memory>
#include <vector>

#include "net/model/initialise.h"
#include "net/tokenizer/byte_tokenizer.h"
#include "trainer/engine/inference_engine.h"
#include "trainer/evaluate/model_text.h"

namespace atl::test {

inline constexpr const char* kTaskNames[] = {"endings", "science", "letters", "pronouns", "last_word", "pages"};

inline ModelConfig asked_config() {
  ModelConfig config;
  config.vocab_size = 257;
  config.hidden_size = 48;
  config.intermediate_size = 96;
  config.num_hidden_layers = 2;
  config.num_attention_heads = 4;
  config.num_key_value_heads = 2;
  config.head_dim = 12;
  config.max_position_embeddings = 160;
  config.initializer_range = 0.3;  // likelihoods that differ
  config.eos_token_ids = {256};
  return config;
}

inline std::vector<float> asked_parameters() { return fresh_parameters(asked_config(), 11); }

inline std::unique_ptr<InferenceEngine> engine_of(const std::vector<float>& parameters, std::int64_t slots,
                                                  std::int64_t capacity) {
  const InferenceOptions options{.slots = slots, .capacity = capacity, .most_rows = 100, .compute_threads = 2};
  return InferenceEngine::create(asked_config(), options,
                                 [&](std::int64_t first, std::span<float> values) {
                                   std::copy_n(parameters.begin() + first, values.size(), values.begin());
                                 })
      .value();
}

inline std::unique_ptr<InferenceEngine> asked_engine(std::int64_t slots, std::int64_t capacity) {
  return engine_of(asked_parameters(), slots, capacity);
}

// One whose weights are damaged.
inline std::unique_ptr<InferenceEngine> damaged_engine(std::int64_t slots, std::int64_t capacity) {
  std::vector<float> parameters = asked_parameters();
  parameters.back() = std::numeric_limits<float>::quiet_NaN();
  return engine_of(parameters, slots, capacity);
}

inline ModelText byte_text(std::span<const std::int64_t> ends = {}) {
  return ModelText::make(std::make_unique<ByteTokenizer>(), asked_config().vocab_size, ends).value();
}

inline std::filesystem::path task_file(const std::string& name) {
  return std::filesystem::path(ATOLL_TEST_DATA_DIR) / "eval" / (name + ".jsonl");
}

}  // namespace atl::test
