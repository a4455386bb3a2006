#include "net/data/mirror_policy.h"

#include <fmt/format.h>

namespace atl {
namespace {

constexpr std::string_view kNames[]{"none", "https", "web", "all"};

MirrorPolicy needed_for(std::string_view mirror) {
  if (mirror.starts_with("/")) return MirrorPolicy::kAll;
  if (mirror.starts_with("http://")) return MirrorPolicy::kWeb;
  return MirrorPolicy::kHttps;
}

}  // namespace

Result<MirrorPolicy> parse_mirror_policy(std::string_view text) {
  for (std::size_t i = 0; i < std::size(kNames); ++i) {
    if (text == kNames[i]) return static_cast<MirrorPolicy>(i);
  }
  return Error{ErrorCode::kInvalidArgument, fmt::format("'{}' is none of none, https, web, all", text)};
}

Status check_allowed(MirrorPolicy policy, std::string_view mirror) {
  const MirrorPolicy needed = needed_for(mirror);
  if (policy >= needed) return ok_status();
  return Error{ErrorCode::kPermissionDenied,
               fmt::format("this machine's owner does not let it ask such a mirror (island.data_mirrors = {}); with {} "
                           "it may: atoll config set island.data_mirrors {}",
                           kNames[static_cast<std::size_t>(policy)], kNames[static_cast<std::size_t>(needed)],
                           kNames[static_cast<std::size_t>(needed)])};
}

}  // namespace atl
