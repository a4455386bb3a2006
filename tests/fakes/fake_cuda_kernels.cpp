// The launchers of kernels/model, by its kernels for the CPU, on the fake runtime's streams: what a test links in place
// of the CUDA kernels, which tests/cuda_on_cpu tries themselves.
#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/model/attention.h"
#include "kernels/model/attention_cuda.h"
#include "kernels/model/cached_attention.h"
#include "kernels/model/cached_attention_cuda.h"
#include "kernels/model/cached_attention_split.h"
#include "kernels/model/gemm.h"
#include "kernels/model/model_cuda.h"
#include "kernels/model/model_kernels.h"
#include "tests/fakes/fake_cuda_runtime.h"
#include "trainer/device/cuda_add.h"

namespace atl::cuda {
namespace {

using test::FakeCuda;

atl::AttentionSizes on_cpu(const AttentionSizes& sizes) {
  return {sizes.length, sizes.heads, sizes.key_value_heads, sizes.head_dim};
}

// Aligned as attention wants it.
struct Scratch {
  explicit Scratch(const atl::AttentionSizes& sizes)
      : bytes(static_cast<std::size_t>(attention_scratch_bytes(sizes)) + 64) {}
  std::byte* aligned() {
    const auto address = reinterpret_cast<std::uintptr_t>(bytes.data());
    return bytes.data() + (64 - address % 64) % 64;
  }
  std::vector<std::byte> bytes;
};

template <class Sum>
cudaError_t launch_sum(Sum* sum, const Sum* values, std::int64_t numel, cudaStream_t stream) {
  return FakeCuda::launch(stream, [=] {
    for (std::int64_t i = 0; i < numel; ++i) sum[i] += values[i];
  });
}

}  // namespace

template <class T>
cudaError_t launch_fill(T* x, std::int64_t numel, float value, cudaStream_t stream) {
  return FakeCuda::launch(stream, [=] { std::fill_n(x, numel, static_cast<T>(value)); });
}

cudaError_t launch_convert(const float* from, Bf16* to, std::int64_t numel, cudaStream_t stream) {
  return FakeCuda::launch(stream, [=] { value_kernels().round_to_bf16(from, numel, to); });
}

cudaError_t launch_add(float* sum, const float* values, std::int64_t numel, cudaStream_t stream) {
  return launch_sum(sum, values, numel, stream);
}
cudaError_t launch_add_doubles(double* sum, const double* values, std::int64_t numel, cudaStream_t stream) {
  return launch_sum(sum, values, numel, stream);
}

template <class T>
cudaError_t launch_embed(const T* table, const std::int32_t* tokens, std::int64_t rows, std::int64_t hidden, T* x,
                         cudaStream_t stream) {
  return FakeCuda::launch(stream, [=] { model_kernels<T>().embed(table, tokens, rows, hidden, x); });
}

template <class T>
cudaError_t launch_embed_backward(const T* dx, const std::int32_t* tokens, const std::int32_t* order, std::int64_t rows,
                                  std::int64_t hidden, float* gradient, cudaStream_t stream) {
  return FakeCuda::launch(stream, [=] {
    for (std::int64_t i = 0; i < rows; ++i) {
      model_kernels<T>().embed_backward(dx + order[i] * hidden, tokens + order[i], 1, hidden, gradient);
    }
  });
}

template <class T>
cudaError_t launch_rms_norm(const T* x, const T* weight, float epsilon, std::int64_t rows, std::int64_t hidden, T* y,
                            float* inverse_rms, cudaStream_t stream) {
  return FakeCuda::launch(stream,
                          [=] { model_kernels<T>().rms_norm(x, weight, epsilon, rows, hidden, y, inverse_rms); });
}

template <class T>
cudaError_t launch_rms_norm_backward(const RmsNormGradient<T>& g, cudaStream_t stream) {
  return FakeCuda::launch(stream, [g] {
    if (!g.accumulate) std::fill_n(g.dweight, g.hidden, 0.0f);
    for (std::int64_t first = 0; first < g.rows; first += g.part_rows) {
      const std::int64_t rows = std::min(g.part_rows, g.rows - first);
      const std::int64_t at = first * g.hidden;
      float* partial = g.partial + first / g.part_rows * g.hidden;
      model_kernels<T>().rms_norm_backward(g.dy + at, g.x + at, g.weight, g.inverse_rms + first,
                                           g.residual != nullptr ? g.residual + at : nullptr, rows, g.hidden, g.dx + at,
                                           partial);
      value_kernels().add(g.dweight, partial, g.hidden);
    }
  });
}

template <class T>
cudaError_t launch_rope(T* x, std::int64_t stride, std::int64_t rows, const float* cosines, const float* sines,
                        std::int64_t heads, std::int64_t head_dim, std::int64_t length, const std::int32_t* starts,
                        float direction, cudaStream_t stream) {
  return FakeCuda::launch(stream, [=] {
    for (std::int64_t row = 0; row < rows; ++row) {
      const std::int64_t angle = (row % length - (starts == nullptr ? 0 : starts[row])) * (head_dim / 2);
      model_kernels<T>().rope_row(x + row * stride, cosines + angle, sines + angle, heads, head_dim, direction);
    }
  });
}

template <class T>
cudaError_t launch_swiglu(const T* gate_up, std::int64_t rows, std::int64_t inner, T* out, cudaStream_t stream) {
  return FakeCuda::launch(stream, [=] { model_kernels<T>().swiglu(gate_up, rows, inner, out); });
}
template <class T>
cudaError_t launch_swiglu_backward(const T* dout, const T* gate_up, std::int64_t rows, std::int64_t inner, T* dgate_up,
                                   cudaStream_t stream) {
  return FakeCuda::launch(stream, [=] { model_kernels<T>().swiglu_backward(dout, gate_up, rows, inner, dgate_up); });
}

template <class T>
cudaError_t launch_cross_entropy(const CrossEntropyRows<T>& o, cudaStream_t stream) {
  return FakeCuda::launch(stream, [o] {
    const LossSums sums =
        model_kernels<T>().cross_entropy(o.logits, o.labels, o.rows, o.vocab, *o.scale, o.max_z_loss, o.gradient);
    *o.cross_entropy += sums.cross_entropy;
    *o.squared_largest += sums.squared_max_logit;
  });
}

cudaError_t launch_squared_norm(const float* x, std::int64_t numel, std::int64_t part, double* scratch, double* sum,
                                cudaStream_t stream) {
  return FakeCuda::launch(stream, [=] {
    *sum = 0;
    for (std::int64_t first = 0; first < numel; first += part) {
      scratch[first / part] = value_kernels().sum_of_squares(x + first, std::min(part, numel - first));
      *sum += scratch[first / part];
    }
  });
}

cudaError_t launch_stop(float* apply, float* stopped, cudaStream_t stream) {
  return FakeCuda::launch(stream, [=] {
    const bool finite = *apply != 0;
    if (*stopped != 0) *apply = 0;
    if (!finite) *stopped = 1;
  });
}

cudaError_t launch_clip_scale(const ClipScalars& at, float clip_norm, cudaStream_t stream) {
  return FakeCuda::launch(stream, [at, clip_norm] {
    const double norm = std::sqrt(*at.gradient_squares);
    const bool finite =
        std::isfinite(*at.cross_entropy) && std::isfinite(*at.squared_largest_logit) && std::isfinite(norm);
    const double factor = clip_norm > 0 ? std::min(1.0, static_cast<double>(clip_norm) / (norm + 1e-6)) : 1.0;
    *at.gradient_scale = finite ? static_cast<float>(factor) : 0.0f;
    *at.apply = finite ? 1.0f : 0.0f;
  });
}

cudaError_t launch_adamw(const AdamWArrays& arrays, const AdamWScalars& at, float beta1, float beta2, float epsilon,
                         cudaStream_t stream) {
  return FakeCuda::launch(stream, [=] {
    if (*at.apply == 0) return;
    model_kernels<float>().adamw(arrays.parameters, arrays.gradients, arrays.first_moment, arrays.second_moment,
                                 arrays.rounded, arrays.numel,
                                 {.decay = *at.decay,
                                  .step_size = *at.step_size,
                                  .inverse_correction2 = *at.inverse_correction2,
                                  .gradient_scale = *at.gradient_scale,
                                  .beta1 = beta1,
                                  .beta2 = beta2,
                                  .epsilon = epsilon});
  });
}

template <class T>
cudaError_t launch_attention(const AttentionForward<T>& o, cudaStream_t stream) {
  return FakeCuda::launch(stream, [o] {
    const AttentionPass<T> pass{on_cpu(o.sizes), o.qkv, o.out, o.logsumexp, o.starts};
    Scratch scratch(pass.sizes);
    for (std::int64_t task = 0; task < o.sizes.sequences * o.sizes.heads; ++task) {
      attention_head<T>(pass, task / o.sizes.heads, task % o.sizes.heads, scratch.aligned(), reference_sgemm);
    }
  });
}

template <class T>
cudaError_t launch_attention_backward(const AttentionGradient<T>& o, cudaStream_t stream) {
  return FakeCuda::launch(stream, [o] {
    std::fill_n(o.scratch, attention_backward_scratch_numel(o.sizes), std::nanf(""));
    const AttentionBackwardPass<T> pass{on_cpu(o.sizes), o.dout, o.qkv, o.out, o.logsumexp, o.dqkv, o.starts};
    Scratch scratch(pass.sizes);
    const std::int64_t groups = o.sizes.key_value_heads;
    for (std::int64_t task = 0; task < o.sizes.sequences * groups; ++task) {
      attention_backward_group<T>(pass, task / groups, task % groups, scratch.aligned(), reference_sgemm);
    }
  });
}

template <class T>
cudaError_t launch_cached_attention(const CachedAttentionRows<T>& o, cudaStream_t stream) {
  return FakeCuda::launch(stream, [o] {
    std::fill_n(o.scratch, cached_scratch_numel(o.rows, o.heads, o.key_value_heads, o.head_dim, o.capacity),
                std::nanf(""));
    const CachedAttentionPass<T> pass{
        {o.heads, o.key_value_heads, o.head_dim, o.capacity}, o.qkv, o.keys, o.values, o.out};
    for (std::int64_t row = 0; row < o.rows; ++row) {
      if (o.slot_of[row] < 0) std::fill_n(o.out + row * o.heads * o.head_dim, o.heads * o.head_dim, T{});
      for (std::int64_t head = 0; o.slot_of[row] >= 0 && head < o.key_value_heads; ++head) {
        const T* const key = o.qkv + row * pass.sizes.qkv_columns() + (o.heads + head) * o.head_dim;
        const std::int64_t place =
            ((o.slot_of[row] * o.key_value_heads + head) * o.capacity + o.position_of[row]) * o.head_dim;
        std::copy_n(key, o.head_dim, o.keys + place);
        std::copy_n(key + o.key_value_heads * o.head_dim, o.head_dim, o.values + place);
      }
    }
    std::vector<std::byte> bytes(static_cast<std::size_t>(cached_attention_scratch_bytes(pass.sizes)) + 64);
    std::byte* const scratch = bytes.data() + (64 - reinterpret_cast<std::uintptr_t>(bytes.data()) % 64) % 64;
    for (std::int64_t row = 0; row < o.rows; ++row) {
      for (std::int64_t head = 0; o.slot_of[row] >= 0 && head < o.key_value_heads; ++head) {
        cached_attention_group<T>(pass, {row, 1, o.slot_of[row], o.position_of[row]}, head, scratch, reference_sgemm);
      }
    }
  });
}

template <class T>
cudaError_t launch_log_probability(const LogProbabilityRows<T>& o, cudaStream_t stream) {
  return FakeCuda::launch(stream, [o] {
    std::vector<float> logits(static_cast<std::size_t>(o.vocab));
    for (std::int64_t row = 0; row < o.rows; ++row) {
      const T* const of_row = o.logits + row * o.vocab;
      if constexpr (std::is_same_v<T, Bf16>) {
        value_kernels().widen(of_row, o.vocab, logits.data());
      } else {
        std::copy_n(of_row, o.vocab, logits.data());
      }
      const auto largest = std::max_element(logits.begin(), logits.end());
      double sum = 0;
      for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - static_cast<double>(*largest));
      const std::int32_t label = o.labels[row];
      const float off = logits[static_cast<std::size_t>(label)] - *largest;
      o.log_probabilities[row] = static_cast<float>(static_cast<double>(off) - std::log(sum));
      o.greedy[row] = largest - logits.begin() == label ? 1 : 0;
    }
  });
}

