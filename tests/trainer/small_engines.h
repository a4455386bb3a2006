// Engines small enough for a test, what they are given and what they hold.
#pragma once

#include <memory>
#include <random>
#include <vector>

#include "trainer/engine/engine.h"

namespace atl::test {

inline ModelConfig small_model(bool tied) {
  ModelConfig config;
  config.vocab_size = 97;
  config.hidden_size = 32;
  config.intermediate_size = 80;
  config.num_hidden_layers = 6;
  config.num_attention_heads = 4;
  config.num_key_value_heads = 2;
  config.head_dim = 8;
  config.tie_word_embeddings = tied;
  return config;
}

inline std::unique_ptr<Engine> engine_of(const ModelConfig& config, int local_ranks, std::uint64_t seed = 3) {
  EngineOptions options;
  options.local_ranks = local_ranks;
  options.seed = seed;
  return Engine::create(config, options).value();
}

inline std::vector<std::int32_t> tokens_of(std::int64_t sequences, std::int64_t length, unsigned seed = 5) {
  std::mt19937 random(seed);
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(sequences * (length + 1)));
  for (auto& token : tokens) token = static_cast<std::int32_t>(random() % 97);
  return tokens;
}

inline std::vector<float> parameters_of(const Engine& engine) {
  std::vector<float> values(static_cast<std::size_t>(engine.numel()));
  engine.read_parameters(values);
  return values;
}

}  // namespace atl::test
