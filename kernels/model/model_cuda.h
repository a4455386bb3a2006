// The model's operations on the GPU, but attention (attention_cuda.h, cached_attention_cuda.h). What each computes,
// operand by operand, is said once, in net/step/operation.h; here is what is particular to these kernels. Host code;
// any thread with a current device.
//
// T is float or Bf16. All pointers: device memory, each aligned to its own type. Matrices are row-major and contiguous
// where no stride is named. Outputs overlap no inputs but where it says "in place" or "may be". 16 bytes are read and
// written at a time where addresses and row sizes are multiples of that, single values elsewhere. No sum depends on the
// order in which threads run; those of launch_rms_norm, its gradient, launch_cross_entropy and launch_log_probability
// depend on whether 16 bytes are read at a time, so on addresses. Asynchronous on `stream`; the result says whether
// launches were accepted.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/model/model_kernels.h"

namespace atl::cuda {

// x [numel] = value. T may be double too. Bytes an element: sizeof(T).
template <class T>
cudaError_t launch_fill(T* x, std::int64_t numel, float value, cudaStream_t stream);

// to = bf16(from). Bytes an element: 6.
cudaError_t launch_convert(const float* from, Bf16* to, std::int64_t numel, cudaStream_t stream);

// sum += values; in place. Bytes an element: 12.
cudaError_t launch_add(float* sum, const float* values, std::int64_t numel, cudaStream_t stream);

// x[r] = table[tokens[r]]; tokens are below the number of the table's rows. Bytes an element: 2 sizeof(T).
template <class T>
cudaError_t launch_embed(const T* table, const std::int32_t* tokens, std::int64_t rows, std::int64_t hidden, T* x,
                         cudaStream_t stream);

// gradient[tokens[order[i]]] += dx[order[i]] in ascending i, the additions of one row of gradient being one after the
// other. Bytes an element of dx: sizeof(T), and 8 an element of a gradient's row that has a token.
template <class T>
cudaError_t launch_embed_backward(const T* dx, const std::int32_t* tokens, const std::int32_t* order, std::int64_t rows,
                                  std::int64_t hidden, float* gradient, cudaStream_t stream);

// Bytes an element: 2 sizeof(T) up to 8,192 columns (fp32) or 16,384 (bf16), which are kept in registers.
template <class T>
cudaError_t launch_rms_norm(const T* x, const T* weight, float epsilon, std::int64_t rows, std::int64_t hidden, T* y,
                            float* inverse_rms, cudaStream_t stream);

template <class T>
struct RmsNormGradient {
  const T* dy;
  const T* x;
  const T* weight;
  const float* inverse_rms;
  const T* residual;  // nullptr: none; may be dx
  std::int64_t rows, hidden;
  std::int64_t part_rows;  // kNormPartRows of net/step/operation.h
  T* dx;
  float* partial;  // [rows / part_rows, upwards; hidden]
  float* dweight;
  bool accumulate;
};
// Bytes an element: 4 sizeof(T) with a residual, 3 without, up to the columns of launch_rms_norm.
template <class T>
cudaError_t launch_rms_norm_backward(const RmsNormGradient<T>& gradient, cudaStream_t stream);

// In place; x's rows are `stride` elements apart. starts [rows]: nullptr where all are 0. Bytes an element: 2
// sizeof(T); the tables come from the cache.
template <class T>
cudaError_t launch_rope(T* x, std::int64_t stride, std::int64_t rows, const float* cosines, const float* sines,
                        std::int64_t heads, std::int64_t head_dim, std::int64_t length, const std::int32_t* starts,
                        float direction, cudaStream_t stream);

// Bytes an element of `out`: 3 sizeof(T).
template <class T>
cudaError_t launch_swiglu(const T* gate_up, std::int64_t rows, std::int64_t inner, T* out, cudaStream_t stream);

// dgate_up may be gate_up. Bytes an element of dout: 5 sizeof(T).
template <class T>
cudaError_t launch_swiglu_backward(const T* dout, const T* gate_up, std::int64_t rows, std::int64_t inner, T* dgate_up,
                                   cudaStream_t stream);

template <class T>
struct CrossEntropyRows {
  T* logits;  // in place with gradient; read alone without
  const std::int32_t* labels;
  const float* scale;  // one value
  std::int64_t rows, vocab;
  float max_z_loss;
  bool gradient;
  float* row_sums;        // [2, rows], scratch
  double* cross_entropy;  // one value, += the sum over rows
  double* squared_largest;
};
// Bytes a logit: sizeof(T), with gradient 3 sizeof(T), of which one read finds the row in the L2 cache as a rule.
template <class T>
cudaError_t launch_cross_entropy(const CrossEntropyRows<T>& loss, cudaStream_t stream);

template <class T>
struct LogProbabilityRows {
  const T* logits;             // [rows, vocab]
  const std::int32_t* labels;  // from 0 to below vocab
  std::int64_t rows, vocab;
  float* log_probabilities;  // of the label, natural logarithm
  std::int32_t* greedy;      // 1 where the label is the first of the largest, else 0
};
// Bytes a logit: sizeof(T).
template <class T>
cudaError_t launch_log_probability(const LogProbabilityRows<T>& rows, cudaStream_t stream);

// *sum = sum of x^2. part: kSquarePart of net/step/operation.h; scratch: [numel / part, upwards]. Bytes an element: 4.
cudaError_t launch_squared_norm(const float* x, std::int64_t numel, std::int64_t part, double* scratch, double* sum,
                                cudaStream_t stream);

// Where the step's sums and scalars are, one value each.
struct ClipScalars {
  const double* cross_entropy;
  const double* squared_largest_logit;
  const double* gradient_squares;
  const float* inverse_tokens;
  float* gradient_scale;
  float* apply;
};
// One thread, in fp64, rounded once.
cudaError_t launch_clip_scale(const ClipScalars& at, float clip_norm, cudaStream_t stream);

struct AdamWScalars {
  const float* decay;
  const float* step_size;
  const float* inverse_correction2;
  const float* gradient_scale;
  const float* apply;
};
struct AdamWArrays {
  float* parameters;
  const float* gradients;
  float* first_moment;
  float* second_moment;
  Bf16* rounded;  // nullptr: none
  std::int64_t numel;
};
// Bytes an element: 28, with `rounded` 30; none when *apply is 0.
cudaError_t launch_adamw(const AdamWArrays& arrays, const AdamWScalars& at, float beta1, float beta2, float epsilon,
                         cudaStream_t stream);

}  // namespace atl::cuda
