// Where the hub keeps its invites: never their secrets, only what recognises them. Used by the Enroller.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "net/base/bytes.h"
#include "net/base/result.h"
#include "net/base/sha256.h"

namespace atl {

struct InviteRecord {
  std::string id;
  Digest secret_sha256{};
  std::uint32_t uses_left = 1;
  std::chrono::sys_seconds expires;
};

class InviteStore {
 public:
  virtual ~InviteStore() = default;
  virtual Status create(const InviteRecord& invite) = 0;
  // Takes one use, atomically: of two islands that come with the last use, one gets it. kInviteUnknown (also for a
  // wrong secret, which takes none), kInviteUsed or kInviteExpired.
  virtual Status burn(const std::string& id, ByteView secret, std::chrono::sys_seconds now) = 0;
  virtual Result<std::vector<InviteRecord>> list() = 0;  // newest first
};

}  // namespace atl
