// Of which sources a run's tokens are taken, in which shares, and from where on: by its configuration, or as its
// organiser decided later. Values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "net/base/result.h"

namespace atl {

inline constexpr std::uint32_t kMixtureParts = 1'000'000'000;  // shares are in billionths
inline constexpr std::size_t kMaxMixtureSources = 64;
inline constexpr std::size_t kMaxMixtureEras = 32;  // of a run

// By the run's sources, in their order: their sum is kMixtureParts. A source may have 0.
using MixtureWeights = std::vector<std::uint32_t>;

// From this position of the run's order on, until the next one's. What was leased before keeps its era, whenever it is
// trained.
struct MixtureEra {
  std::uint64_t from_position = 0;
  MixtureWeights weights;
  bool operator==(const MixtureEra&) const = default;
};

// By a run's organiser, of a round that has not begun: its era begins with the first position that is leased from then
// on and never was before.
struct DecidedMixture {
  std::uint32_t from_round = 0;
  MixtureWeights weights;
  bool operator==(const DecidedMixture&) const = default;
};

// "web=0.55,code=0.2", as people write it.
struct NamedShare {
  std::string name;
  double share = 0;
};
Result<std::vector<NamedShare>> parse_named_shares(std::string_view text);  // kInvalidArgument
// Of the sources with these names; one that is not named has none. kInvalidArgument names a source that is not there.
Result<MixtureWeights> weights_of(const std::vector<std::string>& names, const std::vector<NamedShare>& shares);
std::string describe_weights(const std::vector<std::string>& names, const MixtureWeights& weights);

// What the hub keeps: eras that have begun (but for the configuration's own), and one that has not.
struct RunMixture {
  std::vector<MixtureEra> eras;
  std::optional<DecidedMixture> decided;
  bool operator==(const RunMixture&) const = default;
};
std::string to_json(const RunMixture& mixture);
Result<RunMixture> parse_run_mixture(std::string_view json);

// Shares of whatever sum, each 0 or more, by the largest remainder. kInvalidArgument: none is above 0, or one is no
// number.
Result<MixtureWeights> mixture_weights(const std::vector<double>& shares);
Status check_weights(const MixtureWeights& weights);  // kProtocol

}  // namespace atl
