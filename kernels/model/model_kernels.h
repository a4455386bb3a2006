// The model's elementwise and row-wise operations on one CPU thread, over rows or elements that it is given: callers
// divide the work among threads. What each computes, operand by operand, is said once, in net/step/operation.h. Plain
// C++, compiled for x86-64, AVX2 with FMA and AVX-512; the processor decides (instruction_set.h). Standard library
// only. Any thread.
//
// T is float or Bf16. Values are read as T, computed in fp32, rounded once where T is written. Matrices are row-major;
// where no stride is named, contiguous. Outputs overlap no inputs but where it says "in place".
#pragma once

#include <cstdint>
#include <span>

#include "kernels/instruction_set.h"

namespace atl {

struct Bf16 {
  std::uint16_t bits = 0;
};

struct LossSums {
  double cross_entropy = 0;
  double squared_max_logit = 0;
};

struct AdamWStep {
  float decay = 1, step_size = 0, inverse_correction2 = 1, gradient_scale = 1;
  float beta1 = 0, beta2 = 0, epsilon = 0;
};

// A table of functions: one for each T and instruction set.
template <class T>
struct ModelKernels {
  void (*rms_norm)(const T* x, const T* weight, float epsilon, std::int64_t rows, std::int64_t hidden, T* y,
                   float* inverse_rms);
  // residual may be nullptr, or dx. partial [hidden] is overwritten: the sum over these rows of dy * x * inverse_rms.
  void (*rms_norm_backward)(const T* dy, const T* x, const T* weight, const float* inverse_rms, const T* residual,
                            std::int64_t rows, std::int64_t hidden, T* dx, float* partial);
  void (*swiglu)(const T* gate_up, std::int64_t rows, std::int64_t inner, T* out);
  void (*swiglu_backward)(const T* dout, const T* gate_up, std::int64_t rows, std::int64_t inner, T* dgate_up);
  // In place, one row's `heads` heads; cosines, sines [head_dim / 2].
  void (*rope_row)(T* x, const float* cosines, const float* sines, std::int64_t heads, std::int64_t head_dim,
                   float direction);
  // In place with gradient; without, logits stay as they are. Rows of `vocab` logits; the sums are added up in fp64,
  // row by row. A logit of -infinity has probability 0; NaN or +infinity in a row makes the cross-entropy NaN or
  // infinite. A row with a negative label adds nothing, whatever its logits; its gradient is 0.
  LossSums (*cross_entropy)(T* logits, const std::int32_t* labels, std::int64_t rows, std::int64_t vocab, float scale,
                            float max_z_loss, bool gradient);
  void (*embed)(const T* table, const std::int32_t* tokens, std::int64_t rows, std::int64_t hidden, T* x);
  // Rows in order, one after the other: gradient[token] += dx.
  void (*embed_backward)(const T* dx, const std::int32_t* tokens, std::int64_t rows, std::int64_t hidden,
                         float* gradient);
  // rounded may be nullptr.
  void (*adamw)(float* p, const float* g, float* m, float* v, Bf16* rounded, std::int64_t count, const AdamWStep& step);
};
template <class T>
const ModelKernels<T>& model_kernels(InstructionSet set);
template <class T>
const ModelKernels<T>& model_kernels() {
  return model_kernels<T>(chosen_instruction_set());
}

// Of one type alone.
struct ValueKernels {
  void (*round_to_bf16)(const float* from, std::int64_t count, Bf16* to);  // nearest even; NaN stays NaN (quiet)
  void (*widen)(const Bf16* from, std::int64_t count, float* to);
  void (*add)(float* sum, const float* values, std::int64_t count);  // sum += values
  // In fp64: value i is added to lane i % 16, in order, and the lanes are folded in halves. The same bits from every
  // instruction set.
  double (*sum_of_squares)(const float* values, std::int64_t count);
};
const ValueKernels& value_kernels(InstructionSet set);
inline const ValueKernels& value_kernels() { return value_kernels(chosen_instruction_set()); }

}  // namespace atl
