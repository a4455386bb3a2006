#include <fmt/format.h>
#include <fmt/ranges.h>

#include "trainer/model/config.h"

namespace atl {
namespace {

// Bytes and one end-of-text token; small enough that a CPU core learns English from it in minutes.
ModelConfig demo() {
  ModelConfig config;
  config.vocab_size = 257;
  config.hidden_size = 128;
  config.intermediate_size = 384;
  config.num_hidden_layers = 4;
  config.num_attention_heads = 4;
  config.num_key_value_heads = 2;
  config.head_dim = 32;
  config.max_position_embeddings = 1024;
  config.tie_word_embeddings = true;
  config.eos_token_ids = {256};
  return config;
}

ModelConfig of_150m() {
  ModelConfig config;
  config.vocab_size = 32000;
  config.hidden_size = 1024;
  config.intermediate_size = 2304;
  config.num_hidden_layers = 12;
  config.num_attention_heads = 16;
  config.num_key_value_heads = 4;
  config.head_dim = 64;
  config.tie_word_embeddings = true;
  config.bos_token_ids = {1};
  config.eos_token_ids = {2};
  return config;
}

ModelConfig of_llama3() {
  ModelConfig config;
  config.vocab_size = 128256;
  config.num_attention_heads = 32;
  config.num_key_value_heads = 8;
  config.max_position_embeddings = 8192;
  config.rope_theta = 500000.0;
  config.bos_token_ids = {128000};
  config.eos_token_ids = {128001};
  return config;
}

ModelConfig of_1b() {
  ModelConfig config = of_llama3();
  config.hidden_size = 2048;
  config.intermediate_size = 8192;
  config.num_hidden_layers = 16;
  config.head_dim = 64;
  config.tie_word_embeddings = true;
  return config;
}

ModelConfig of_10b() {
  ModelConfig config = of_llama3();
  config.hidden_size = 4096;
  config.intermediate_size = 14336;
  config.num_hidden_layers = 42;
  config.head_dim = 128;
  return config;
}

}  // namespace

std::vector<std::string_view> model_preset_names() { return {"demo", "150m", "1b", "10b"}; }

Result<ModelConfig> model_preset(std::string_view name) {
  if (name == "demo") return demo();
  if (name == "150m") return of_150m();
  if (name == "1b") return of_1b();
  if (name == "10b") return of_10b();
  return Error{ErrorCode::kInvalidArgument, fmt::format("there is no model preset \"{}\"; choose one of {}", name,
                                                        fmt::join(model_preset_names(), ", "))};
}

}  // namespace atl
