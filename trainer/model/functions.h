// The differentiable operations of a transformer block. Each adds its weight's gradient straight to the weight's
// gradient view, with no temporary, and hands autograd only the gradient of its input. CPU, fp32.
#pragma once

#include <ATen/core/Tensor.h>

#include "trainer/fsdp/flat_unit.h"
#include "trainer/model/rope.h"

namespace atl {

struct AttentionShape {
  std::int64_t sequences = 0;
  std::int64_t length = 0;
  std::int64_t heads = 0;
  std::int64_t key_value_heads = 0;
  std::int64_t head_dim = 0;
};

// x: [rows, hidden]
at::Tensor rms_norm(const at::Tensor& x, const ParameterView& weight, double epsilon);

// x W^T. x: [rows, in], weight: [out, in]
at::Tensor linear(const at::Tensor& x, const ParameterView& weight);

// residual + x W^T
at::Tensor linear_add(const at::Tensor& residual, const at::Tensor& x, const ParameterView& weight);

// Rotary embedding, then causal attention. qkv: [rows, (heads + 2 key_value_heads) * head_dim], rotated in place.
// Returns [rows, heads * head_dim]. The table outlives the backward pass.
at::Tensor rotary_attention(const at::Tensor& qkv, const AttentionShape& shape, const RopeTable& rope);

// silu(gate) * up. gate_up: [rows, 2 * inner]
at::Tensor swiglu(const at::Tensor& gate_up);

// The backward pass of rms_norm, for the head, which drives its own: dx; the weight's gradient is added to its view.
at::Tensor rms_norm_backward(const at::Tensor& dy, const at::Tensor& x, const ParameterView& weight,
                             const at::Tensor& inverse_rms);
// Its forward pass, with the inverse root mean squares [rows].
std::pair<at::Tensor, at::Tensor> rms_norm_forward(const at::Tensor& x, const at::Tensor& weight, double epsilon);

}  // namespace atl
