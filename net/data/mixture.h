// From which source each position of a run's order is taken, and how many positions before it were that source's: a
// pure function of the eras of weights, with nothing kept and nothing counted.
//
// A binary tree over the sources halves the choice. At a node, of the first n positions that come there
// floor(n * share) go to the left; so the n-th goes left where that number grows, and where it stands there says which
// of the left ones it is. Every stretch of positions so has each source's share of it, to within one position for each
// level of the tree (log2 of the sources): closer than drawing, or permuted blocks, come.
//
// Immutable; any thread. Some 10 ns a level.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "net/base/result.h"
#include "net/wire/mixture.h"

namespace atl {

class Mixture {
 public:
  struct Place {
    std::uint32_t source = 0;
    std::uint64_t index = 0;  // so many positions before it are the same source's
    bool operator==(const Place&) const = default;
  };

  // The first era begins at position 0, each other one at or behind the one before it; all are of as many sources.
  static Result<Mixture> create(const std::vector<MixtureEra>& eras);

  Place at(std::uint64_t position) const;
  // By source: how many of the positions before this one are its.
  std::vector<std::uint64_t> counts_before(std::uint64_t position) const;

 private:
  struct Node {
    std::uint64_t left_share = 0;        // of 2^32
    std::array<std::int32_t, 2> next{};  // left, right: a node, or -1 - source
  };
  struct Era {
    std::uint64_t from = 0;
    std::vector<Node> nodes;            // the root first; none: one source
    std::vector<std::uint64_t> before;  // by source: positions of the eras before
  };
  static std::int32_t add_nodes(const MixtureWeights& weights, std::size_t first, std::size_t end,
                                std::vector<Node>& nodes);
  static void count(const Era& era, std::int32_t at, std::uint64_t positions, std::vector<std::uint64_t>& counts);
  const Era& era_of(std::uint64_t position) const;

  std::vector<Era> eras_;
};

}  // namespace atl
