// From which host each island came last: a hub that starts again keeps places for them. Written now and then, for
// members may come and go as fast as they like, and what cannot be written is worth no stop. On the hub's thread.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "net/base/deadline.h"
#include "net/hub/hub_store.h"

namespace atl {

class KnownHosts {
 public:
  // `store` outlives it.
  static Result<KnownHosts> open(HubStore& store);

  std::vector<std::string> all() const;
  void remember(const IslandId& island, const std::string& host);
  void forget(const IslandId& island) { changed_ = hosts_.erase(island) > 0 || changed_; }
  void save_now_and_then();

 private:
  explicit KnownHosts(HubStore& store) : store_(&store) {}

  HubStore* store_;
  std::map<IslandId, std::string> hosts_;
  bool changed_ = false;  // since they were saved
  Clock::time_point saved_;
};

}  // namespace atl
