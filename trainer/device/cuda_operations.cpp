#include "trainer/device/cuda_operations.h"

#include <fmt/format.h>

#include <stdexcept>
#include <string>

#include "kernels/model/cached_attention_cuda.h"
#include "kernels/model/model_cuda.h"
#include "net/step/operands.h"
#include "trainer/device/cuda_add.h"
#include "trainer/device/cuda_check.h"

namespace atl {
namespace {

class CudaRunner {
 public:
  CudaRunner(const CudaTools& tools, StreamId stream, cudaStream_t cuda_stream)
      : tools_(tools), stream_id_(stream), stream_(cuda_stream) {}

  cudaError_t operator()(const Fill& o) const {
    if (o.value == 0)
      return cudaMemsetAsync(at<std::byte>(o.x), 0, static_cast<std::size_t>(o.x.extent_bytes()), stream_);
    if (o.x.dtype != DType::kFloat32) throw std::logic_error("only fp32 is filled with anything but 0");
    return cuda::launch_fill(at<float>(o.x), o.x.numel(), o.value, stream_);
  }

  cudaError_t operator()(const Convert& o) const {
    return cuda::launch_convert(at<float>(o.from), at<Bf16>(o.to), o.from.numel(), stream_);
  }

  cudaError_t operator()(const Embed& o) const {
    return typed(o.x, [&]<class T>(T) {
      return cuda::launch_embed(at<T>(o.table), at<std::int32_t>(o.tokens), o.x.rows, o.x.columns, at<T>(o.x), stream_);
    });
  }

  cudaError_t operator()(const EmbedBackward& o) const {
    return typed(o.dx, [&]<class T>(T) {
      return cuda::launch_embed_backward(at<T>(o.dx), at<std::int32_t>(o.tokens), at<std::int32_t>(o.order), o.dx.rows,
                                         o.dx.columns, at<float>(o.gradient), stream_);
    });
  }

  cudaError_t operator()(const RmsNorm& o) const {
    return typed(o.x, [&]<class T>(T) {
      return cuda::launch_rms_norm(at<T>(o.x), at<T>(o.weight), o.epsilon, o.x.rows, o.x.columns, at<T>(o.y),
                                   at<float>(o.inverse_rms), stream_);
    });
  }

  cudaError_t operator()(const RmsNormBackward& o) const {
    return typed(o.x, [&]<class T>(T) {
      return cuda::launch_rms_norm_backward(
          cuda::RmsNormGradient<T>{.dy = at<T>(o.dy),
                                   .x = at<T>(o.x),
                                   .weight = at<T>(o.weight),
                                   .inverse_rms = at<float>(o.inverse_rms),
                                   .residual = o.residual ? at<T>(*o.residual) : nullptr,
                                   .rows = o.x.rows,
                                   .hidden = o.x.columns,
                                   .part_rows = kNormPartRows,
                                   .dx = at<T>(o.dx),
                                   .partial = at<float>(o.partial),
                                   .dweight = at<float>(o.dweight),
                                   .accumulate = o.accumulate},
          stream_);
    });
  }

  cudaError_t operator()(const MatMul& o) const {
    tools_.products.multiply({.shape = o,
                              .a = at<std::byte>(o.a),
                              .b = at<std::byte>(o.b),
                              .add = o.add ? at<std::byte>(*o.add) : nullptr,
                              .out = at<std::byte>(o.out)},
                             stream_id_, stream_);
    return cudaSuccess;
  }

  cudaError_t operator()(const Rope& o) const {
    return typed(o.x, [&]<class T>(T) {
      return cuda::launch_rope(at<T>(o.x), o.x.stride, o.x.rows, at<float>(o.cosines), at<float>(o.sines), o.heads,
                               o.head_dim, o.length, starts_of(o), o.direction, stream_);
    });
  }

  cudaError_t operator()(const Attention& o) const {
    tools_.attention.forward(call_of(o), stream_);
    return cudaSuccess;
  }

  cudaError_t operator()(const AttentionBackward& o) const {
    AttentionCall call = call_of(o);
    call.dout = at<std::byte>(o.dout);
    call.dout_stride = o.dout.stride;
    call.dqkv = at<std::byte>(o.dqkv);
    call.dqkv_stride = o.dqkv.stride;
    tools_.attention.backward(call, stream_);
    return cudaSuccess;
  }

