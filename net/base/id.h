// Identifiers that do not mix: a Rank is no OuterStep, though both are integers.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <string>

namespace atl {

template <class Tag, class Rep>
struct Id {
  Rep value{};
  auto operator<=>(const Id&) const = default;
};

using Rank = Id<struct RankTag, std::int32_t>;            // position in one membership epoch (one attempt's ring)
using LocalRank = Id<struct LocalRankTag, std::int32_t>;  // a thread (later: a GPU) inside one island
using OuterStep =
    Id<struct OuterStepTag, std::uint32_t>;  // outer steps applied so far; round k makes outer step k + 1 of k
using Attempt = Id<struct AttemptTag, std::uint32_t>;  // tries to average one round, from 1
// A part of the model that is averaged on its own (net/model/fragments.h): round k averages fragment k mod
// RunConfig::fragments.
using FragmentId = Id<struct FragmentTag, std::uint32_t>;
inline constexpr std::uint32_t kMaxFragments = 4;
using IslandId = Id<struct IslandTag, std::string>;  // the name in the island's certificate: "isl-" + 16 hex digits

}  // namespace atl

template <class Tag, class Rep>
struct std::hash<atl::Id<Tag, Rep>> {
  std::size_t operator()(const atl::Id<Tag, Rep>& id) const noexcept { return std::hash<Rep>{}(id.value); }
};
