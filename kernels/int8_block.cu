#include "kernels/block_cuda.h"
#include "kernels/codec_cuda.h"

namespace atl::cuda {
namespace {

// A warp takes two blocks, of which each lane has a run of four values: a pair's bytes are whole words of four, though
// a block's are not.
//
//   word 0: scale, q 0 1 | words 1 .. 31: q 2 .. 125 | word 32: q 126 127, second scale | words 33 .. 64: its q
static_assert(2 * kInt8BlockNumel == kBlockNumel && kInt8BlockNumel == 4 * kWarp);
using Decode = DeviceDecode<WireFormat::kInt8Block>;
constexpr std::int64_t kBytes = Decode::kBytes;
constexpr std::int64_t kPairBytes = 2 * kBytes;

struct FirstOfRun {
  int lane;
  __device__ int operator()(int run) const { return run * static_cast<int>(kInt8BlockNumel) + lane * 4; }
};

struct EncodedRun {
  std::uint32_t scale;  // bf16
  std::uint32_t q;      // four
};

__device__ EncodedRun encode_run(const float* value) {
  std::uint32_t largest = 0;
#pragma unroll
  for (int k = 0; k < 4; ++k) largest = max(largest, __float_as_uint(value[k]) & kMagnitudeMask);
  largest = __reduce_max_sync(0xffffffffu, largest);
  const std::uint32_t quotient = __float_as_uint(__fdiv_rn(__uint_as_float(largest), kInt8Steps));
  const std::uint32_t rounded_up = (quotient + 0xffffu) & 0xffff0000u;
  const float scale = __uint_as_float(rounded_up);
  if (largest >= kInfinityBits) return {kQuietNaNBits >> 16, 0};
  if (scale < kMinInt8Scale) return {0, 0};
  const float inverse = __fdiv_rn(1.0f, scale);
  std::uint32_t packed = 0;
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    packed |= (static_cast<std::uint32_t>(__float2int_rn(__fmul_rn(value[k], inverse))) & 0xffu) << (8 * k);
  }
  return {rounded_up >> 16, packed};
}

__device__ void store_short_run(const EncodedRun& run, int lane, int count, std::byte* block) {
  if (count <= 0) return;
  if (lane == 0) *reinterpret_cast<std::uint16_t*>(block) = static_cast<std::uint16_t>(run.scale);
  for (int k = 0; k < 4; ++k) {
    if (4 * lane + k < count) block[Decode::kHeadBytes + 4 * lane + k] = static_cast<std::byte>(run.q >> (8 * k));
  }
}

__device__ EncodedRun load_short_run(int lane, int count, const std::byte* block) {
  if (count <= 0) return {0, 0};
  EncodedRun run{Decode::scale_bits_of(block), 0};
  for (int k = 0; k < 4; ++k) {
    if (4 * lane + k < count) run.q |= static_cast<std::uint32_t>(block[Decode::kHeadBytes + 4 * lane + k]) << (8 * k);
  }
  return run;
}

__global__ void encode_kernel(const float* __restrict__ x, std::int64_t numel, std::byte* __restrict__ encoded) {
  const WarpBlock pair = block_of_warp(numel);
  float value[kPerLane];
  load_lane(x + pair.index * kBlockNumel, pair.count, FirstOfRun{pair.lane}, value);
  const EncodedRun first = encode_run(value);
  const EncodedRun second = encode_run(value + 4);
  const std::uint32_t before = __shfl_up_sync(0xffffffffu, first.q, 1);
  if (pair.count == 0) return;
  std::byte* const bytes = encoded + pair.index * kPairBytes;
  if (pair.count == kBlockNumel) {
    auto* const words = reinterpret_cast<std::uint32_t*>(bytes);
    words[pair.lane] = (pair.lane == 0 ? first.scale : before >> 16) | first.q << 16;
    if (pair.lane == kWarp - 1) words[kWarp] = first.q >> 16 | second.scale << 16;
    words[kWarp + 1 + pair.lane] = second.q;
  } else {
    const int block = static_cast<int>(kInt8BlockNumel);
    store_short_run(first, pair.lane, min(pair.count, block), bytes);
    store_short_run(second, pair.lane, pair.count - block, bytes + kBytes);
  }
}

template <bool kAdd>
__device__ void decode_run(const EncodedRun& run, float* value) {
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    const float decoded = Decode::value(run.scale, static_cast<std::int8_t>(run.q >> (8 * k)));
    value[k] = kAdd ? added(value[k], decoded) : decoded;
  }
}

template <bool kAdd>
__global__ void decode_kernel(const std::byte* __restrict__ encoded, std::int64_t numel, float* __restrict__ x) {
  const WarpBlock pair = block_of_warp(numel);
  if (pair.count == 0) return;
  const FirstOfRun first_of_run{pair.lane};
  const std::byte* const bytes = encoded + pair.index * kPairBytes;
  float* const values = x + pair.index * kBlockNumel;
  float value[kPerLane];
  if constexpr (kAdd) load_lane(values, pair.count, first_of_run, value);
  EncodedRun first{};
  EncodedRun second{};
  if (pair.count == kBlockNumel) {
    const auto* const words = reinterpret_cast<const std::uint32_t*>(bytes);
    const std::uint32_t word = words[pair.lane];
    const std::uint32_t middle = words[kWarp];
    const std::uint32_t after = __shfl_down_sync(0xffffffffu, word, 1);
    first = {__shfl_sync(0xffffffffu, word, 0) & 0xffffu, word >> 16 | (pair.lane == kWarp - 1 ? middle : after) << 16};
    second = {middle >> 16, words[kWarp + 1 + pair.lane]};
  } else {
    const int block = static_cast<int>(kInt8BlockNumel);
    first = load_short_run(pair.lane, min(pair.count, block), bytes);
    second = load_short_run(pair.lane, pair.count - block, bytes + kBytes);
  }
  decode_run<kAdd>(first, value);
  decode_run<kAdd>(second, value + 4);
  store_lane(values, pair.count, first_of_run, value);
}

}  // namespace

cudaError_t encode_int8_block(const float* x, std::int64_t numel, std::byte* encoded, cudaStream_t stream) {
  encode_kernel<<<groups_for(numel), kThreads, 0, stream>>>(x, numel, encoded);
  return cudaGetLastError();
}

cudaError_t decode_int8_block(const std::byte* encoded, std::int64_t numel, bool add, float* x, cudaStream_t stream) {
  const auto kernel = add ? decode_kernel<true> : decode_kernel<false>;
  kernel<<<groups_for(numel), kThreads, 0, stream>>>(encoded, numel, x);
  return cudaGetLastError();
}

}  // namespace atl::cuda
