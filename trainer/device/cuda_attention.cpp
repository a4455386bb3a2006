#include "trainer/device/cuda_attention.h"

#include <fmt/format.h>

#include <stdexcept>

#include "kernels/model/attention_cuda.h"
#include "trainer/device/cuda_check.h"

namespace atl {
namespace {

cuda::AttentionSizes sizes_of(const AttentionShape& shape) {
  return {shape.sequences, shape.length, shape.heads, shape.key_value_heads, shape.head_dim};
}

template <class T>
cudaError_t launch_forward(const AttentionCall& call, cudaStream_t stream) {
  return cuda::launch_attention(cuda::AttentionForward<T>{.sizes = sizes_of(call.shape),
                                                          .qkv = reinterpret_cast<const T*>(call.qkv),
                                                          .qkv_stride = call.qkv_stride,
                                                          .out = reinterpret_cast<T*>(call.out),
                                                          .out_stride = call.out_stride,
                                                          .logsumexp = call.logsumexp,
                                                          .starts = call.starts},
                                stream);
}

template <class T>
cudaError_t launch_backward(const AttentionCall& call, cudaStream_t stream) {
  return cuda::launch_attention_backward(cuda::AttentionGradient<T>{.sizes = sizes_of(call.shape),
                                                                    .dout = reinterpret_cast<const T*>(call.dout),
                                                                    .dout_stride = call.dout_stride,
                                                                    .qkv = reinterpret_cast<const T*>(call.qkv),
                                                                    .qkv_stride = call.qkv_stride,
                                                                    .out = reinterpret_cast<const T*>(call.out),
                                                                    .out_stride = call.out_stride,
                                                                    .logsumexp = call.logsumexp,
                                                                    .dqkv = reinterpret_cast<T*>(call.dqkv),
                                                                    .dqkv_stride = call.dqkv_stride,
                                                                    .scratch = reinterpret_cast<float*>(call.scratch),
                                                                    .starts = call.starts},
                                         stream);
}

class OwnAttention final : public CudaAttention {
 public:
  void forward(const AttentionCall& call, cudaStream_t stream) override {
    check_cuda(
        call.dtype == DType::kBfloat16 ? launch_forward<Bf16>(call, stream) : launch_forward<float>(call, stream),
        "launch attention");
  }

  void backward(const AttentionCall& call, cudaStream_t stream) override {
    const std::int64_t needed =
        cuda::attention_backward_scratch_numel(sizes_of(call.shape)) * static_cast<std::int64_t>(sizeof(float));
    if (call.scratch_bytes < needed) {
      throw std::logic_error(fmt::format("attention's scratch is {} bytes, {} are needed", call.scratch_bytes, needed));
    }
    check_cuda(
        call.dtype == DType::kBfloat16 ? launch_backward<Bf16>(call, stream) : launch_backward<float>(call, stream),
        "launch attention's backward pass");
  }
};

}  // namespace

std::unique_ptr<CudaAttention> make_own_attention() { return std::make_unique<OwnAttention>(); }

}  // namespace atl
