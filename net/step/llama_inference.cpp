#include "net/step/llama_inference.h"

#include <algorithm>
#include <utility>

#include "kernels/model/cached_attention.h"

namespace atl {

// A program while it is written.
struct LlamaInference::Pass {
  ProgramBuilder builder;
  DType element;
  std::int64_t rows, chosen;
  Tensor tokens = {}, slots = {}, positions = {}, cosines = {}, sines = {};

  Tensor activation(std::string name, std::int64_t count, std::int64_t columns) {
    return builder.buffer(std::move(name), element, count, columns);
  }
  Tensor normed(std::string name, const Tensor& x, const Tensor& weight, double epsilon) {
    const Tensor y = activation(std::move(name), x.rows, x.columns);
    const Tensor inverse = builder.buffer("inverse rms", DType::kFloat32, 1, x.rows);
    builder.compute(RmsNorm{x, weight, y, inverse, static_cast<float>(epsilon)});
    return y;
  }
  // x weight^T, plus `add`.
  Tensor product(std::string name, const Tensor& x, const Tensor& weight, std::optional<Tensor> add = {}) {
    const Tensor y = activation(std::move(name), x.rows, weight.rows);
    builder.compute(MatMul{.a = x, .b = weight, .out = y, .add = add, .transpose_b = true});
    return y;
  }
};

LlamaInference::LlamaInference(const ModelConfig& config, const InferenceShape& shape)
    : config_(config), shape_(shape), layout_(canonical_layout(config)) {
  weights_ = buffers_.add("weights", element(), 1, layout_.numel);
  const std::int64_t rows = shape.slots * config.num_key_value_heads * shape.capacity;
  for (std::int64_t layer = 0; layer < config.num_hidden_layers; ++layer) {
    keys_.push_back(buffers_.add("keys", element(), rows, config.head_dim));
    values_.push_back(buffers_.add("values", element(), rows, config.head_dim));
  }
}

std::int64_t LlamaInference::cache_bytes_per_token(const ModelConfig& config, Precision precision) {
  const DType element = precision == Precision::kBf16 ? DType::kBfloat16 : DType::kFloat32;
  return 2 * config.num_hidden_layers * config.num_key_value_heads * config.head_dim * size_of(element);
}

Tensor LlamaInference::part(std::size_t unit, std::size_t first, std::int64_t rows, std::int64_t columns) const {
  return weights_.view(layout_.parameters[layout_.units[unit].first_parameter + first].offset, rows, columns);
}

Tensor LlamaInference::table() const {
  const std::size_t head = layout_.units.size() - 1;
  return config_.tie_word_embeddings ? part(0, 0, config_.vocab_size, config_.hidden_size)
                                     : part(head, 1, config_.vocab_size, config_.hidden_size);
}

Tensor LlamaInference::attended(Pass& pass, std::size_t index, const Tensor& qkv) const {
  const CachedAttentionSizes sizes{config_.num_attention_heads, config_.num_key_value_heads, config_.head_dim,
                                   shape_.capacity};
  pass.builder.compute(
      Rope{qkv, pass.cosines, pass.sines, sizes.heads + sizes.key_value_heads, sizes.head_dim, pass.rows, 1.0f});
  const Tensor out = pass.activation("attended", pass.rows, sizes.heads * sizes.head_dim);
  const std::int64_t bytes = shape_.traits.cached_attention_scratch(sizes, pass.rows, shape_.traits.threads);
  const Tensor scratch = pass.builder.buffer("attention's scratch", DType::kInt32, 1, (bytes + 3) / 4);
  pass.builder.compute(CachedAttention{qkv, pass.slots, pass.positions, keys_[index], values_[index], out, scratch,
                                       sizes.heads, sizes.key_value_heads, sizes.head_dim, sizes.capacity});
  return out;
}

Tensor LlamaInference::block(Pass& pass, std::size_t index, const Tensor& x) const {
  using B = BlockTensor;
  const ModelConfig& c = config_;
  const std::size_t unit = index + 1;
  const std::int64_t query = c.num_attention_heads * c.head_dim;
  const std::int64_t qkv_columns = query + 2 * c.num_key_value_heads * c.head_dim;
  const Tensor normed = pass.normed("normed", x, part(unit, B::kAttentionNorm, 1, c.hidden_size), c.rms_norm_eps);
  const Tensor qkv = pass.product("qkv", normed, part(unit, B::kQuery, qkv_columns, c.hidden_size));
  const Tensor middle =
      pass.product("middle", attended(pass, index, qkv), part(unit, B::kOutput, c.hidden_size, query), x);
  const Tensor feed_normed =
      pass.normed("feed-forward's normed", middle, part(unit, B::kFeedForwardNorm, 1, c.hidden_size), c.rms_norm_eps);
  const Tensor gate_up =
      pass.product("gate and up", feed_normed, part(unit, B::kGate, 2 * c.intermediate_size, c.hidden_size));
  const Tensor gated = pass.activation("gated", pass.rows, c.intermediate_size);
  pass.builder.compute(Swiglu{gate_up, gated});
  return pass.product("block's output", gated, part(unit, B::kDown, c.hidden_size, c.intermediate_size), middle);
}

Tensor LlamaInference::body(Pass& pass) const {
  pass.element = element();
  const auto int_rows = [&](const char* name) { return pass.builder.input(name, DType::kInt32, 1, pass.rows); };
  const auto angles = [&](const char* name) {
    return pass.builder.input(name, DType::kFloat32, pass.rows, config_.head_dim / 2);
  };
  pass.tokens = int_rows("tokens");
  pass.slots = int_rows("slots");
  pass.positions = int_rows("positions");
  pass.cosines = angles("cosines");
  pass.sines = angles("sines");
  Tensor x = pass.activation("embedded", pass.rows, config_.hidden_size);
  pass.builder.compute(Embed{part(0, 0, config_.vocab_size, config_.hidden_size), pass.tokens, x});
  for (std::size_t index = 0; index < keys_.size(); ++index) x = block(pass, index, x);
  if (pass.chosen == 0) return {};
  // Rows are looked up as those of an embedding are.
  const Tensor chosen = pass.builder.input("chosen", DType::kInt32, 1, pass.chosen);
  const Tensor last = pass.activation("chosen rows", pass.chosen, config_.hidden_size);
  pass.builder.compute(Embed{x, chosen, last});
  return pass.normed("final normed", last, part(layout_.units.size() - 1, 0, 1, config_.hidden_size),
                     config_.rms_norm_eps);
}

Program LlamaInference::logits(std::int64_t rows, std::int64_t chosen) const {
  Pass pass{.builder = {}, .element = element(), .rows = rows, .chosen = chosen};
  const Tensor normed = body(pass);
  if (chosen > 0) pass.builder.output("logits", pass.product("logits", normed, table()));
  return pass.builder.finish();
}

Program LlamaInference::scores(std::int64_t rows, std::int64_t chosen) const {
  Pass pass{.builder = {}, .element = element(), .rows = rows, .chosen = chosen};
  const Tensor normed = body(pass);
  if (chosen == 0) return pass.builder.finish();
  const Tensor labels = pass.builder.input("labels", DType::kInt32, 1, chosen);
  const Tensor log_probabilities = pass.builder.buffer("log probabilities", DType::kFloat32, 1, chosen);
  const Tensor greedy = pass.builder.buffer("greedy", DType::kInt32, 1, chosen);
  const std::int64_t slice = std::clamp<std::int64_t>(shape_.traits.most_logits / config_.vocab_size, 1, chosen);
  const Tensor logits = pass.activation("logits", slice, config_.vocab_size);
  for (std::int64_t first = 0; first < chosen; first += slice) {
    const std::int64_t count = std::min(slice, chosen - first);
    const Tensor here = logits.row_range(0, count);
    pass.builder.compute(
        MatMul{.a = normed.row_range(first, count), .b = table(), .out = here, .add = {}, .transpose_b = true});
    pass.builder.compute(LogProbability{here, labels.column_range(first, count),
                                        log_probabilities.column_range(first, count),
                                        greedy.column_range(first, count)});
  }
  pass.builder.output("log probabilities", log_probabilities);
  pass.builder.output("greedy", greedy);
  return pass.builder.finish();
}

}  // namespace atl
