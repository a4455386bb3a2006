// Faults in the middle of an all-reduce, over an emulated internet and between the real programs: whatever happens to
// one island or one link, the round under way is committed by everybody else, with the same outer state, and the island
// comes back.
#include <QtTest>
#include <csignal>

#include "tests/wan/wan_run.h"

namespace atl::wan {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr seconds kBound{120};  // for anything; a hang, not a slow machine
constexpr milliseconds kIntoTheAttempt{400};

}  // namespace

class WanFaultsTest : public QObject {
  Q_OBJECT

  std::unique_ptr<WanRun> run_;

  void begin_run() {
    run_.reset();
    run_ = std::make_unique<WanRun>(WanRunOptions{.dead_after = milliseconds(6'000)});
    QVERIFY(run_->wait_until([](const HubState& state) { return state.outer_step >= 1; }, 2 * kBound));
  }

  // Breaks something in mid-attempt: the round that was under way, once it is committed and compared.
  std::optional<HubState::Round> committed_in_spite_of(const std::function<void()>& fault) {
    const auto round = run_->wait_for_ring(kBound);
    if (!round) return std::nullopt;
    (void)run_->busiest_edge();
    QTest::qWait(static_cast<int>(kIntoTheAttempt.count()));
    const auto begin = Clock::now();
    fault();
    const auto record = run_->wait_for_commit(*round, kBound);
    qInfo("committed and compared %.1f s after the fault", Seconds(Clock::now() - begin).count());
    return record;
  }

  void verify(const std::optional<HubState::Round>& record, std::uint32_t members) {
    QVERIFY2(record.has_value(), "the round was not committed in time");
    QCOMPARE(record->members, members);
    QCOMPARE(record->outer_hashes_equal, std::optional<bool>(true));
  }

 private Q_SLOTS:
  void initTestCase() {
    if (const auto reason = WanBox::unavailable()) QSKIP(reason->c_str());
    begin_run();
  }
  void cleanup() { QVERIFY2(run_->wait_for_all(kBound), "not everybody came back"); }
  void cleanupTestCase() { run_.reset(); }

  void the_others_commit_when_one_is_stopped();
  void the_others_commit_when_one_is_black_holed();
  void the_others_commit_when_one_is_killed();
  void all_commit_when_one_edge_of_four_is_cut();
  void all_commit_when_one_edge_carries_one_way_only();
};

void WanFaultsTest::the_others_commit_when_one_is_stopped() {
  const auto record = committed_in_spite_of([&] { run_->stop(1); });
  run_->resume(1);

  verify(record, 3);
}

void WanFaultsTest::the_others_commit_when_one_is_black_holed() {
  const auto record = committed_in_spite_of([&] { run_->cut_off(2); });
  run_->reconnect(2);

  verify(record, 3);
}

void WanFaultsTest::the_others_commit_when_one_is_killed() {
  const auto record = committed_in_spite_of([&] { run_->kill(3); });
  run_->start(3);

  verify(record, 3);
}

void WanFaultsTest::all_commit_when_one_edge_of_four_is_cut() {
  std::pair<int, int> edge;

  const auto record = committed_in_spite_of([&] {
    edge = run_->busiest_edge();
    run_->box().cut(WanRun::host_of_island(edge.first), WanRun::host_of_island(edge.second));
  });
  run_->box().restore(WanRun::host_of_island(edge.first), WanRun::host_of_island(edge.second));

  verify(record, 4);
}

void WanFaultsTest::all_commit_when_one_edge_carries_one_way_only() {
  begin_run();  // for the hub remembers the edge that was dead: without two of them there may be no ring of four
  std::pair<int, int> edge;
  const auto set_cut = [&](bool cut) {
    run_->box().change_path(WanRun::host_of_island(edge.first), WanRun::host_of_island(edge.second),
                            [&](WanPath& path) { path.cut = cut; });
  };

  const auto record = committed_in_spite_of([&] {
    edge = run_->busiest_edge();
    set_cut(true);
  });
  set_cut(false);

  verify(record, 4);
}

}  // namespace atl::wan

QTEST_GUILESS_MAIN(atl::wan::WanFaultsTest)
#include "wan_faults_test.moc"
