// The work of an open round, now and then, on the island's disk: a process that dies costs what was trained since. The
// parameters and moments are copied in main memory while the training holds still, 12 bytes a parameter that is
// trained, and written by a thread of its own. Calls by the island's thread; owned by the island.
#pragma once

#include <chrono>
#include <optional>
#include <thread>

#include "net/base/deadline.h"
#include "net/base/mutex.h"
#include "net/disk/inner_state_file.h"
#include "trainer/island/island_disk.h"

namespace atl {

class WorkKeeper {
 public:
  // `every`: so much time lies between two of them at least, and twenty times as much as one takes to be copied and
  // written; 0: none is kept. The disk outlives this.
  WorkKeeper(const IslandDisk& disk, std::chrono::seconds every);
  ~WorkKeeper();  // the one that is being written is finished first

  // Whether it is time, and the one before is written.
  bool is_due(Clock::time_point now);
  void keep(InnerState work, Clock::time_point began);

 private:
  void run();

  const IslandDisk& disk_;
  const std::chrono::seconds every_;
  Mutex mutex_;
  CondVar changed_;
  std::optional<InnerState> work_ ATOLL_GUARDED_BY(mutex_);  // to be written, or being written
  Clock::time_point began_ ATOLL_GUARDED_BY(mutex_);
  Clock::time_point not_before_ ATOLL_GUARDED_BY(mutex_);
  bool ends_ ATOLL_GUARDED_BY(mutex_) = false;
  std::jthread thread_;  // last: it uses all of the above
};

}  // namespace atl
