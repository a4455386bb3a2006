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
#include "net/disk/kept_states.h"
#include "net/disk/round_log.h"
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
  void of_run(const ModelConfig& model, std::uint32_t fragments, Retention retention);

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
  // One that is kept, or that logged rounds lead to.
  Result<FetchedState> kept_state(const HeldState& wanted, const ModelConfig& model);
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
  std::optional<InnerState> take_work(std::uint64_t numel) const;

  // ---- averages: the thread that writes rounds (round_keeper.h), but for what says another
  // One that is still being made; nothing is there until it is finished.
  Result<AverageWriter> begin_average(FragmentId fragment, OuterStep round, WireFormat wire, std::uint64_t bytes) const;
  // Of an open round, or one that was logged. The lane of the fragment.
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
  Status log_round(const HubCommit& commit, WireFormat wire, ByteView canonical, const std::string& from,
                   const HeldState& made);
  void prune();
  std::shared_ptr<const SignedCommit> signed_record(const HubCommit& commit) const;
  void look_at_disk(const HeldState* made = nullptr) ATOLL_REQUIRES(files_);
  std::filesystem::path average_file(FragmentId fragment) const;
  std::filesystem::path inner_state_file() const { return directory_ / kInnerStateFile; }

  const std::filesystem::path directory_;
  const RoundLog log_;
  ModelConfig model_;
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
  OuterStep logged_to_ ATOLL_GUARDED_BY(mutex_);             // made by the round that was logged last, or could not be
  std::vector<HeldState> durable_ ATOLL_GUARDED_BY(mutex_);  // on the disk
  std::deque<std::shared_ptr<const SignedCommit>> told_
      ATOLL_GUARDED_BY(mutex_);  // of the newest rounds, kMaxFragments
};

}  // namespace atl
