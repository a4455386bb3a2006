#include "kernels/outer_nesterov.h"

#include <algorithm>
#include <vector>

#include "kernels/wire_codec.h"

namespace atl {
namespace {

void step(float* __restrict theta, float* __restrict velocity, const float* __restrict d, std::size_t count,
          OuterSgd hyper) {
  const float mu = hyper.momentum;
  const float lr = hyper.learning_rate;
  for (std::size_t i = 0; i < count; ++i) {
    const float v = mu * velocity[i] + d[i];
    velocity[i] = v;
    theta[i] = theta[i] - lr * (d[i] + mu * v);
  }
}

}  // namespace

void outer_nesterov(std::span<float> theta, std::span<float> velocity, WireFormat format,
                    std::span<const std::byte> canonical, OuterSgd hyper) {
  // A few blocks at a time, so that the decoded values stay in the first-level cache.
  const auto slice_numel = static_cast<std::size_t>(std::max(8 * kBlockNumel, block_numel(format)));
  std::vector<float> d(std::min(slice_numel, theta.size()));
  for (std::size_t begin = 0; begin < theta.size(); begin += slice_numel) {
    const std::size_t count = std::min(slice_numel, theta.size() - begin);
    const auto first_byte = static_cast<std::size_t>(encoded_bytes(format, static_cast<std::int64_t>(begin)));
    const auto bytes = static_cast<std::size_t>(encoded_bytes(format, static_cast<std::int64_t>(count)));
    decode_values(format, canonical.subspan(first_byte, bytes), std::span(d).first(count));
    step(theta.data() + begin, velocity.data() + begin, d.data(), count, hyper);
  }
}

void outer_nesterov(std::span<float> theta, std::span<float> velocity, std::span<const float> d, OuterSgd hyper) {
  step(theta.data(), velocity.data(), d.data(), theta.size(), hyper);
}

}  // namespace atl
