// Who trained a run, as its hub counts: the answer to an island's GET /contributors, which goes into the card of a
// model that it exports. Named are those whose owners agreed (IslandHello::credited), as they said when they came last;
// all others are counted together. JSON. Plain values; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "net/base/result.h"

namespace atl {

struct Contributor {
  std::string name;                      // for people, as the island enrolled; printable; empty: is not to be named
  std::uint64_t rounds = 0, tokens = 0;  // of committed rounds in which it trained
  std::uint64_t islands = 1;             // that these were, without a name
};
inline constexpr std::size_t kMaxContributors = 1000;  // entries: those with most tokens, then the others as one
inline constexpr std::size_t kMaxContributorsBytes = 1u << 20;
inline constexpr const char* kContributorsPath = "/contributors";

std::string encode(const std::vector<Contributor>& contributors);
Result<std::vector<Contributor>> decode_contributors(std::string_view text);

}  // namespace atl
