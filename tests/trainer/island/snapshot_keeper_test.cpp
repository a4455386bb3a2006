// Snapshots are written beside everything else: who trains and who takes outer steps never waits for the disk.
#include <QtTest/QTest>
#include <latch>

#include "net/recovery/outer_state.h"
#include "trainer/island/snapshot_keeper.h"

namespace atl {
namespace {

constexpr std::int64_t kNumel = 2 * static_cast<std::int64_t>(kStateChunkNumel) + 10;  // three chunks
constexpr std::chrono::seconds kLimit{60};                                             // a hang, not a slow machine

// A disk on which every chunk waits until it is let through; it remembers what it was given.
class BlockedDisk final : public SnapshotDisk {
 public:
  Status begin(std::uint64_t) override {
    MutexLock lock(mutex_);
    chunks.clear();
    return fails ? Status(Error{ErrorCode::kDiskFull, "full"}) : ok_status();
  }
  Status put(std::uint64_t index, const StoredChunk& chunk, ByteView bytes) override {
    MutexLock lock(mutex_);
    ++waiting_;
    changed_.notify_all();
    changed_.wait(lock, [&]() ATOLL_REQUIRES(mutex_) { return let_through_ > 0; });
    --let_through_;
    --waiting_;
    chunks[index] = chunk;
    return sha256(bytes) == chunk.sha256 ? ok_status() : Status(Error{ErrorCode::kCorrupt, "torn"});
  }
  Status flush() override { return ok_status(); }
  bool rounds_lead_to(OuterStep, const HeldState&) override { return true; }
  Status finish(const HeldState& state) override {
    MutexLock lock(mutex_);
    finished.push_back(state);
    changed_.notify_all();
    return ok_status();
  }
  void give_up() override {}
  bool has_snapshot_of(const HeldState& state) const override {
    MutexLock lock(mutex_);
    return !finished.empty() && finished.back() == state;
  }
  bool leads_to(const HeldState& state) const override { return leads_everywhere || has_snapshot_of(state); }
  bool asks_for_snapshot() const override { return true; }

  void let_through(int chunks_more) {
    MutexLock lock(mutex_);
    let_through_ += chunks_more;
    changed_.notify_all();
  }
  bool await_waiting() {
    MutexLock lock(mutex_);
    return changed_.wait(lock, Deadline::after(kLimit),
                         [&]() ATOLL_REQUIRES(mutex_) { return waiting_ > 0 && let_through_ == 0; });
  }
  bool await_finished(std::size_t count) {
    MutexLock lock(mutex_);
    return changed_.wait(lock, Deadline::after(kLimit),
                         [&]() ATOLL_REQUIRES(mutex_) { return finished.size() >= count; });
  }

  bool fails = false, leads_everywhere = false;
  std::map<std::uint64_t, StoredChunk> chunks;
  std::vector<HeldState> finished;

 private:
  mutable Mutex mutex_;
  CondVar changed_;
  int waiting_ ATOLL_GUARDED_BY(mutex_) = 0, let_through_ ATOLL_GUARDED_BY(mutex_) = 0;
};

class TrainedState {
 public:
  TrainedState() { outer.initialise(std::vector<float>(static_cast<std::size_t>(kNumel), 1.0f)); }
  HeldState step() { return outer.apply(ranges_, WireFormat::kFp32, std::as_bytes(std::span(average_)), 0.7f, 0.9f); }
  OuterStateStore outer{kNumel};

