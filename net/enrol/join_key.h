// The key with which this machine asks to become an island, kept until it is one. The hub answers the same key and
// invite alike, so that an answer that was lost, or a machine that went down over it, costs no second use of the
// invite: whoever asks again must only have the same key. Blocks on the disk; any thread, one at a time for a file.
#pragma once

#include <filesystem>
#include <string>

#include "net/base/result.h"
#include "net/tls/signature.h"

namespace atl {

// The one that was made for this invite, or a new one; on the disk (0600) when it returns.
Result<KeyAndRequest> join_key(const std::filesystem::path& file, const std::string& invite_id);
void forget_join_key(const std::filesystem::path& file);

}  // namespace atl
