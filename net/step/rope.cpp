#include "net/step/rope.h"

#include <cmath>
#include <numbers>

namespace atl {
namespace {

// Long wavelengths are stretched by `factor`, short ones kept, those between blended.
float scaled_frequency(float frequency, const Llama3RopeScaling& scaling) {
  const auto factor = static_cast<float>(scaling.factor);
  const auto context = static_cast<float>(scaling.original_max_position_embeddings);
  const float wavelength = static_cast<float>(2 * std::numbers::pi) / frequency;
  if (wavelength < context / static_cast<float>(scaling.high_freq_factor)) return frequency;
  if (wavelength > context / static_cast<float>(scaling.low_freq_factor)) return frequency / factor;
  const float smooth = (context / wavelength - static_cast<float>(scaling.low_freq_factor)) /
                       static_cast<float>(scaling.high_freq_factor - scaling.low_freq_factor);
  return (1 - smooth) * frequency / factor + smooth * frequency;
}

}  // namespace

// Every step is rounded to fp32, in the order of the reference implementation: at position p one rounding step more or
// less turns a pair by p * 1e-7 radians, and models are trained, here and elsewhere, with the rounded frequencies.
std::vector<float> rope_frequencies(const ModelConfig& config) {
  const auto theta = static_cast<float>(config.rope_theta);
  std::vector<float> frequencies;
  for (std::int64_t i = 0; i < config.head_dim / 2; ++i) {
    const float exponent = static_cast<float>(2 * i) / static_cast<float>(config.head_dim);
    // pow in fp64, for its fp32 version is not rounded correctly everywhere.
    const auto power = static_cast<float>(std::pow(static_cast<double>(theta), static_cast<double>(exponent)));
    const float frequency = 1.0F / power;
    frequencies.push_back(config.rope_scaling ? scaled_frequency(frequency, *config.rope_scaling) : frequency);
  }
  return frequencies;
}

RopeTable rope_table(const ModelConfig& config, std::int64_t length) {
  const std::vector<float> frequencies = rope_frequencies(config);
  RopeTable table{length, {}, {}};
  table.cosines.reserve(static_cast<std::size_t>(length) * frequencies.size());
  table.sines.reserve(static_cast<std::size_t>(length) * frequencies.size());
  for (std::int64_t position = 0; position < length; ++position) {
    for (const float frequency : frequencies) {
      // The angle is rounded to fp32 as in the reference implementation; its cosine is then exact.
      const double angle = static_cast<float>(position) * frequency;
      table.cosines.push_back(static_cast<float>(std::cos(angle)));
      table.sines.push_back(static_cast<float>(std::sin(angle)));
    }
  }
  return table;
}

}  // namespace atl
