// Which mirrors of a run's data an island's owner lets it ask: whoever made the run is a stranger, and names them.
// Pure; any thread.
#pragma once

#include <string_view>

#include "net/base/result.h"

namespace atl {

enum class MirrorPolicy {
  kNone,
  kHttps,  // https:// and s3:// on the internet, and the owner's own bucket
  kWeb,    // http:// too, and addresses of private networks
  kAll     // and paths of this machine
};

// "none", "https", "web", "all"; kInvalidArgument.
Result<MirrorPolicy> parse_mirror_policy(std::string_view text);

// Of a mirror that check_mirror (net/data/run_dataset.h) has found to be one. kPermissionDenied says what the owner has
// to set.
Status check_allowed(MirrorPolicy policy, std::string_view mirror);

}  // namespace atl
