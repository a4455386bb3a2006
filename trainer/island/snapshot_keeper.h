// Writes the outer state to the disk while it goes on: a chunk at a time, each of whatever outer step the state is at
// then (net/disk/snapshot.h), on a thread of its own. Who trains and who takes outer steps only say that the state has
// moved on; an outer step waits at most while one chunk is copied in memory. Owned by the island.
#pragma once

#include <functional>
#include <optional>
#include <thread>

#include "net/base/deadline.h"
#include "net/base/mutex.h"
#include "net/disk/snapshot.h"
#include "trainer/island/outer_state_store.h"

namespace atl {

// Where snapshots go: an island's disk. On the thread that writes, but for what says another; may block.
class SnapshotDisk {
 public:
  virtual ~SnapshotDisk() = default;
  // Room is made, and what was begun before is given up.
  virtual Status begin(std::uint64_t numel) = 0;
  virtual Status put(std::uint64_t index, const StoredChunk& chunk, ByteView bytes) = 0;
  virtual Status flush() = 0;
  // Whether rounds are logged that bring chunks of that outer step to the state. Waits until the last of them has been
  // logged, or has failed to be.
  virtual bool rounds_lead_to(OuterStep from, const HeldState& state) = 0;
  virtual Status finish(const HeldState& state) = 0;
  virtual void give_up() = 0;  // what was begun takes no room any more

  virtual bool has_snapshot_of(const HeldState& state) const = 0;
  virtual bool leads_to(const HeldState& state) const = 0;  // a snapshot, or one with logged rounds
  virtual bool asks_for_snapshot() const = 0;               // any thread, at once: do not wait for the pace
};

// Whether it is time to write an outer state again: what takes no longer than a second is written in every round; what
// does, so seldom that it takes a twentieth of the time. Averages do not wait for it.
class WritePace {
 public:
  bool may_write(Clock::time_point now) const { return now >= next(); }
  Clock::time_point next() const;
  void wrote(Clock::time_point began, Clock::time_point ended);

 private:
  Clock::duration took_{};
  Clock::time_point wrote_at_;
};

// Writes one, of the state as it goes on meanwhile; the state to which it leads. kAborted when `stop` is requested.
Result<HeldState> write_snapshot(SnapshotDisk& disk, const OuterStateStore& outer, const std::stop_token& stop = {});

class SnapshotKeeper {
 public:
  // `told`: how one that was written ended; on the keeper's thread. What it refers to outlives it.
  SnapshotKeeper(SnapshotDisk& disk, const OuterStateStore& outer, std::function<void(const Status&)> told);
  ~SnapshotKeeper();  // gives up what is being written

  // Any thread; returns at once.
  void state_is(const HeldState& state);
  // Nobody changes the state any more: what the disk does not lead to yet is written. Once, the island's thread.
  Status finish();

 private:
  void run(const std::stop_token& stop);
  void write(const HeldState& state, const std::stop_token& stop);

  SnapshotDisk& disk_;
  const OuterStateStore& outer_;
  const std::function<void(const Status&)> told_;
  Mutex mutex_;
  StoppableCondVar changed_;
  std::optional<HeldState> state_ ATOLL_GUARDED_BY(mutex_);  // the newest that was told of, until it is looked at
  bool ends_ ATOLL_GUARDED_BY(mutex_) = false;
  WritePace pace_;  // the thread's
  std::jthread thread_;
};

}  // namespace atl
