// One transformer block of Llama: x + attention(norm(x)), then + feed-forward(norm(.)). Its tensors are views of a
// FlatUnit; weight gradients are added to the views' gradients as backward runs. Used by one rank's thread.
#pragma once

#include <ATen/core/Tensor.h>

#include <span>

#include "net/model/layout.h"
#include "trainer/fsdp/flat_unit.h"
#include "trainer/model/rope.h"

namespace atl {

// Rows of a block's input: sequences one after the other, each of `length` positions from 0.
struct SequenceShape {
  std::int64_t sequences = 0;
  std::int64_t length = 0;
  std::int64_t rows() const { return sequences * length; }
};

class TransformerBlock {
 public:
  TransformerBlock(const ModelConfig& config, const ParameterLayout& layout, const ParameterUnit& unit,
                   const FlatUnit& parameters);

  // x: [rows, hidden], contiguous. With autograd on and x requiring a gradient, the result's backward gives x its
  // gradient and adds the weights' to the unit's open gradients; it must run on this thread, with the unit gathered.
  at::Tensor forward(const at::Tensor& x, SequenceShape shape, const RopeTable& rope) const;

 private:
  const ModelConfig& config_;
  ParameterView qkv_;  // query, key and value in one matrix
  ParameterView output_;
  ParameterView gate_up_;  // gate and up in one matrix
  ParameterView down_;
  ParameterView attention_norm_;
  ParameterView feed_forward_norm_;
};

}  // namespace atl
