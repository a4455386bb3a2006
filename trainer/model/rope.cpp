#include "trainer/model/rope.h"

#include <cmath>
#include <numbers>

namespace atl {
namespace {

// Long wavelengths are stretched by `factor`, short ones kept, those between blended.
double scaled_frequency(double frequency, const Llama3RopeScaling& scaling) {
  const double wavelength = 2 * std::numbers::pi / frequency;
  const auto context = static_cast<double>(scaling.original_max_position_embeddings);
  if (wavelength < context / scaling.high_freq_factor) return frequency;
  if (wavelength > context / scaling.low_freq_factor) return frequency / scaling.factor;
  const double smooth =
      (context / wavelength - scaling.low_freq_factor) / (scaling.high_freq_factor - scaling.low_freq_factor);
  return (1 - smooth) * frequency / scaling.factor + smooth * frequency;
}

}  // namespace

std::vector<float> rope_frequencies(const ModelConfig& config) {
  std::vector<float> frequencies;
  for (std::int64_t i = 0; i < config.head_dim / 2; ++i) {
    const double exponent = 2.0 * static_cast<double>(i) / static_cast<double>(config.head_dim);
    double frequency = std::pow(config.rope_theta, -exponent);
    if (config.rope_scaling) frequency = scaled_frequency(frequency, *config.rope_scaling);
    frequencies.push_back(static_cast<float>(frequency));
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
