// kernels/wire_codec_cuda.h for a GPU in host memory: the host's codec, on the stream.
#include "kernels/wire_codec.h"
#include "kernels/wire_codec_cuda.h"
#include "tests/fakes/fake_cuda_runtime.h"

namespace atl {

cudaError_t launch_encode(WireFormat format, const float* x, std::int64_t numel, std::byte* encoded,
                          cudaStream_t stream) {
  const auto bytes = static_cast<std::size_t>(encoded_bytes(format, numel));
  const auto count = static_cast<std::size_t>(numel);
  if (!test::FakeCuda::on_a_gpu(x, count * sizeof(float)) || !test::FakeCuda::on_a_gpu(encoded, bytes)) {
    return cudaErrorIllegalAddress;
  }
  return test::FakeCuda::launch(stream, [=] { encode_values(format, {x, count}, {encoded, bytes}); });
}

}  // namespace atl
