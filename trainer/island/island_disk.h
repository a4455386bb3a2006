// All that an island keeps on its disk, and how often: outer states, averages of open rounds, the work of an
// interrupted one, the hub's records. What a disk does not take costs a way back, never the training; it is told of in
// the log or to who asked.
//
// The island's thread, but for what says another. An empty directory: nothing is kept.
#pragma once

#include <array>
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
#include "trainer/island/checkpoint.h"
#include "trainer/island/kept_states.h"
#include "trainer/island/run_record.h"

namespace atl {

// Whether it is time to write something large again: what takes no longer than a second is written in every round; what
// does, so seldom that it takes a twentieth of the time.
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
  explicit IslandDisk(std::filesystem::path directory) : directory_(std::move(directory)), record_(directory_) {}

  bool keeps() const { return !directory_.empty(); }

  // Once, before the hub is met: what is there. The newest outer state with its model; kNotFound where there is none.
  Result<IslandCheckpoint> load();
  // From when the run is known: as many states as it asks for.
  void keep_states(std::uint32_t states, std::uint32_t anchor_every);

  // ---- outer states
  bool newest_is(const HeldState& state) const;
  bool may_save(Clock::time_point now) const { return checkpoint_pace_.may_write(now); }
  // Holds the store still meanwhile.
  Status save(const ModelConfig& model, const OuterStateStore& outer);
  Result<FetchedState> kept_state(const HeldState& wanted, std::int64_t numel) const;
  std::vector<HeldState> durable() const;  // any thread

  // ---- the work of an interrupted round
  void keep_work(const InnerState& work) const;
  // Good for one return: it is gone afterwards. Nothing where there is none that can be read.
  std::optional<InnerState> take_work(std::uint64_t numel) const;

  // ---- averages of open rounds: the lane of the fragment
  void keep_average(FragmentId fragment, OuterStep round, WireFormat wire, const std::string& digest,
                    ByteView canonical);
  Result<KeptAverage> kept_average(FragmentId fragment, OuterStep round, const std::string& digest) const;

  // ---- the hub's records
  void told(std::shared_ptr<const SignedCommit> commit);  // any thread: the hub said so
  // The lane that takes the outer step on it, one at a time.
  void keep_commit(const HubCommit& commit);
  RunRecord& record() { return record_; }
  const RunRecord& record() const { return record_; }

 private:
  KeptStates states() const { return KeptStates(directory_, keep_states_, anchor_every_); }
  std::filesystem::path average_file(FragmentId fragment) const;
  std::filesystem::path inner_state_file() const { return directory_ / kInnerStateFile; }

  const std::filesystem::path directory_;
  std::uint32_t keep_states_ = 1, anchor_every_ = 0;
  WritePace checkpoint_pace_;
  std::array<WritePace, kMaxFragments> average_paces_;  // each its lane's
  RunRecord record_;
  mutable Mutex mutex_;
  std::vector<HeldState> durable_ ATOLL_GUARDED_BY(mutex_);  // on the disk
  std::deque<std::shared_ptr<const SignedCommit>> told_
      ATOLL_GUARDED_BY(mutex_);  // of the newest rounds, kMaxFragments
};

}  // namespace atl
