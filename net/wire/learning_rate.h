// How a run's learning rate falls at its end: by its configuration, or from a round that its organiser named later.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "net/base/result.h"

namespace atl {

// Of the progress x from 0 to 1 through the decay, the share of the way from the peak to the final rate that is left:
// 1 - sqrt(x) (arXiv:2405.18392), 1 - x, (1 + cos(pi x)) / 2 (arXiv:1608.03983).
enum class DecayShape { kOneMinusSqrt, kLinear, kCosine };

inline constexpr std::array<std::string_view, 3> kDecayShapes{"1-sqrt", "linear", "cosine"};
constexpr std::string_view decay_shape_name(DecayShape shape) { return kDecayShapes[static_cast<std::size_t>(shape)]; }
constexpr std::optional<DecayShape> parse_decay_shape(std::string_view name) {
  for (std::size_t i = 0; i < kDecayShapes.size(); ++i) {
    if (kDecayShapes[i] == name) return static_cast<DecayShape>(i);
  }
  return std::nullopt;
}

// In rounds, as a run's organiser decides it while the run lives.
struct DecidedDecay {
  std::uint32_t from_round = 0;
  std::uint32_t rounds = 1;
  double final_learning_rate = 0;
  DecayShape shape = DecayShape::kOneMinusSqrt;
  bool operator==(const DecidedDecay&) const = default;
};
std::string to_json(const DecidedDecay& decay);
Result<DecidedDecay> parse_decided_decay(std::string_view json);

}  // namespace atl
