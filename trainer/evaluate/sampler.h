// Which token comes next: drawn from what a model says, the same one for the same seed on every machine. One thread.
#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <vector>

namespace atl {

// As transformers has them, in this order: temperature, top-k, top-p.
struct Sampling {
  double temperature = 0.8;  // 0: always the likeliest token
  std::int64_t top_k = 0;    // of the k likeliest; 0: of all
  double top_p = 1;          // of the likeliest whose probabilities come to p together; the last one counts
  std::uint64_t seed = 1;
};

class Sampler {
 public:
  // Each text draws from a sequence of its own, so that it does not depend on which others are written beside it.
  Sampler(const Sampling& sampling, std::uint64_t text);

  // Of equally likely tokens the lowest is the likeliest. `logits`: finite, at least one. A pass over them; no more of
  // them are sorted than are chosen among.
  std::int32_t draw(std::span<const float> logits);

 private:
  // Of the likeliest that come to top_p of `total` together, the number and their sum.
  std::size_t nucleus(std::span<const float> logits, std::size_t kept, double& total);

  const Sampling sampling_;
  std::mt19937_64 random_;
  std::vector<std::int32_t> order_;  // tokens; the likeliest first, as far as it was asked for
  std::vector<double> weights_;      // by token: probabilities, times the sum of all
};

}  // namespace atl
