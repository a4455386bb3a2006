#include "trainer/model/block.h"

#include <stdexcept>

#include "trainer/model/functions.h"

namespace atl {

TransformerBlock::TransformerBlock(const ModelConfig& config, const ParameterLayout& layout, const ParameterUnit& unit,
                                   const FlatUnit& parameters)
    : config_(config) {
  using T = BlockTensor;
  if (unit.parameter_count != T::kCount) throw std::logic_error("the layout's block has tensors that nobody computes");
  const ParameterInfo* tensor = layout.parameters.data() + unit.first_parameter;
  const auto rows_from = [&](T::Place place, std::int64_t rows) {
    return parameters.view(tensor[place].offset - unit.offset, {rows, tensor[place].shape[1]});
  };
  const auto norm = [&](T::Place place) {
    return parameters.view(tensor[place].offset - unit.offset, tensor[place].shape);
  };
  qkv_ = rows_from(T::kQuery, tensor[T::kQuery].shape[0] + tensor[T::kKey].shape[0] + tensor[T::kValue].shape[0]);
  output_ = rows_from(T::kOutput, tensor[T::kOutput].shape[0]);
  gate_up_ = rows_from(T::kGate, tensor[T::kGate].shape[0] + tensor[T::kUp].shape[0]);
  down_ = rows_from(T::kDown, tensor[T::kDown].shape[0]);
  attention_norm_ = norm(T::kAttentionNorm);
  feed_forward_norm_ = norm(T::kFeedForwardNorm);
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