template cudaError_t launch_fill(float*, std::int64_t, float, cudaStream_t);
template cudaError_t launch_fill(double*, std::int64_t, float, cudaStream_t);
#define ATOLL_BOTH_TYPES(T)                                                                                       \
  template cudaError_t launch_embed(const T*, const std::int32_t*, std::int64_t, std::int64_t, T*, cudaStream_t); \
  template cudaError_t launch_embed_backward(const T*, const std::int32_t*, const std::int32_t*, std::int64_t,    \
                                             std::int64_t, float*, cudaStream_t);                                 \
  template cudaError_t launch_rms_norm(const T*, const T*, float, std::int64_t, std::int64_t, T*, float*,         \
                                       cudaStream_t);                                                             \
  template cudaError_t launch_rms_norm_backward(const RmsNormGradient<T>&, cudaStream_t);                         \
  template cudaError_t launch_rope(T*, std::int64_t, std::int64_t, const float*, const float*, std::int64_t,      \
                                   std::int64_t, std::int64_t, const std::int32_t*, float, cudaStream_t);         \
  template cudaError_t launch_swiglu(const T*, std::int64_t, std::int64_t, T*, cudaStream_t);                     \
  template cudaError_t launch_swiglu_backward(const T*, const T*, std::int64_t, std::int64_t, T*, cudaStream_t);  \
  template cudaError_t launch_cross_entropy(const CrossEntropyRows<T>&, cudaStream_t);                            \
  template cudaError_t launch_attention(const AttentionForward<T>&, cudaStream_t);                                \
  template cudaError_t launch_cached_attention(const CachedAttentionRows<T>&, cudaStream_t);                      \
  template cudaError_t launch_log_probability(const LogProbabilityRows<T>&, cudaStream_t);                        \
  template cudaError_t launch_attention_backward(const AttentionGradient<T>&, cudaStream_t);
ATOLL_BOTH_TYPES(float)
ATOLL_BOTH_TYPES(Bf16)
#undef ATOLL_BOTH_TYPES

}  // namespace atl::cuda
