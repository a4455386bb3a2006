#include "net/model/initialise.h"

#include <algorithm>
#include <cmath>

#include "net/base/parallel.h"

namespace atl {
namespace {

// SplitMix64 (Steele, Lea, Flood 2014): a stream for each parameter, from the run's seed and the parameter's index.
class RandomStream {
 public:
  explicit RandomStream(std::uint64_t state) : state_(state) {}
  static std::uint64_t first_state(std::uint64_t seed, std::uint64_t index) { return mix(seed) ^ mix(~index); }
  std::uint64_t state() const { return state_; }

  double uniform() { return static_cast<double>((next() >> 11) + 1) * 0x1p-53; }  // (0, 1]

  // Ratio of uniforms with Leva's bounds (ACM TOMS 18, 1992). The logarithm only decides a comparison near the edge, so
  // the value is the same whatever the machine's mathematics library rounds to.
  double normal() {
    for (;;) {
      const double u = uniform();
      const double v = 1.7156 * (uniform() - 0.5);
      const double x = u - 0.449871;
      const double y = std::abs(v) + 0.386595;
      const double q = x * x + y * (0.19600 * y - 0.25472 * x);
      if (q < 0.27597) return v / u;
      if (q <= 0.27846 && v * v <= -4.0 * u * u * std::log(u)) return v / u;
    }
  }

 private:
  static std::uint64_t mix(std::uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  std::uint64_t next() { return mix(state_ += 0x9e3779b97f4a7c15u); }

  std::uint64_t state_;
};

}  // namespace

ParameterStream::ParameterStream(const ModelConfig& config, const ParameterInfo& parameter, std::size_t index,
                                 std::uint64_t seed)
    : state_(RandomStream::first_state(seed, index)),
      beginning_(parameter.beginning),
      deviation_(config.initializer_range) {}

void ParameterStream::next(std::span<float> values) {
  switch (beginning_) {
    case Beginning::kOne: std::ranges::fill(values, 1.0f); break;
    case Beginning::kNormal: {
      RandomStream stream(state_);
      for (float& value : values) value = static_cast<float>(deviation_ * stream.normal());
      state_ = stream.state();
      break;
    }
  }
}

void initialise_parameter(const ModelConfig& config, const ParameterInfo& parameter, std::size_t index,
                          std::uint64_t seed, std::span<float> values) {
  ParameterStream(config, parameter, index, seed).next(values);
}

std::vector<float> fresh_parameters(const ModelConfig& model, std::uint64_t seed) {
  const ParameterLayout layout = canonical_layout(model);
  std::vector<float> parameters(static_cast<std::size_t>(layout.numel));
  parallel_for(layout.parameters.size(), [&](std::size_t i) {
    const ParameterInfo& parameter = layout.parameters[i];
    const auto place =
        std::span(parameters)
            .subspan(static_cast<std::size_t>(parameter.offset), static_cast<std::size_t>(parameter.numel));
    initialise_parameter(model, parameter, i, seed, place);
  });
  return parameters;
}

}  // namespace atl
