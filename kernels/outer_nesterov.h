// Outer Nesterov step (DiLoCo, arXiv:2311.08105, Alg. 1; the form of torch.optim.SGD), fp32, in place:
//   v <- mu v + d;   theta <- theta - lr (d + mu v)
// d: the averaged pseudo-gradient theta_global - theta_local, decoded from the ring's canonical bytes in the same pass.
//
// Bit-identical on every machine: five fp32 operations a value, each rounded to nearest, in the order written, none
// contracted (mu v; + d; mu v; d + .; lr .; theta - .). This holds for finite values and a thread that does not flush
// denormals (the default).
#pragma once

#include <cstddef>
#include <span>

#include "kernels/wire_format.h"

namespace atl {

struct OuterSgd {
  float learning_rate = 0.7f;
  float momentum = 0.9f;
};

// theta, velocity: [numel], no overlap. canonical: encoded_bytes(format, numel) bytes. Any thread; slices that begin at
// a multiple of block_numel(format) may be stepped in any order, with the same result.
void outer_nesterov(std::span<float> theta, std::span<float> velocity, WireFormat format,
                    std::span<const std::byte> canonical, OuterSgd hyper);

// The same of an average that is decoded already. d: [numel].
void outer_nesterov(std::span<float> theta, std::span<float> velocity, std::span<const float> d, OuterSgd hyper);

}  // namespace atl
