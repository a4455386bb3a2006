// Who trained a run, as its hub counts: the answer to an island's GET /contributors, which goes into the card of a
// model that it exports. JSON. Plain values; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "net/base/result.h"

namespace atl {

struct Contributor {
  std::string name;                      // for people, as the island enrolled; printable
  std::uint64_t rounds = 0, tokens = 0;  // of committed rounds in which it trained
};
inline constexpr std::size_t kMaxContributors = 1000;  // those with most tokens
inline constexpr std::size_t kMaxContributorsBytes = 1u << 20;
inline constexpr const char* kContributorsPath = "/contributors";

std::string encode(const std::vector<Contributor>& contributors);
Result<std::vector<Contributor>> decode_contributors(std::string_view text);

}  // namespace atl
