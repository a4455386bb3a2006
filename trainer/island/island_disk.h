// All that an island keeps on its disk, and how often: outer states, the average of each round, before it is committed
// and in the round log after, the work of an interrupted one, the hub's records. So it comes back to the newest state
// that it held, however long ago an outer state was written. What a disk does not take costs a way back, never the
// training; it is told of in the log or to who asked.
//
// The island's thread, but for what says another. An empty directory: nothing is kept.
#pragma once

#include <atomic>
#include <deque>
#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "net/base/deadline.h"
#include "net/base/mutex.h"
#include "net/disk/checkpoint_directory.h"
#include "net/disk/inner_state_file.h"
#include "net/disk/kept_average_file.h"
#include "net/disk/round_log.h"
#include "trainer/island/checkpoint.h"
#include "trainer/island/kept_states.h"
#include "trainer/island/run_record.h"

namespace atl {

// Whether it is time to write an outer state again: what takes no longer than a second is written in every round; what
// does, so seldom that it takes a twentieth of the time. Averages do not wait for it.
class WritePace {
 public:
  bool may_write(Clock::time_point now) const;
  void wrote(Clock::time_point began, Clock::time_point ended);

 private:
  Clock::duration took_{};
  Clock::time_point wrote_at_;
};

class IslandDisk {
 public:
  explicit IslandDisk(std::filesystem::path directory)
      : directory_(std::move(directory)), log_(directory_), record_(directory_) {}

  bool keeps() const { return !directory_.empty(); }

  // Once, before the hub is met: what is there. The newest outer state with its model; kNotFound where there is none.
  Result<IslandCheckpoint> load();
  // From when the run is known: as many states as it asks for; it averages so many fragments.
  void keep_states(std::uint32_t states, std::uint32_t anchor_every, std::uint32_t fragments);

  // ---- outer states
  bool newest_is(const HeldState& state) const;  // that was written; rounds may be logged upon it
  // In its pace, or because the round log asks for one.
  bool may_save(Clock::time_point now) const { return checkpoint_pace_.may_write(now) || asks_for_state(); }
  bool asks_for_state() const { return log_asks_for_state_; }
  // Holds the store still meanwhile.
  Status save(const ModelConfig& model, const OuterStateStore& outer);
  // One that is kept, or that logged rounds lead to.
  Result<FetchedState> kept_state(const HeldState& wanted, const ModelConfig& model);
  std::vector<HeldState> durable() const;  // any thread; durable_states() of replay.h

  // ---- the work of an interrupted round
  void keep_work(const InnerState& work) const;
  // Good for one return: it is gone afterwards. Nothing where there is none that can be read.
  std::optional<InnerState> take_work(std::uint64_t numel) const;

  // ---- averages: the lane of the fragment. Flushed when it returns.
  Status keep_average(FragmentId fragment, OuterStep round, WireFormat wire, const std::string& digest,
                      ByteView canonical) const;
  // Of an open round, or one that was logged.
  Result<KeptAverage> kept_average(FragmentId fragment, OuterStep round, const std::string& digest) const;
  // The outer step of this commit was taken on the state `from`: its average goes to the round log. One lane at a time,
  // before the next takes its step.
  Status keep_round(const HubCommit& commit, WireFormat wire, ByteView canonical, const std::string& from,
                    const HeldState& made);

  // ---- the hub's records
  void told(std::shared_ptr<const SignedCommit> commit);  // any thread: the hub said so
  // The lane that takes the outer step on it, one at a time.
  void keep_commit(const HubCommit& commit);
  RunRecord& record() { return record_; }
  const RunRecord& record() const { return record_; }

 private:
  KeptStates states() const { return KeptStates(directory_, keep_states_, anchor_every_); }
  std::shared_ptr<const SignedCommit> signed_record(const HubCommit& commit) const;
  void look_at_disk(const HeldState* made = nullptr) ATOLL_REQUIRES(files_);
  std::filesystem::path average_file(FragmentId fragment) const;
  std::filesystem::path inner_state_file() const { return directory_ / kInnerStateFile; }

  const std::filesystem::path directory_;
  const RoundLog log_;
  std::uint32_t keep_states_ = 1, anchor_every_ = 0, fragments_ = 1;
  WritePace checkpoint_pace_;
  // The newest logged round leads nowhere from the kept states, or too many bytes are logged since the newest of them.
  std::atomic<bool> log_asks_for_state_{false};
  RunRecord record_;
  Mutex files_;  // rounds come and go one after the other
  mutable Mutex mutex_;
  std::vector<HeldState> durable_ ATOLL_GUARDED_BY(mutex_);  // on the disk
  std::deque<std::shared_ptr<const SignedCommit>> told_
      ATOLL_GUARDED_BY(mutex_);  // of the newest rounds, kMaxFragments
};

}  // namespace atl