  cudaError_t operator()(const Swiglu& o) const {
    return typed(o.out, [&]<class T>(T) {
      return cuda::launch_swiglu(at<T>(o.gate_up), o.out.rows, o.out.columns, at<T>(o.out), stream_);
    });
  }

  cudaError_t operator()(const SwigluBackward& o) const {
    return typed(o.dout, [&]<class T>(T) {
      return cuda::launch_swiglu_backward(at<T>(o.dout), at<T>(o.gate_up), o.dout.rows, o.dout.columns,
                                          at<T>(o.dgate_up), stream_);
    });
  }

  cudaError_t operator()(const CrossEntropy& o) const {
    auto* sums = at<double>(o.sums);
    return typed(o.logits, [&]<class T>(T) {
      return cuda::launch_cross_entropy(cuda::CrossEntropyRows<T>{.logits = at<T>(o.logits),
                                                                  .labels = at<std::int32_t>(o.labels),
                                                                  .scale = at<float>(o.scale),
                                                                  .rows = o.logits.rows,
                                                                  .vocab = o.logits.columns,
                                                                  .max_z_loss = o.max_z_loss,
                                                                  .gradient = o.gradient,
                                                                  .row_sums = at<float>(o.row_sums),
                                                                  .cross_entropy = sums,
                                                                  .squared_largest = sums + 1},
                                        stream_);
    });
  }

  cudaError_t operator()(const SquaredNorm& o) const {
    return cuda::launch_squared_norm(at<float>(o.x), o.x.numel(), kSquarePart, at<double>(o.scratch), at<double>(o.sum),
                                     stream_);
  }

  cudaError_t operator()(const ClipScale& o) const {
    const auto* sums = at<double>(o.sums);
    float* apply = scalar(o.scalars, StepScalar::kApply);
    const auto scaled =
        cuda::launch_clip_scale({.cross_entropy = sums + static_cast<int>(StepSum::kCrossEntropy),
                                 .squared_largest_logit = sums + static_cast<int>(StepSum::kSquaredLargestLogit),
                                 .gradient_squares = sums + static_cast<int>(StepSum::kGradientSquares),
                                 .inverse_tokens = scalar(o.scalars, StepScalar::kLossScale),
                                 .gradient_scale = scalar(o.scalars, StepScalar::kGradientScale),
                                 .apply = apply},
                                o.clip_norm, stream_);
    if (scaled != cudaSuccess) return scaled;
    return cuda::launch_stop(apply, scalar(o.scalars, StepScalar::kStopped), stream_);
  }

  cudaError_t operator()(const AdamW& o) const {
    return cuda::launch_adamw({.parameters = at<float>(o.parameters),
                               .gradients = at<float>(o.gradients),
                               .first_moment = at<float>(o.first_moment),
                               .second_moment = at<float>(o.second_moment),
                               .rounded = o.rounded ? at<Bf16>(*o.rounded) : nullptr,
                               .numel = o.parameters.numel()},
                              {.decay = scalar(o.scalars, StepScalar::kDecay),
                               .step_size = scalar(o.scalars, StepScalar::kStepSize),
                               .inverse_correction2 = scalar(o.scalars, StepScalar::kInverseCorrection2),
                               .gradient_scale = scalar(o.scalars, StepScalar::kGradientScale),
                               .apply = scalar(o.scalars, StepScalar::kApply)},
                              o.beta1, o.beta2, o.epsilon, stream_);
  }

  cudaError_t operator()(const AllGather& o) const {
    tools_.collectives.all_gather(o.shard.dtype, at<std::byte>(o.shard), at<std::byte>(o.full),
                                  static_cast<std::size_t>(o.shard.numel()), stream_);
    return cudaSuccess;
  }

  cudaError_t operator()(const ReduceScatter& o) const {
    tools_.collectives.reduce_scatter(at<float>(o.full), at<float>(o.shard),
                                      o.scratch ? at<float>(*o.scratch) : nullptr,
                                      static_cast<std::size_t>(o.shard.numel()), o.accumulate, stream_);
    return cudaSuccess;
  }

  cudaError_t operator()(const AllReduce& o) const {
    tools_.collectives.all_reduce_sum(at<double>(o.values), static_cast<std::size_t>(o.values.numel()), stream_);
    return cudaSuccess;
  }

