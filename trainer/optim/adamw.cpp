#include "trainer/optim/adamw.h"

#include <array>
#include <cmath>

#include "trainer/model/simd.h"

namespace atl {
namespace {

// One element at a time, so that the compiler vectorises over a contiguous loop.
ATOLL_SIMD_CLONES
void adamw_loop(float* __restrict p, const float* __restrict g, float* __restrict m, float* __restrict v,
                std::size_t count, float decay, float one_minus_beta1, float beta2, float one_minus_beta2,
                float step_size, float inverse_sqrt_correction2, float epsilon, float gradient_scale) {
  for (std::size_t i = 0; i < count; ++i) {
    const float gradient = gradient_scale * g[i];
    const float first = m[i] + one_minus_beta1 * (gradient - m[i]);
    const float second = beta2 * v[i] + one_minus_beta2 * (gradient * gradient);
    m[i] = first;
    v[i] = second;
    p[i] = p[i] * decay - step_size * (first / (std::sqrt(second) * inverse_sqrt_correction2 + epsilon));
  }
}

}  // namespace

Status AdamWHyper::validate() const {
  const auto bad = [](const char* what) { return Error{ErrorCode::kInvalidArgument, std::string("AdamW: ") + what}; };
  if (!(beta1 >= 0 && beta1 < 1)) return bad("beta1 must be from 0 to below 1");
  if (!(beta2 >= 0 && beta2 < 1)) return bad("beta2 must be from 0 to below 1");
  if (!(epsilon > 0)) return bad("epsilon must be positive");
  if (!(weight_decay >= 0)) return bad("weight_decay must not be negative");
  return ok_status();
}

void adamw_step(const AdamWShard& shard, const AdamWHyper& hyper, float learning_rate, std::int64_t step,
                float gradient_scale) {
  const auto t = static_cast<double>(step);
  const double rate = learning_rate;
  const double correction1 = 1 - std::pow(static_cast<double>(hyper.beta1), t);
  const double correction2 = 1 - std::pow(static_cast<double>(hyper.beta2), t);
  adamw_loop(shard.parameters.data(), shard.gradients.data(), shard.first_moment.data(), shard.second_moment.data(),
             shard.parameters.size(), static_cast<float>(1 - rate * static_cast<double>(hyper.weight_decay)),
             static_cast<float>(1 - static_cast<double>(hyper.beta1)), hyper.beta2,
             static_cast<float>(1 - static_cast<double>(hyper.beta2)), static_cast<float>(rate / correction1),
             static_cast<float>(1 / std::sqrt(correction2)), hyper.epsilon, gradient_scale);
}

double sum_of_squares(std::span<const float> values) {
  constexpr std::size_t kLanes = 8;
  std::array<double, kLanes> sums{};
  std::size_t i = 0;
  for (; i + kLanes <= values.size(); i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const double value = values[i + lane];
      sums[lane] += value * value;
    }
  }
  double total = 0;
  for (const double sum : sums) total += sum;
  for (; i < values.size(); ++i) total += static_cast<double>(values[i]) * values[i];
  return total;
}

float clip_factor(double norm, double max_norm) {
  if (max_norm <= 0) return 1.0f;
  const double factor = max_norm / (norm + 1e-6);
  return factor < 1 ? static_cast<float>(factor) : 1.0f;
}

}  // namespace atl
