// AdamW on a flat shard of parameters, as torch.optim.AdamW computes it (decoupled decay, on every parameter). No
// torch.
#pragma once

#include <cstdint>
#include <span>

#include "net/base/result.h"

namespace atl {

struct AdamWHyper {
  float beta1 = 0.9f;
  float beta2 = 0.95f;
  float epsilon = 1e-8f;
  float weight_decay = 0.1f;

  Status validate() const;
};

// One shard's state; all four spans have the same length and do not overlap.
struct AdamWShard {
  std::span<float> parameters;
  std::span<const float> gradients;
  std::span<float> first_moment;
  std::span<float> second_moment;
};

// One step in a single pass over memory, in fp32:
//   p <- p (1 - lr wd);  g <- gradient_scale * gradient;  m <- m + (1 - b1)(g - m);  v <- b2 v + (1 - b2) g^2
//   p <- p - lr / (1 - b1^t) * m / (sqrt(v) / sqrt(1 - b2^t) + eps)
// `step` is t, from 1.
void adamw_step(const AdamWShard& shard, const AdamWHyper& hyper, float learning_rate, std::int64_t step,
                float gradient_scale);

// In double, in a fixed order: the same sum whatever the compiler vectorises.
double sum_of_squares(std::span<const float> values);

// The factor that brings a gradient of this norm to at most `max_norm`, as torch.nn.utils.clip_grad_norm_ has it.
// max_norm <= 0 means no clipping.
float clip_factor(double norm, double max_norm);

}  // namespace atl
