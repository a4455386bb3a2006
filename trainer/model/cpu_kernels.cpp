#include "trainer/model/cpu_kernels.h"

#include <bit>
#include <cmath>

#include "trainer/model/simd.h"

namespace atl {
namespace {

// e^x to about 2 ulp, vectorisable: range reduction by ln 2 in two parts, then a polynomial of degree 6 (Cephes expf).
ATOLL_SIMD_INLINE float fast_exp(float x) {
  x = x < -87.0f ? -87.0f : x;
  x = x > 88.0f ? 88.0f : x;
  const float shifted = x * 1.44269504f + 12582912.0f;  // rounds to an integer in the low mantissa bits
  const float n = shifted - 12582912.0f;
  const float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * r * r + r + 1.0f;
  const auto exponent = (std::bit_cast<std::int32_t>(shifted) - 0x4b400000 + 127) << 23;
  return p * std::bit_cast<float>(exponent);
}

ATOLL_SIMD_INLINE float dot(const float* a, const float* b, std::int64_t count) {
  float sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < count; ++i) sum += a[i] * b[i];
  return sum;
}

}  // namespace

ATOLL_SIMD_CLONES
void rms_norm_rows(const float* __restrict x, const float* __restrict weight, float epsilon, std::int64_t rows,
                   std::int64_t hidden, float* __restrict y, float* __restrict inverse_rms) {
  for (std::int64_t row = 0; row < rows; ++row, x += hidden, y += hidden) {
    const float inverse = 1.0f / std::sqrt(dot(x, x, hidden) / static_cast<float>(hidden) + epsilon);
    inverse_rms[row] = inverse;
    for (std::int64_t i = 0; i < hidden; ++i) y[i] = weight[i] * (x[i] * inverse);
  }
}

ATOLL_SIMD_CLONES
void rms_norm_backward_rows(const float* __restrict dy, const float* __restrict x, const float* __restrict weight,
                            const float* __restrict inverse_rms, std::int64_t rows, std::int64_t hidden,
                            float* __restrict dx, float* __restrict dweight) {
  for (std::int64_t row = 0; row < rows; ++row, x += hidden, dy += hidden, dx += hidden) {
    const float inverse = inverse_rms[row];
    float projection = 0;  // of the scaled gradient on x
#pragma omp simd reduction(+ : projection)
    for (std::int64_t i = 0; i < hidden; ++i) projection += dy[i] * weight[i] * x[i];
    const float shrink = projection * inverse * inverse * inverse / static_cast<float>(hidden);
    for (std::int64_t i = 0; i < hidden; ++i) {
      dx[i] = dy[i] * weight[i] * inverse - x[i] * shrink;
      dweight[i] += dy[i] * (x[i] * inverse);
    }
  }
}

ATOLL_SIMD_CLONES
void swiglu_rows(const float* __restrict gate_up, std::int64_t rows, std::int64_t inner, float* __restrict a) {
  for (std::int64_t row = 0; row < rows; ++row, gate_up += 2 * inner, a += inner) {
    for (std::int64_t i = 0; i < inner; ++i) {
      const float gate = gate_up[i];
      a[i] = gate / (1.0f + fast_exp(-gate)) * gate_up[inner + i];
    }
  }
}

ATOLL_SIMD_CLONES
void swiglu_backward_rows(const float* __restrict da, const float* __restrict gate_up, std::int64_t rows,
                          std::int64_t inner, float* __restrict dgate_up) {
  for (std::int64_t row = 0; row < rows; ++row, gate_up += 2 * inner, dgate_up += 2 * inner, da += inner) {
    for (std::int64_t i = 0; i < inner; ++i) {
      const float gate = gate_up[i];
      const float sigmoid = 1.0f / (1.0f + fast_exp(-gate));
      const float silu = gate * sigmoid;
      dgate_up[i] = da[i] * gate_up[inner + i] * (sigmoid + silu * (1.0f - sigmoid));
      dgate_up[inner + i] = da[i] * silu;
    }
  }
}

ATOLL_SIMD_CLONES
void rope_row(const float* x, RopeRow row, std::int64_t heads, std::int64_t head_dim, float direction, float* y) {
  const std::int64_t half = head_dim / 2;
  for (std::int64_t head = 0; head < heads; ++head, x += head_dim, y += head_dim) {
#pragma omp simd
    for (std::int64_t i = 0; i < half; ++i) {
      const float first = x[i];
      const float second = x[half + i];
      const float sine = direction * row.sines[i];
      y[i] = first * row.cosines[i] - second * sine;
      y[half + i] = second * row.cosines[i] + first * sine;
    }
  }
}

ATOLL_SIMD_CLONES
LossSums cross_entropy_rows(float* logits, const std::int32_t* labels, std::int64_t rows, std::int64_t vocab,
                            float gradient_scale, float max_z_loss) {
  LossSums sums;
  for (std::int64_t row = 0; row < rows; ++row, logits += vocab) {
    float largest = logits[0];
#pragma omp simd reduction(max : largest)
    for (std::int64_t i = 0; i < vocab; ++i) largest = logits[i] > largest ? logits[i] : largest;
    const float label_logit = logits[labels[row]];
    std::int64_t at_largest = 0;
    if (max_z_loss != 0) {
      while (at_largest < vocab - 1 && logits[at_largest] != largest) ++at_largest;
    }
    float total = 0;
#pragma omp simd reduction(+ : total)
    for (std::int64_t i = 0; i < vocab; ++i) {
      const float power = fast_exp(logits[i] - largest);
      logits[i] = power;
      total += power;
    }
    sums.cross_entropy += std::log(static_cast<double>(total)) + static_cast<double>(largest - label_logit);
    sums.squared_max_logit += static_cast<double>(largest) * largest;
    if (gradient_scale == 0) continue;
    const float scale = gradient_scale / total;
    for (std::int64_t i = 0; i < vocab; ++i) logits[i] *= scale;
    logits[labels[row]] -= gradient_scale;
    if (max_z_loss != 0) logits[at_largest] += gradient_scale * max_z_loss * 2.0f * largest;
  }
  return sums;
}

}  // namespace atl
