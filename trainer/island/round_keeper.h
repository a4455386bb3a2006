// Writes rounds to the island's disk beside the ring and the training: pieces of an average while the ring still makes
// the others, so that little is left to flush when it ends; and, once the outer step is taken, what makes a logged
// round of it. One thread, which alone waits for the disk, in the order in which it is asked. Of what fails is told;
// training goes on.
//
// Calls by the lanes' threads, several at once. Owned by the island.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "net/base/mutex.h"
#include "net/disk/kept_average_file.h"
#include "trainer/island/average_room.h"
#include "trainer/island/island_disk.h"

namespace atl {

class RoundKeeper {
 public:
  struct Tell {                                          // on its thread
    std::function<void(OuterStep, const Status&)> kept;  // an average or a logged round is on the disk, or is not
    std::function<void()> durable_changed;               // IslandDisk::durable()
  };

  RoundKeeper(IslandDisk& disk, Tell tell);
  ~RoundKeeper();  // what was asked for is written first

  // An attempt that is being averaged. Written while this lives: what is not finished is gone with it.
  class Average {
   public:
    ~Average();  // returns when nobody reads the canonical bytes for it any more
    void final_bytes(std::size_t offset, std::size_t count);  // any thread

   private:
    friend class RoundKeeper;
    struct File;
    Average(RoundKeeper& keeper, std::shared_ptr<File> file);
    RoundKeeper& keeper_;
    const std::shared_ptr<File> file_;
  };
  // Nothing where this island keeps none.
  std::unique_ptr<Average> begin(FragmentId fragment, OuterStep round, WireFormat wire, SharedBytes canonical);
  // All its bytes were final: the average becomes that which the island holds of its fragment. Returns when it is
  // flushed, or after `patience`, while the disk goes on: others wait for this island. At once, and it is given up,
  // where two of the fragment wait for the disk already (small ones may be more).
  void finish(std::unique_ptr<Average> average, const std::string& digest, std::chrono::milliseconds patience);
  // IslandDisk::keep_round(), then. Not where the disk is two rounds of the fragment behind: their averages are memory.
  void keep_round(const HubCommit& commit, WireFormat wire, SharedBytes canonical, std::string from, HeldState made);
  // IslandDisk::keep_fetched(), then.
  void keep_fetched(std::unique_ptr<FetchedRounds> rounds);
  // All that was asked for before is on the disk, or failed; false when `patience` passes first.
  bool await_idle(Deadline patience);

 private:
  void run();
  void post(std::function<void()> job);
  void write_pending(Average::File& file);
  enum class Work { kFinish, kLog };
  struct Held {
    int averages = 0;
    std::size_t bytes = 0;
  };
  // Another average of the fragment, until that work is done: false when too many are held.
  bool may_hold(Work work, FragmentId fragment, std::size_t bytes);
  void let_go(Work work, FragmentId fragment, std::size_t bytes);

  IslandDisk& disk_;
  const Tell tell_;
  Mutex mutex_;
  CondVar changed_;
  std::deque<std::function<void()>> jobs_ ATOLL_GUARDED_BY(mutex_);
  bool busy_ ATOLL_GUARDED_BY(mutex_) = false;
  std::map<std::pair<Work, std::uint32_t>, Held> held_ ATOLL_GUARDED_BY(mutex_);  // of each fragment
  bool ends_ ATOLL_GUARDED_BY(mutex_) = false;
  std::jthread thread_;  // last: it uses all of the above
};

}  // namespace atl
