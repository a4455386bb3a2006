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
#include <set>
#include <utility>
#include <vector>

#include "net/base/deadline.h"
#include "net/base/mutex.h"
#include "net/disk/checkpoint_directory.h"
#include "net/disk/inner_state_file.h"
#include "net/disk/kept_average_file.h"
#include "net/disk/kept_states.h"
#include "net/disk/round_log.h"
#include "net/recovery/fetched_rounds.h"
#include "trainer/island/checkpoint.h"
#include "trainer/island/run_record.h"
#include "trainer/island/snapshot_keeper.h"

namespace atl {

class IslandDisk final : public SnapshotDisk {
 public:
  explicit IslandDisk(std::filesystem::path directory)
      : directory_(std::move(directory)), log_(directory_), record_(directory_) {}

  bool keeps() const { return !directory_.empty(); }

  // Once, before the hub is met: what is there. The newest outer state with its model; kNotFound where there is none.
  Result<IslandCheckpoint> load();
  // From when the run is known: its model, in so many fragments, and which states are kept of it.
  // `train_only`: RunConfig's.
  void of_run(const ModelConfig& model, std::uint32_t fragments, Retention retention,
              std::vector<std::string> train_only = {});

  // ---- outer states
  // One at a time, on whichever thread writes it (snapshot_keeper.h).
  Status begin(std::uint64_t numel) override;
  Status put(std::uint64_t index, const StoredChunk& chunk, ByteView bytes) override;
  Status flush() override { return writer_->flush(); }
  bool rounds_lead_to(OuterStep from, const HeldState& state) override;
  Status finish(const HeldState& state) override;
  void give_up() override;
  bool has_snapshot_of(const HeldState& state) const override;
  bool leads_to(const HeldState& state) const override;
  bool asks_for_snapshot() const override { return log_asks_for_state_; }
  // One that is kept, or that logged rounds lead to; in the memory of `room`. Whether there is one only reading it
  // tells, but where has_way_to() says no there is none.
  Result<FetchedState> kept_state(const HeldState& wanted, const ModelConfig& model, FetchedState room = {});
  bool has_way_to(const HeldState& wanted) const {
    return way_to(wanted, readable_states(), log_.rounds()).has_value();
  }
  // ---- a state that is being fetched (net/recovery/incoming_state.h)
  std::filesystem::path incoming() const { return directory_ / kIncomingState; }
  std::filesystem::path place_of(OuterStep step) const { return directory_ / kept_state_name(step); }
  void incoming_is_kept();                 // it is whole, and in its place
  void drop_incoming() const;              // this island got its state in another way
  std::vector<HeldState> durable() const;  // any thread; durable_states() of replay.h

  // ---- the work of an interrupted round
  // One thread at a time.
  void keep_work(const InnerState& work) const;
  std::optional<HeldWork> held_work() const;  // as its file says
  // Good for one return: it is gone afterwards. Nothing where there is none that can be read.
  // `numel`, `trained`: see load_inner_state.
  std::optional<InnerState> take_work(std::uint64_t numel, std::span<const ParameterRange> trained) const;

  // ---- averages: the thread that writes rounds (round_keeper.h), but for what says another
  // One that is still being made; nothing is there until it is finished.
  Result<AverageWriter> begin_average(FragmentId fragment, OuterStep round, WireFormat wire, std::uint64_t bytes) const;
  // Of an open round, or one that was logged. The lane of the fragment.
  Result<KeptAverage> kept_average(FragmentId fragment, OuterStep round, const std::string& digest) const;
  // The outer step of this record was taken on the state `from`: its average goes to the round log. In the order of
  // outer steps.
  Status keep_round(const SignedCommit& record, WireFormat wire, ByteView canonical, const std::string& from,
                    const HeldState& made);
  // By which this island caught up.
  void keep_fetched(FetchedRounds& rounds);
  // The round that made this state is in the log, or will not be: who waits for it waits no longer.
  void is_through_with(const HeldState& made);

  const RoundLog& log() const { return log_; }

  // ---- the hub's records
  void told(std::shared_ptr<const SignedCommit> commit);  // any thread: the hub said so
  // Of the newest rounds that were told, kMaxFragments; else nothing. Any thread.
  std::shared_ptr<const SignedCommit> signed_record(const HubCommit& commit) const;
  // The lane that takes the outer step on it, one at a time.
  void keep_commit(const HubCommit& commit);
  RunRecord& record() { return record_; }
  const RunRecord& record() const { return record_; }

 private:
  Status log_round(const SignedCommit& record, WireFormat wire, ByteView canonical, const std::string& from,
                   const HeldState& made);
  void prune();
  std::vector<KeptState> readable_states() const;  // those that are kept, but what turned out to be damaged
  void is_unreadable(const KeptState& state);
  void look_at_disk(const HeldState* made = nullptr) ATOLL_REQUIRES(files_);
  std::filesystem::path average_file(FragmentId fragment) const;
  std::filesystem::path inner_state_file() const { return directory_ / kInnerStateFile; }

  const std::filesystem::path directory_;
  const RoundLog log_;
  ModelConfig model_;
  std::vector<std::string> train_only_;
  Retention retention_;
  std::uint32_t fragments_ = 1;
  std::optional<SnapshotWriter> writer_;  // of the thread that writes
  // The newest logged round leads nowhere from the kept states, or too many bytes are logged since the newest of them.
  std::atomic<bool> log_asks_for_state_{false};
  RunRecord record_;
  Mutex reading_;  // before the next: while it is held no state is removed
  Mutex files_;    // rounds come and go one after the other
  mutable Mutex mutex_;
  CondVar logged_;
  // Made by the rounds that were logged last, or could not be; in one history.
  std::deque<HeldState> through_with_ ATOLL_GUARDED_BY(mutex_);
  std::vector<HeldState> durable_ ATOLL_GUARDED_BY(mutex_);                                        // on the disk
  std::set<std::pair<std::filesystem::path, std::uint64_t>> unreadable_ ATOLL_GUARDED_BY(mutex_);  // with its number
  std::deque<std::shared_ptr<const SignedCommit>> told_
      ATOLL_GUARDED_BY(mutex_);  // of the newest rounds, kMaxFragments
};

}  // namespace atl
