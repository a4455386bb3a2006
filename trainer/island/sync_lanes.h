// The sync lanes of an island, one for each fragment of its run, each with its thread: started when the run is known,
// ended when the island leaves it. Says which lane a message is for. Owned by the island.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "net/base/mailbox.h"
#include "net/base/mutex.h"
#include "trainer/island/lane_link.h"
#include "trainer/island/lane_thread.h"

namespace atl {

class SyncLanes {
 public:
  // What they stand on outlives this; `wake`: a lane has news, on its thread.
  SyncLanes(LaneSurroundings around, std::function<void()> wake) : around_(std::move(around)), wake_(std::move(wake)) {}

  // ---- the island's thread ----
  // Once. `run`, `outer` and `status` outlive the lanes' threads.
  void start(const RunConfig& run, const std::vector<Fragment>& fragments, OuterStateStore& outer,
             IslandStatus& status);
  // Between start() and end().
  void post(FragmentId lane, LaneCommand command);
  // What lanes tell, in order; empty at the deadline.
  std::optional<LaneNews> next_news(Deadline deadline) { return news_.pop(deadline); }
  // The inner loop begins a round, hands it to its lane, or has heard that it is over: for the news of it.
  void round_begins(const IslandState& state);
  void inner_phase_ends(FragmentId lane, const IslandState& state) { links_[lane.value]->inner_phase_ends(state); }
  void round_done(const IslandState& state);
  // Ends attempts under way; what was posted is still done. Then what each lane owes, by fragment.
  std::vector<std::vector<float>> end();

  // ---- any thread ----
  void end_attempts(const std::string& reason);
  // ---- mesh thread: what the hub says acts on attempts at once ----
  void take(const HubMessage& message);

 private:
  void prepare(const HubNeighbours& next);
  template <class Act>
  void with_lanes(Act&& act);
  LaneLink& link_of(std::uint32_t round) { return *links_[round % links_.size()]; }

  LaneSurroundings around_;
  const std::function<void()> wake_;
  Mailbox<LaneNews> news_{64};  // answers to what the inner loop asked: a few for each lane
  std::vector<std::unique_ptr<LaneLink>> links_;
  Mutex mutex_;
  std::vector<std::unique_ptr<LaneThread>> lanes_ ATOLL_GUARDED_BY(mutex_);  // between start() and end()
  std::optional<std::string> ended_ ATOLL_GUARDED_BY(mutex_);                // why no attempt may begin any more
  int connections_per_edge_ ATOLL_GUARDED_BY(mutex_) = 0;                    // of the run
  std::chrono::milliseconds silence_timeout_ ATOLL_GUARDED_BY(mutex_){};     // likewise
};

}  // namespace atl
