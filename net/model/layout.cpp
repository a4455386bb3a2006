#include "net/model/layout.h"

#include <fmt/format.h>

namespace atl {
namespace {

class LayoutBuilder {
 public:
  void begin_unit() { layout_.units.push_back({layout_.parameters.size(), 0, layout_.numel, 0}); }

  void add_matrix(std::string name, std::int64_t outputs, std::int64_t inputs) {
    add({std::move(name), {outputs, inputs}, layout_.numel, outputs * inputs, Beginning::kNormal});
  }
  void add_norm(std::string name, std::int64_t numel) {
    add({std::move(name), {numel}, layout_.numel, numel, Beginning::kOne});
  }

  ParameterLayout take() { return std::move(layout_); }

 private:
  void add(ParameterInfo parameter) {
    layout_.numel += parameter.numel;
    ParameterUnit& unit = layout_.units.back();
    unit.parameter_count += 1;
    unit.numel += parameter.numel;
    layout_.parameters.push_back(std::move(parameter));
  }

  ParameterLayout layout_;
};

}  // namespace

ParameterLayout canonical_layout(const ModelConfig& config) {
  const std::int64_t hidden = config.hidden_size;
  const std::int64_t query = config.num_attention_heads * config.head_dim;
  const std::int64_t key_value = config.num_key_value_heads * config.head_dim;
  LayoutBuilder builder;
  builder.begin_unit();
  builder.add_matrix("model.embed_tokens.weight", config.vocab_size, hidden);
  for (std::int64_t layer = 0; layer < config.num_hidden_layers; ++layer) {
    const std::string block = fmt::format("model.layers.{}.", layer);
    builder.begin_unit();  // in the order of BlockTensor
    // Query, key and value lie side by side, as do gate and up: each group is one matrix multiplication.
    builder.add_matrix(block + "self_attn.q_proj.weight", query, hidden);
    builder.add_matrix(block + "self_attn.k_proj.weight", key_value, hidden);
    builder.add_matrix(block + "self_attn.v_proj.weight", key_value, hidden);
    builder.add_matrix(block + "self_attn.o_proj.weight", hidden, query);
    builder.add_matrix(block + "mlp.gate_proj.weight", config.intermediate_size, hidden);
    builder.add_matrix(block + "mlp.up_proj.weight", config.intermediate_size, hidden);
    builder.add_matrix(block + "mlp.down_proj.weight", hidden, config.intermediate_size);
    builder.add_norm(block + "input_layernorm.weight", hidden);
    builder.add_norm(block + "post_attention_layernorm.weight", hidden);
  }
  builder.begin_unit();
  builder.add_norm("model.norm.weight", hidden);
  if (!config.tie_word_embeddings) builder.add_matrix("lm_head.weight", config.vocab_size, hidden);
  return builder.take();
}

std::int64_t trained_numel(const ParameterLayout& layout) {
  std::int64_t numel = 0;
  for (const ParameterInfo& parameter : layout.parameters) numel += parameter.trained ? parameter.numel : 0;
  return numel;
}

}  // namespace atl
