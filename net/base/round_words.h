// How rounds are counted where a person reads: from 1. So the state after a run's twelfth round is that "after round
// 12", and a run of twelve rounds ends with round 12. Programs say `round` 11 of that round, which counts from 0, and
// `outer_step` 12 of the state. Pure.
#pragma once

#include <cstdint>
#include <string>

namespace atl {

constexpr std::uint64_t round_number(std::uint32_t round) { return std::uint64_t{round} + 1; }

// Of an outer state: "after round 12".
inline std::string after_round(std::uint32_t outer_step) {
  return outer_step == 0 ? std::string("before round 1") : "after round " + std::to_string(outer_step);
}

}  // namespace atl
