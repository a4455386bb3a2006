// A Llama model's shape, from a HuggingFace config.json. Plain values without torch: any thread, any program.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "net/base/result.h"

namespace atl {

// Rotary frequencies stretched for longer contexts, as Llama 3.1 does (rope_type "llama3").
struct Llama3RopeScaling {
  double factor = 8.0;
  double low_freq_factor = 1.0;
  double high_freq_factor = 4.0;
  std::int64_t original_max_position_embeddings = 8192;
  bool operator==(const Llama3RopeScaling&) const = default;
};

struct ModelConfig {
  std::int64_t vocab_size = 0;
  std::int64_t hidden_size = 0;
  std::int64_t intermediate_size = 0;  // of the feed-forward block
  std::int64_t num_hidden_layers = 0;
  std::int64_t num_attention_heads = 0;
  std::int64_t num_key_value_heads = 0;  // divides num_attention_heads
  std::int64_t head_dim = 0;             // even; not always hidden_size / num_attention_heads
  std::int64_t max_position_embeddings = 2048;
  double rms_norm_eps = 1e-5;
  double rope_theta = 10000.0;
  std::optional<Llama3RopeScaling> rope_scaling;
  bool tie_word_embeddings = false;
  double initializer_range = 0.02;  // standard deviation of fresh weights
  std::vector<std::int64_t> bos_token_ids;
  std::vector<std::int64_t> eos_token_ids;
  // With which programs fill up shorter texts of several; nothing is computed of it. Some models say -1.
  std::optional<std::int64_t> pad_token_id = {};

  bool operator==(const ModelConfig&) const = default;
  // Sizes positive and bounded, heads divisible; the error names the key.
  Status validate() const;
};

// Of a config.json, and of what lies beside it: those of models of images, sound and quantised weights are nested, and
// whatever is deeper is no model's.
inline constexpr int kMaxConfigDepth = 256;

// The text of a HuggingFace config.json, in the spelling of transformers 4 (rope_theta, rope_scaling) or 5
// (rope_parameters). What Atoll does not compute (biases, another activation, other scalings) is an error, not ignored.
Result<ModelConfig> model_config_from_json(std::string_view text);

// Whether it can learn from a dataset of so many kinds of token, in sequences of so many tokens: what no island of a
// run could do.
Status check_trainable(const ModelConfig& config, std::int64_t vocabulary, std::int64_t sequence_length);

// A config.json that transformers 4 and 5 both open: rope in both spellings, dtype float32.
std::string to_json(const ModelConfig& config);

}  // namespace atl
