// The two ends of the model: token embedding, and final norm + output projection + loss. Neither needs autograd: the
// head computes its backward pass as soon as it has the logits, a slice of rows at a time. Used by one rank's thread.
#pragma once

#include <ATen/core/Tensor.h>

#include <span>

#include "net/model/config.h"
#include "trainer/fsdp/flat_unit.h"
#include "trainer/model/cpu_kernels.h"

namespace atl {

// Rows of `table` [vocab, hidden] for `tokens`: [tokens, hidden].
at::Tensor embed(const at::Tensor& table, std::span<const std::int32_t> tokens);

// Adds each row of dx to its token's row of `gradient`.
void embed_backward(const at::Tensor& dx, std::span<const std::int32_t> tokens, const at::Tensor& gradient);

// What the loss is made of. gradient_scale: 1 / (tokens of the island's whole batch).
struct LossScale {
  float gradient_scale = 0;
  float max_z_loss = 0;
};

struct Head {
  ParameterView norm;    // [hidden]
  ParameterView output;  // [vocab, hidden]; the embedding table when tied
  double epsilon = 0;

  at::Tensor logits(const at::Tensor& x) const;
  LossSums loss(const at::Tensor& x, std::span<const std::int32_t> labels) const;
  // The gradient of the loss with respect to x; the weights' gradients are added to their views.
  at::Tensor backward(const at::Tensor& x, std::span<const std::int32_t> labels, LossScale scale, LossSums& sums) const;
};

}  // namespace atl