 private:
  const std::vector<ParameterRange> ranges_{{0, kNumel}};
  const std::vector<float> average_ = std::vector<float>(static_cast<std::size_t>(kNumel), 0.5f);
};

void ignore(const Status&) {}

}  // namespace

class SnapshotKeeperTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  // All that follows is done by one thread, the test's, while the disk takes nothing: were it waited for, this would
  // hang.
  void outer_steps_and_training_go_on_while_the_disk_takes_nothing() {
    TrainedState trained;
    BlockedDisk disk;
    std::vector<Status> told;
    {
      SnapshotKeeper keeper(disk, trained.outer, [&](const Status& status) { told.push_back(status); });
      keeper.state_is(*trained.outer.held());
      QVERIFY(disk.await_waiting());  // with its first chunk

      for (int i = 0; i < 3; ++i) keeper.state_is(trained.step());
      QCOMPARE(trained.outer.version(), OuterStep{3});
      QVERIFY(trained.outer.copy_chunk(OuterStep{3}, 1).ok());  // served to others
      QVERIFY(disk.finished.empty());
      disk.let_through(1);
      QVERIFY(disk.await_waiting());
      keeper.state_is(trained.step());
      disk.let_through(2);

      QVERIFY(disk.await_finished(1));
      QCOMPARE(disk.finished.front().outer_step, OuterStep{4});
      disk.let_through(1'000);
      QVERIFY(keeper.finish().ok());
    }
    QVERIFY(!told.empty() && told.front().ok());
    QCOMPARE(disk.finished.back(), *trained.outer.held());
  }

  void a_snapshot_has_chunks_of_the_outer_steps_that_there_were_meanwhile() {
    TrainedState trained;
    BlockedDisk disk;
    SnapshotKeeper keeper(disk, trained.outer, ignore);
    keeper.state_is(*trained.outer.held());
    for (std::uint32_t chunk = 0; chunk < 2; ++chunk) {
      QVERIFY(disk.await_waiting());
      trained.step();
      disk.let_through(1);
    }
    QVERIFY(disk.await_waiting());
    disk.let_through(1);

    QVERIFY(disk.await_finished(1));

    QCOMPARE(disk.chunks.at(0).step, OuterStep{0});
    QCOMPARE(disk.chunks.at(1).step, OuterStep{1});
    QCOMPARE(disk.chunks.at(2).step, OuterStep{2});
    QCOMPARE(disk.finished.front(), *trained.outer.held());
  }

  void an_end_waits_for_nothing_that_is_kept_already() {
    TrainedState trained;
    BlockedDisk disk;
    disk.leads_everywhere = true;
    SnapshotKeeper keeper(disk, trained.outer, ignore);
    keeper.state_is(*trained.outer.held());
    QVERIFY(disk.await_waiting());
    disk.let_through(1);  // what is under way is given up with its next chunk

    QVERIFY(keeper.finish().ok());

    QVERIFY(disk.finished.empty());
  }

  void what_the_disk_does_not_lead_to_is_written_before_the_end() {
    TrainedState trained;
    BlockedDisk disk;
    disk.let_through(1'000);
    SnapshotKeeper keeper(disk, trained.outer, ignore);
    const HeldState last = trained.step();

    QVERIFY(keeper.finish().ok());

    QCOMPARE(disk.finished, std::vector{last});
  }

  void a_disk_that_fails_is_told_of_and_tried_again_with_the_next_state() {
    TrainedState trained;
    BlockedDisk disk;
    disk.fails = true;
    std::latch twice(2);
    SnapshotKeeper keeper(disk, trained.outer, [&](const Status& status) {
      if (!status.ok() && status.error().code == ErrorCode::kDiskFull && !twice.try_wait()) twice.count_down();
    });
    keeper.state_is(*trained.outer.held());
    while (true) {
      keeper.state_is(trained.step());
      if (twice.try_wait()) break;
    }

    QCOMPARE(keeper.finish().error().code, ErrorCode::kDiskFull);
  }

  // That there is no state while another is made is nobody's trouble.
  void a_state_that_is_let_go_of_meanwhile_is_not_told_as_a_failure() {
    TrainedState trained;
    BlockedDisk disk;
    std::atomic<int> told{0};
    SnapshotKeeper keeper(disk, trained.outer, [&](const Status&) { ++told; });
    keeper.state_is(trained.step());
    QVERIFY(disk.await_waiting());

    FetchedState room = trained.outer.release();
    disk.let_through(1000);
    QVERIFY(keeper.finish().ok());

    QCOMPARE(told.load(), 0);
    QVERIFY(disk.finished.empty());
    QVERIFY(!room.parameters.empty());
  }

  void what_takes_long_is_written_for_a_twentieth_of_the_time() {
    WritePace pace;
    const Clock::time_point began{std::chrono::hours(1)};
    QVERIFY(pace.may_write(began));
    pace.wrote(began, began + std::chrono::milliseconds(900));
    QVERIFY(pace.may_write(began + std::chrono::milliseconds(900)));

    pace.wrote(began, began + std::chrono::seconds(10));

    QVERIFY(!pace.may_write(began + std::chrono::seconds(209)));
    QVERIFY(pace.may_write(began + std::chrono::seconds(210)));
  }
};

}  // namespace atl

QTEST_GUILESS_MAIN(atl::SnapshotKeeperTest)
#include "snapshot_keeper_test.moc"
