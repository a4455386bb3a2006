#include "trainer/island/roster.h"

#include <fmt/format.h>

#include "net/base/mutex.h"

namespace atl {

void Roster::replace(const HubRoster& roster) {
  std::map<IslandId, RosterEntry> entries;
  for (const RosterEntry& entry : roster.islands) entries.emplace(entry.id, entry);
  MutexLock lock(mutex_);
  entries_ = std::move(entries);
}

Status Roster::admit(const PeerCertificate& peer) const {
  MutexLock lock(mutex_);
  const auto found = entries_.find(peer.name);
  if (found == entries_.end()) {
    return Error{ErrorCode::kCertificate, fmt::format("{} is not in the roster of this run", peer.name.value)};
  }
  if (found->second.key_sha256 != to_hex(peer.key_sha256)) {
    return Error{ErrorCode::kCertificate, fmt::format("{} shows another key than the roster's", peer.name.value)};
  }
  return ok_status();
}

std::vector<RosterEntry> Roster::entries(const std::vector<IslandId>& ids) const {
  std::vector<RosterEntry> found;
  MutexLock lock(mutex_);
  for (const IslandId& id : ids) {
    const auto entry = entries_.find(id);
    if (entry != entries_.end()) found.push_back(entry->second);
  }
  return found;
}

std::vector<RosterEntry> Roster::all() const {
  std::vector<RosterEntry> found;
  MutexLock lock(mutex_);
  for (const auto& [id, entry] : entries_) found.push_back(entry);
  return found;
}

std::size_t Roster::size() const {
  MutexLock lock(mutex_);
  return entries_.size();
}

}  // namespace atl
