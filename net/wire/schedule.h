// By which way the values of an all-reduce come together. The hub chooses it for each attempt
// (net/mesh/schedule_choice.h) and the islands take it from there (net/collective/all_reduce.h).
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

namespace atl {

// All members of an attempt take the same. The average is the same to the last bit.
enum class Schedule {
  kRing,    // rank r sends to rank r + 1 (mod N): 2 (N-1) hops
  kDirect,  // everybody sends to everybody: 2 hops (direct_exchange.h), in formats that are summed hop by hop
};

inline constexpr std::array<std::string_view, 2> kScheduleNames{"ring", "direct"};  // by the enum's numbers
constexpr std::string_view schedule_name(Schedule schedule) {
  return kScheduleNames[static_cast<std::size_t>(schedule)];
}
constexpr std::optional<Schedule> schedule_named(std::string_view name) {
  for (std::size_t i = 0; i < kScheduleNames.size(); ++i) {
    if (kScheduleNames[i] == name) return static_cast<Schedule>(i);
  }
  return std::nullopt;
}

}  // namespace atl
