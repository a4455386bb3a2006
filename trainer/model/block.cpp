#include "trainer/model/block.h"

#include "trainer/model/functions.h"

namespace atl {

TransformerBlock::TransformerBlock(const ModelConfig& config, const ParameterLayout& layout, const ParameterUnit& unit,
                                   const FlatUnit& parameters)
    : config_(config) {
  // The layout's order: q, k, v, o, gate, up, down, and the two norms.
  const ParameterInfo* tensor = layout.parameters.data() + unit.first_parameter;
  const auto rows_from = [&](int index, std::int64_t rows) {
    return parameters.view(tensor[index].offset - unit.offset, {rows, tensor[index].shape[1]});
  };
  qkv_ = rows_from(0, tensor[0].shape[0] + tensor[1].shape[0] + tensor[2].shape[0]);
  output_ = rows_from(3, tensor[3].shape[0]);
  gate_up_ = rows_from(4, tensor[4].shape[0] + tensor[5].shape[0]);
  down_ = rows_from(6, tensor[6].shape[0]);
  attention_norm_ = parameters.view(tensor[7].offset - unit.offset, tensor[7].shape);
  feed_forward_norm_ = parameters.view(tensor[8].offset - unit.offset, tensor[8].shape);
}

at::Tensor TransformerBlock::forward(const at::Tensor& x, SequenceShape shape, const RopeTable& rope) const {
  const AttentionShape attention{shape.sequences, shape.length, config_.num_attention_heads,
                                 config_.num_key_value_heads, config_.head_dim};
  const at::Tensor qkv = linear(rms_norm(x, attention_norm_, config_.rms_norm_eps), qkv_);
  const at::Tensor middle = linear_add(x, rotary_attention(qkv, attention, rope), output_);
  const at::Tensor gate_up = linear(rms_norm(middle, feed_forward_norm_, config_.rms_norm_eps), gate_up_);
  return linear_add(middle, swiglu(gate_up), down_);
}

}  // namespace atl