  cudaError_t operator()(const CachedAttention& o) const {
    return typed(o.qkv, [&]<class T>(T) {
      return cuda::launch_cached_attention(cuda::CachedAttentionRows<T>{.rows = o.qkv.rows,
                                                                        .heads = o.heads,
                                                                        .key_value_heads = o.key_value_heads,
                                                                        .head_dim = o.head_dim,
                                                                        .capacity = o.capacity,
                                                                        .qkv = at<T>(o.qkv),
                                                                        .slot_of = at<std::int32_t>(o.slots),
                                                                        .position_of = at<std::int32_t>(o.positions),
                                                                        .keys = at<T>(o.keys),
                                                                        .values = at<T>(o.values),
                                                                        .out = at<T>(o.out),
                                                                        .scratch = at<float>(o.scratch)},
                                           stream_);
    });
  }

  cudaError_t operator()(const LogProbability& o) const {
    return typed(o.logits, [&]<class T>(T) {
      return cuda::launch_log_probability(
          cuda::LogProbabilityRows<T>{.logits = at<T>(o.logits),
                                      .labels = at<std::int32_t>(o.labels),
                                      .rows = o.logits.rows,
                                      .vocab = o.logits.columns,
                                      .log_probabilities = at<float>(o.log_probabilities),
                                      .greedy = at<std::int32_t>(o.greedy)},
          stream_);
    });
  }

 private:
  template <class T>
  T* at(const Tensor& tensor) const {
    return reinterpret_cast<T*>(tools_.arenas[static_cast<std::size_t>(tensor.arena)] + tensor.byte);
  }
  float* scalar(const Tensor& scalars, StepScalar which) const { return at<float>(scalars) + static_cast<int>(which); }

  template <class Task>
  static cudaError_t typed(const Tensor& tensor, Task&& task) {
    return tensor.dtype == DType::kBfloat16 ? task(Bf16{}) : task(float{});
  }

  const std::int32_t* starts_of(const auto& o) const { return o.starts ? at<std::int32_t>(*o.starts) : nullptr; }

  template <class AnyAttention>
  AttentionCall call_of(const AnyAttention& o) const {
    return {.shape = o.shape,
            .dtype = o.qkv.dtype,
            .qkv = at<std::byte>(o.qkv),
            .qkv_stride = o.qkv.stride,
            .out = at<std::byte>(o.out),
            .out_stride = o.out.stride,
            .logsumexp = at<float>(o.logsumexp),
            .starts = starts_of(o),
            .scratch = at<std::byte>(o.scratch),
            .scratch_bytes = o.scratch.extent_bytes()};
  }

  const CudaTools& tools_;
  const StreamId stream_id_;
  const cudaStream_t stream_;
};

constexpr const char* kNames[] = {"Fill",          "Convert",           "Embed",     "EmbedBackward",
                                  "RmsNorm",       "RmsNormBackward",   "MatMul",    "Rope",
                                  "Attention",     "AttentionBackward", "Swiglu",    "SwigluBackward",
                                  "CrossEntropy",  "SquaredNorm",       "ClipScale", "AdamW",
                                  "AllGather",     "ReduceScatter",     "AllReduce", "CachedAttention",
                                  "LogProbability"};
static_assert(std::size(kNames) == std::variant_size_v<Operation>);

}  // namespace

std::string describe(const Operation& operation) {
  std::string words = kNames[operation.index()];
  bool first = true;
  for_each_operand(operation, [&](const Tensor& tensor, Access) {
    if (!first) return;
    first = false;
    const char* dtype = tensor.dtype == DType::kBfloat16  ? "bf16"
                        : tensor.dtype == DType::kFloat32 ? "fp32"
                        : tensor.dtype == DType::kInt32   ? "int32"
                                                          : "fp64";
    words += fmt::format(" [{}, {}] {}", tensor.rows, tensor.columns, dtype);
  });
  return words;
}

void enqueue(const CudaTools& tools, const Operation& operation, StreamId stream, cudaStream_t cuda_stream) {
  check_cuda(std::visit(CudaRunner(tools, stream, cuda_stream), operation), [&] { return describe(operation); });
}

}  // namespace atl
