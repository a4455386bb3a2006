// The thread of a sync lane, with its mailbox and its gate. Owned by the island.
#pragma once

#include <thread>

#include "net/base/mailbox.h"
#include "trainer/island/sync_lane.h"

namespace atl {

class LaneThread {
 public:
  // As SyncLane. `tell` is called on the lane's thread.
  LaneThread(FragmentId fragment, Fragment part, const RunConfig& run, OuterStateStore& outer, IslandStatus& status,
             LaneNetwork& network, SyncLane::Tell tell);
  ~LaneThread() { stop("the island ends"); }

  // ---- any thread ----
  void post(LaneCommand command);
  // The attempt under way, and every later one, ends at once. What else was posted is still done.
  void end_attempts(const std::string& reason) { gate_.close(reason); }

  // ---- mesh thread: what acts at once, also on an attempt under way. Each posts the message, too. ----
  void welcome();
  void take(const HubAttempt& message);
  void take(const HubAbort& message);

  // ---- the island's thread ----
  // Ends the attempt under way, does what else was posted, and joins.
  void stop(const std::string& reason);
  // After stop().
  const std::vector<float>& residual() const { return lane_.residual(); }

 private:
  void run();

  AttemptGate gate_;
  const SyncLane::Tell tell_;
  SyncLane lane_;  // the thread's, while it runs
  Mailbox<LaneCommand> commands_;
  std::jthread thread_;  // last: it ends before what it uses
};

}  // namespace atl
