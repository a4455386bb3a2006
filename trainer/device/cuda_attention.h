// Attention on one GPU: cuDNN's where it takes the shape, else the kernels of kernels/model. Owned and used by the
// device's thread.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>

#include "net/base/gpu_libraries.h"
#include "net/base/result.h"
#include "net/step/operation.h"

namespace atl {

// An Attention or AttentionBackward (net/step/operation.h) whose operands have their addresses. Strides in elements. Of
// AttentionBackward alone: dout, dqkv.
struct AttentionCall {
  AttentionShape shape;
  DType dtype = DType::kFloat32;
  const std::byte* qkv = nullptr;
  std::int64_t qkv_stride = 0;
  std::byte* out = nullptr;
  std::int64_t out_stride = 0;
  float* logsumexp = nullptr;
  const std::int32_t* starts = nullptr;  // of documents; nullptr: none
  const std::byte* dout = nullptr;
  std::int64_t dout_stride = 0;
  std::byte* dqkv = nullptr;
  std::int64_t dqkv_stride = 0;
  std::byte* scratch = nullptr;
  std::int64_t scratch_bytes = 0;
};

class CudaAttention {
 public:
  virtual ~CudaAttention() = default;
  virtual void forward(const AttentionCall& call, cudaStream_t stream) = 0;
  virtual void backward(const AttentionCall& call, cudaStream_t stream) = 0;
};

// kernels/model/attention_cuda.h: any shape and type.
std::unique_ptr<CudaAttention> make_own_attention();

// Whether there is cuDNN, and this program was built with its front end; the error says why not.
Status cudnn_attention_loads(const std::filesystem::path& libtorch = libtorch_directory());
// cuDNN's fused attention, with `otherwise` for what it does not take: attention within documents (whose number a plan
// of cuDNN's would have to know), fp32, head sizes that are no multiples of 8 or over 128, lengths that are no
// multiples of kCudnnLengths, more workspace than the call has scratch. Which of them computes a shape is logged when
// it first comes. On the device's thread, with its GPU current.
Result<std::unique_ptr<CudaAttention>> make_cudnn_attention(
    std::unique_ptr<CudaAttention> otherwise, const std::filesystem::path& libtorch = libtorch_directory());
// Sampling comes with each length once, and cuDNN takes longer to plan a shape than the other kernels to compute it.
inline constexpr std::int64_t kCudnnLengths = 64;

}  // namespace atl
