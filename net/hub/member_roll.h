// Who is a member of the run: lets in who has an invite, says who is one now, and notices whom the operator removed,
// also when another process did. In the hub's database; on the hub's thread.
//
// A statement that fails is no verdict on anybody, and no reason for the hub to end: a stranger may have caused it, or
// another process that holds the file. A disk that fails is told.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <vector>

#include "net/base/log_limit.h"
#include "net/enrol/enroller.h"
#include "net/hub/hub_store.h"
#include "net/tls/context.h"

namespace atl {

class MemberRoll {
 public:
  using OnDiskFailure = std::function<void(const Error&)>;

  // `store` outlives it. Who was removed before is known, and not told of again.
  static Result<MemberRoll> open(HubStore& store, OnDiskFailure on_disk_failure);

  // Empty: not a member. An error: it cannot be said now.
  Result<std::optional<EnrolledIsland>> find(const PeerCertificate& certificate);
  Result<bool> is_member(const EnrolledIsland& island);
  // Whether models of the run may name it, as it says when it comes.
  void note_credited(const IslandId& island, bool credited);
  // As it calls itself when it comes: the name by which its operator finds it.
  void note_name(const EnrolledIsland& island, const std::string& display_name);
  // kTimeout when it is not the request's fault: islands try again by themselves.
  EnrolResponse enrol(Enroller& enroller, const EnrolRequest& request);

  // Those that were removed since it was last asked. Reads a counter unless another process wrote to the database.
  std::vector<IslandId> newly_removed();
  void note_removed(const IslandId& island);
  const std::vector<IslandId>& last_removed() const { return last_removed_; }  // for rosters

 private:
  MemberRoll(HubStore& store, OnDiskFailure on_disk_failure)
      : store_(&store), on_disk_failure_(std::move(on_disk_failure)) {}
  Result<std::vector<IslandId>> read_removed();
  void failed(const Error& error);

  HubStore* store_;
  OnDiskFailure on_disk_failure_;
  std::set<IslandId> removed_;
  std::vector<IslandId> last_removed_;  // the last of removed_
  std::unique_ptr<LogLimit> lines_ = std::make_unique<LogLimit>();
};

}  // namespace atl
