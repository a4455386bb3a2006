// Who is a member now, as the hub last pushed it. Written by the mesh thread, read by listener threads and the loop.
// Thread-safe.
#pragma once

#include <map>
#include <vector>

#include "net/base/address.h"
#include "net/base/mutex.h"
#include "net/tls/context.h"
#include "net/wire/mesh.h"

namespace atl {

class Roster {
 public:
  void replace(const HubRoster& roster);
  // A peer whose certificate is exactly the one in the roster; kCertificate otherwise.
  Status admit(const PeerCertificate& peer) const;
  // Empty when the island is no longer a member.
  std::vector<RosterEntry> entries(const std::vector<IslandId>& ids) const;
  std::vector<RosterEntry> all() const;
  std::size_t size() const;

 private:
  mutable Mutex mutex_;
  std::map<IslandId, RosterEntry> entries_ ATOLL_GUARDED_BY(mutex_);
};

}  // namespace atl
