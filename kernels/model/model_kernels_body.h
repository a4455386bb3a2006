// The functions of model_kernels.h, once for all instruction sets; see model_kernels_lanes.h on who includes it and
// what it must not call.
#pragma once

#include "kernels/model/model_kernels_lanes.h"

namespace atl {
namespace {

template <class T>
void rms_norm(const T* x, const T* weight, float epsilon, std::int64_t rows, std::int64_t hidden, T* y,
              float* inverse_rms) {
  for (std::int64_t row = 0; row < rows; ++row, x += hidden, y += hidden) {
    const float squares = sum_of(0, hidden, [=](std::int64_t i, auto lanes) {
      const Floats value = lanes.load(x + i);
      return value * value;
    });
    const float inverse = 1.0f / __builtin_sqrtf(squares / static_cast<float>(hidden) + epsilon);
    inverse_rms[row] = inverse;
    for_each_vector(0, hidden, [=](std::int64_t i, auto lanes) {
      lanes.store(y + i, lanes.load(weight + i) * (lanes.load(x + i) * inverse));
    });
  }
}

// One row, its `partial` added to.
template <bool kResidual, class T>
void rms_norm_backward_row(const T* dy, const T* x, const T* weight, float inverse, const T* residual,
                           std::int64_t hidden, T* dx, float* partial) {
  const float projection = sum_of(0, hidden, [=](std::int64_t i, auto lanes) {
    return lanes.load(dy + i) * lanes.load(weight + i) * lanes.load(x + i);
  });
  const float shrink = projection * inverse * inverse / static_cast<float>(hidden);
  for_each_vector(0, hidden, [=](std::int64_t i, auto lanes) {
    const Floats normalised = lanes.load(x + i) * inverse;
    const Floats gradient = lanes.load(dy + i);
    Floats out = (gradient * lanes.load(weight + i)) * inverse - normalised * shrink;
    if constexpr (kResidual) out += lanes.load(residual + i);
    lanes.store(partial + i, lanes.load(partial + i) + gradient * normalised);
    lanes.store(dx + i, out);
  });
}

template <class T>
void rms_norm_backward(const T* dy, const T* x, const T* weight, const float* inverse_rms, const T* residual,
                       std::int64_t rows, std::int64_t hidden, T* dx, float* partial) {
  __builtin_memset(partial, 0, static_cast<std::size_t>(hidden) * sizeof(float));
  for (std::int64_t row = 0; row < rows; ++row, x += hidden, dy += hidden, dx += hidden) {
    if (residual == nullptr) {
      rms_norm_backward_row<false, T>(dy, x, weight, inverse_rms[row], nullptr, hidden, dx, partial);
    } else {
      const T* const added = residual + row * hidden;
      rms_norm_backward_row<true, T>(dy, x, weight, inverse_rms[row], added, hidden, dx, partial);
    }
  }
}

template <class T>
void swiglu(const T* gate_up, std::int64_t rows, std::int64_t inner, T* out) {
  for (std::int64_t row = 0; row < rows; ++row, gate_up += 2 * inner, out += inner) {
    for_each_vector(0, inner, [=](std::int64_t i, auto lanes) {
      const Floats gate = lanes.load(gate_up + i);
      lanes.store(out + i, gate / (1.0f + exponential(-gate)) * lanes.load(gate_up + inner + i));
    });
  }
}

template <class T>
void swiglu_backward(const T* dout, const T* gate_up, std::int64_t rows, std::int64_t inner, T* dgate_up) {
  for (std::int64_t row = 0; row < rows; ++row, gate_up += 2 * inner, dgate_up += 2 * inner, dout += inner) {
    for_each_vector(0, inner, [=](std::int64_t i, auto lanes) {
      const Floats gate = lanes.load(gate_up + i);
      const Floats gradient = lanes.load(dout + i);
      const Floats sigmoid = 1.0f / (1.0f + exponential(-gate));
      const Floats silu = gate * sigmoid;
      const Floats slope = sigmoid + silu * (1.0f - sigmoid);
      lanes.store(dgate_up + i, gradient * lanes.load(gate_up + inner + i) * slope);
      lanes.store(dgate_up + inner + i, gradient * silu);
    });
  }
}

template <class T>
void rope_row(T* x, const float* cosines, const float* sines, std::int64_t heads, std::int64_t head_dim,
              float direction) {
  const std::int64_t half = head_dim / 2;
  for (std::int64_t head = 0; head < heads; ++head, x += head_dim) {
    for_each_vector(0, half, [=](std::int64_t i, auto lanes) {
      const Floats first = lanes.load(x + i);
      const Floats second = lanes.load(x + half + i);
      const Floats cosine = lanes.load(cosines + i);
      const Floats sine = lanes.load(sines + i) * direction;
      lanes.store(x + i, first * cosine - second * sine);
      lanes.store(x + half + i, second * cosine + first * sine);
    });
  }
}

// -infinity if all are NaN: a maximum is no place to find one, the sum after it is.
template <class T>
float largest_of(const T* x, std::int64_t count) {
  constexpr float kLowest = -__builtin_inff();
  Floats largest[kSums];
  for (Floats& one : largest) one = all(kLowest);
  std::int64_t i = 0;
  for (; i + kSums * kLanes <= count; i += kSums * kLanes) {
    for (int k = 0; k < kSums; ++k) largest[k] = larger(load_whole(x + i + k * kLanes), largest[k]);
  }
  for_each_vector(i, count,
                  [&](std::int64_t at, auto lanes) { largest[0] = larger(lanes.load(x + at, kLowest), largest[0]); });
  const Floats folded = larger(larger(largest[0], largest[1]), larger(largest[2], largest[3]));
  float most = kLowest;
  for (int lane = 0; lane < kLanes; ++lane) most = folded[lane] > most ? folded[lane] : most;
  return most;
}

// Where the first of the largest is; 0 if `largest` is none of them.
template <class T>
std::int64_t first_equal(const T* x, std::int64_t count, float largest) {
  constexpr std::int64_t kBlock = 16 * kLanes;
  std::int64_t i = 0;
  for (; i + kBlock <= count; i += kBlock) {
    Ints found{};
    for (std::int64_t at = i; at < i + kBlock; at += kLanes) found |= load_whole(x + at) == all(largest);
    std::int32_t any = 0;
    for (int lane = 0; lane < kLanes; ++lane) any |= found[lane];
    if (any != 0) break;
  }
  for (; i < count; ++i) {
    if (widened(x[i]) == largest) return i;
  }
  return 0;
}

// The sum of e^(x - largest): each some thousand in fp32, those in fp64, so that a large vocabulary costs no accuracy.
template <class T>
double sum_of_powers(const T* x, std::int64_t count, float largest) {
  constexpr std::int64_t kBlock = 4096;
  double total = 0;
  for (std::int64_t i = 0; i < count; i += kBlock) {
    const std::int64_t end = i + kBlock < count ? i + kBlock : count;
    total += static_cast<double>(sum_of(i, end, [=](std::int64_t at, auto lanes) {
      return exponential(lanes.load(x + at, -__builtin_inff()) - largest);
    }));
  }
  return total;
}

// The exponentials are computed again rather than kept in place: there is no room for fp32 among bf16. The label's and
// the largest logit's own gradients are written after the rest, so that they too are rounded once.
template <class T>
LossSums cross_entropy(T* logits, const std::int32_t* labels, std::int64_t rows, std::int64_t vocab, float scale,
                       float max_z_loss, bool gradient) {
  LossSums sums;
  for (std::int64_t row = 0; row < rows; ++row, logits += vocab) {
    const std::int64_t label = labels[row];
    if (label < 0) {
      if (gradient) __builtin_memset(static_cast<void*>(logits), 0, static_cast<std::size_t>(vocab) * sizeof(T));
      continue;
    }
    const float largest = largest_of(logits, vocab);
    const float label_logit = widened(logits[label]);
    const double total = sum_of_powers(logits, vocab, largest);
    sums.cross_entropy += __builtin_log(total) + static_cast<double>(largest - label_logit);
    sums.squared_max_logit += static_cast<double>(largest) * static_cast<double>(largest);
    if (!gradient) continue;
    const float factor = static_cast<float>(static_cast<double>(scale) / total);
    const std::int64_t at_largest = max_z_loss == 0 ? label : first_equal(logits, vocab, largest);
    const float z_gradient = max_z_loss == 0 ? 0.0f : 2.0f * scale * max_z_loss * largest;
    const float at_largest_power = widened(logits[at_largest]) - largest;
    for_each_vector(0, vocab, [=](std::int64_t i, auto lanes) {
      lanes.store(logits + i, exponential(lanes.load(logits + i) - largest) * factor);
    });
    const auto write = [=](std::int64_t at, float exponent, float added) {
      Part{1}.store(logits + at, exponential(all(exponent)) * factor + added);
    };
    write(label, label_logit - largest, (at_largest == label ? z_gradient : 0.0f) - scale);
    if (at_largest != label) write(at_largest, at_largest_power, z_gradient);
  }
  return sums;
}

template <class T>
void embed(const T* table, const std::int32_t* tokens, std::int64_t rows, std::int64_t hidden, T* x) {
  for (std::int64_t row = 0; row < rows; ++row) {
    __builtin_memcpy(static_cast<void*>(x + row * hidden), table + tokens[row] * hidden,
                     static_cast<std::size_t>(hidden) * sizeof(T));
  }
}

template <class T>
void add_row(float* sum, const T* values, std::int64_t count) {
  for_each_vector(0, count, [=](std::int64_t i, auto lanes) {
    lanes.store(sum + i, lanes.load(sum + i) + lanes.load(values + i));
  });
}

template <class T>
void embed_backward(const T* dx, const std::int32_t* tokens, std::int64_t rows, std::int64_t hidden, float* gradient) {
  for (std::int64_t row = 0; row < rows; ++row) add_row(gradient + tokens[row] * hidden, dx + row * hidden, hidden);
}

template <bool kRounded>
void adamw_loop(float* p, const float* g, float* m, float* v, Bf16* rounded, std::int64_t count,
                const AdamWStep& step) {
  const auto one_minus_beta1 = static_cast<float>(1 - static_cast<double>(step.beta1));
  const auto one_minus_beta2 = static_cast<float>(1 - static_cast<double>(step.beta2));
  for_each_vector(0, count, [=](std::int64_t i, auto lanes) {
    const Floats gradient = lanes.load(g + i) * step.gradient_scale;
    const Floats before = lanes.load(m + i);
    const Floats first = before + (gradient - before) * one_minus_beta1;
    const Floats second = lanes.load(v + i) * step.beta2 + (gradient * gradient) * one_minus_beta2;
    const Floats update = first / (square_root(second) * step.inverse_correction2 + step.epsilon);
    const Floats parameter = lanes.load(p + i) * step.decay - update * step.step_size;
    lanes.store(m + i, first);
    lanes.store(v + i, second);
    lanes.store(p + i, parameter);
    if constexpr (kRounded) lanes.store(rounded + i, parameter);
  });
}

void adamw(float* p, const float* g, float* m, float* v, Bf16* rounded, std::int64_t count, const AdamWStep& step) {
  if (rounded == nullptr) return adamw_loop<false>(p, g, m, v, nullptr, count, step);
  adamw_loop<true>(p, g, m, v, rounded, count, step);
}

void round_to_bf16(const float* from, std::int64_t count, Bf16* to) {
  for_each_vector(0, count, [=](std::int64_t i, auto lanes) { lanes.store(to + i, lanes.load(from + i)); });
}

void widen(const Bf16* from, std::int64_t count, float* to) {
  for_each_vector(0, count, [=](std::int64_t i, auto lanes) { lanes.store(to + i, lanes.load(from + i)); });
}

// Value i is added to lane i % 16, in order, and the lanes are folded in halves; a product of two floats is exact in
// fp64. So the same sum, to the bit, from every instruction set.
double sum_of_squares(const float* values, std::int64_t count) {
  constexpr int kWide = 16;
  constexpr int kDoubles = kLanes / 2;
  using Doubles = double __attribute__((vector_size(8 * kDoubles)));
  using Narrow = float __attribute__((vector_size(4 * kDoubles)));
  Doubles sums[kWide / kDoubles] = {};
  std::int64_t i = 0;
  for (; i + kWide <= count; i += kWide) {
    for (int k = 0; k < kWide / kDoubles; ++k) {
      Narrow narrow;
      __builtin_memcpy(&narrow, values + i + k * kDoubles, sizeof narrow);
      const Doubles value = __builtin_convertvector(narrow, Doubles);
      sums[k] += value * value;
    }
  }
  double lanes[kWide];
  __builtin_memcpy(lanes, sums, sizeof lanes);
  for (int lane = 0; i < count; ++i, ++lane) {
    const double value = static_cast<double>(values[i]);
    lanes[lane] += value * value;
  }
  for (int half = kWide / 2; half > 0; half /= 2) {
    for (int lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
  }
  return lanes[0];
}

template <class T>
constexpr ModelKernels<T> make_model_kernels() {
  return {.rms_norm = rms_norm<T>,
          .rms_norm_backward = rms_norm_backward<T>,
          .swiglu = swiglu<T>,
          .swiglu_backward = swiglu_backward<T>,
          .rope_row = rope_row<T>,
          .cross_entropy = cross_entropy<T>,
          .embed = embed<T>,
          .embed_backward = embed_backward<T>,
          .adamw = adamw};
}

constexpr ValueKernels make_value_kernels() {
  return {.round_to_bf16 = round_to_bf16, .widen = widen, .add = add_row<float>, .sum_of_squares = sum_of_squares};
}

}  // namespace
}  // namespace atl
