// The model's elementwise and row-wise operations on the CPU, fp32, each over rows it is given: the callers divide rows
// among threads. All matrices are row-major and contiguous unless a stride is named; outputs do not overlap inputs
// except where it says "in place". No torch.
#pragma once

#include <cstdint>

namespace atl {

// y = w * x / rms(x), rms over `hidden`; inverse_rms [rows] is kept for the backward pass.
void rms_norm_rows(const float* x, const float* weight, float epsilon, std::int64_t rows, std::int64_t hidden, float* y,
                   float* inverse_rms);

// dx from dy; dweight [hidden] is added to.
void rms_norm_backward_rows(const float* dy, const float* x, const float* weight, const float* inverse_rms,
                            std::int64_t rows, std::int64_t hidden, float* dx, float* dweight);

// a = silu(g) * u, where a row of gate_up [rows, 2 * inner] is g then u.
void swiglu_rows(const float* gate_up, std::int64_t rows, std::int64_t inner, float* a);
void swiglu_backward_rows(const float* da, const float* gate_up, std::int64_t rows, std::int64_t inner,
                          float* dgate_up);

// Turns the pairs (i, i + head_dim / 2) of `heads` heads of one row by the angles given, from x to y (which may be x).
// direction +1 is the embedding, -1 its transpose, for the backward pass.
struct RopeRow {
  const float* cosines;
  const float* sines;
};
void rope_row(const float* x, RopeRow row, std::int64_t heads, std::int64_t head_dim, float direction, float* y);

// Cross-entropy and squared largest logit of each row, as sums; in place, logits become the gradient of
// gradient_scale * sum(cross_entropy + max_z_loss * (largest logit)^2) when gradient_scale is not 0.
struct LossSums {
  double cross_entropy = 0;
  double squared_max_logit = 0;
};
LossSums cross_entropy_rows(float* logits, const std::int32_t* labels, std::int64_t rows, std::int64_t vocab,
                            float gradient_scale, float max_z_loss);

}  // namespace atl
