// Snapshots of a state that goes on while they are written: their chunks are of different outer steps, and the round
// log makes up for that, to the last bit.
#include <QtCore/QTemporaryDir>
#include <QtTest/QTest>
#include <filesystem>
#include <fstream>

#include "tests/trainer/island/training_island.h"

namespace atl {

using namespace test;

class ReplaySnapshotTest : public QObject, private ReplayFixture {
  Q_OBJECT

 private Q_SLOTS:
  void init() { new_directory(); }

  void chunks_of_different_outer_steps_and_the_rounds_since_give_the_exact_bits_data() {
    QTest::addColumn<quint32>("fragments");
    QTest::newRow("the whole model") << 1u;
    QTest::newRow("two fragments") << 2u;
  }
  void chunks_of_different_outer_steps_and_the_rounds_since_give_the_exact_bits() {
    QFETCH(const quint32, fragments);
    TrainingIsland island(directory(), fragments, /*keep_states=*/1, of_three_chunks());
    island.train(1);

    const HeldState written = island.slow_snapshot([&](std::uint64_t) { island.train(1); });

    QCOMPARE(written, island.held(3));  // of which its last chunk was
    QCOMPARE(island.outer().version(), OuterStep{4});
    const std::vector<KeptState> kept = kept_states(directory());
    QCOMPARE(kept.size(), std::size_t{1});
    QCOMPARE(kept[0].info.oldest_chunk(), OuterStep{1});
    QCOMPARE(kept[0].info.newest_chunk(), OuterStep{3});
    QVERIFY(verify_snapshot(kept[0].path).ok());
    verify_comes_back(island.held(4), island.states());
    island.train(2);
    verify_comes_back(island.held(6), island.states());
    for (const std::uint32_t step : {3u, 4u, 5u, 6u}) {
      const auto state = island.disk().kept_state(island.held(step), island.model());
      QVERIFY(state.ok());
      QCOMPARE(state->parameters, island.states().at(OuterStep{step}).second);
    }
    QVERIFY(!island.disk().kept_state(island.held(2), island.model()).ok());  // one chunk is further
  }

  // And nobody counts on the states to which it alone would lead.
  void a_round_that_older_chunks_need_and_that_is_gone_leaves_the_snapshot_before_data() {
    QTest::addColumn<bool>("is_altered");
    QTest::newRow("gone") << false;
    QTest::newRow("altered") << true;
  }
  void a_round_that_older_chunks_need_and_that_is_gone_leaves_the_snapshot_before() {
    QFETCH(const bool, is_altered);
    TrainingIsland island(directory(), 1, 3, of_three_chunks());
    island.snapshot();
    island.train(1);
    island.slow_snapshot([&](std::uint64_t) { island.train(1); });
    island.train(1);
    if (is_altered) {
      flip_byte(average_of(2), 1'000'003);  // an exponent: no rounding hides it
    } else {
      std::filesystem::remove(average_of(2));
    }

    IslandDisk again(directory());
    const auto found = again.load();

    QVERIFY2(found.ok(), found.ok() ? "" : found.error().message.c_str());
    QCOMPARE(found->outer->version(), OuterStep{2});
    QCOMPARE(found->outer->tree_hash(), island.held(2).state_hash);
    QCOMPARE(again.durable().front(), island.held(2));
  }

  void a_damaged_chunk_is_made_up_for_by_another_snapshot_and_the_log() {
    TrainingIsland island(directory(), 1, 3, of_three_chunks());
    island.snapshot();
    island.train(1);
    const HeldState damaged = island.slow_snapshot([&](std::uint64_t) { island.train(1); });
    const auto file = directory() / kept_state_name(damaged.outer_step) / "chunks.00000";
    flip_byte(file, static_cast<std::streamoff>(kStateChunkBytes + 77));

    verify_comes_back(island.held(4), island.states());
    std::filesystem::remove_all(directory() / "outer.0.state");

    IslandDisk again(directory());
    const auto found = again.load();
    QCOMPARE(found.error().code, ErrorCode::kCorrupt);
    QVERIFY2(found.error().message.find("chunk 1 ") != std::string::npos, found.error().message.c_str());
  }

  void a_state_that_takes_the_place_of_another_meanwhile_is_written_from_its_beginning() {
    TrainingIsland island(directory(), 1, 3, of_three_chunks());
    island.train(2);
    int chunks = 0;
    const auto replace = [&](std::uint64_t) {
      if (++chunks != 2) return;
      FetchedState fetched{OuterStep{9}, std::vector<float>(static_cast<std::size_t>(island.numel()), 0.25f),
                           std::vector<float>(static_cast<std::size_t>(island.numel()), 0.5f)};
      island.outer().replace(std::move(fetched));
    };

    const HeldState written = island.slow_snapshot(replace);

    QCOMPARE(written, *island.outer().held());
    QCOMPARE(written.outer_step, OuterStep{9});
    QVERIFY(verify_snapshot(directory() / "outer.9.state").ok());
    QCOMPARE(chunks, 5);
  }

  void where_rounds_cannot_be_logged_chunks_that_are_behind_are_written_again() {
    TrainingIsland island(directory(), 1, 3, of_three_chunks());
    island.train(1);
    std::filesystem::remove_all(directory() / "rounds");
    std::ofstream(directory() / "rounds") << "no directory";
    int chunks = 0;

    const HeldState written = island.slow_snapshot([&](std::uint64_t) {
      if (++chunks == 2) island.train(1);
    });

    QVERIFY(!island.logged.ok());
    QCOMPARE(written, island.held(2));
    QCOMPARE(chunks, 5);
    QCOMPARE(peek_snapshot(directory() / "outer.2.state")->oldest_chunk(), OuterStep{2});
    verify_comes_back(island.held(2), island.states());
  }

  void a_process_that_dies_while_it_writes_one_leaves_what_was_there_and_the_next_begins_anew() {
    TrainingIsland island(directory(), 1, 2, of_three_chunks());
    island.snapshot();
    island.train(2);
    std::stop_source dies;
    EventfulDisk disk(island.disk(), [&](std::uint64_t) { dies.request_stop(); });
    QCOMPARE(write_snapshot(disk, island.outer(), dies.get_token()).error().code, ErrorCode::kAborted);
    QVERIFY(std::filesystem::exists(directory() / kWrittenSnapshot));

    verify_comes_back(island.held(2), island.states());
    island.snapshot();

    QVERIFY(!std::filesystem::exists(directory() / kWrittenSnapshot));
    QCOMPARE(kept_states(directory()).size(), std::size_t{2});
    verify_comes_back(island.held(2), island.states());
  }

  // Four averages of fp32 are two states: all but the last ones are too many bytes.
  void rounds_that_a_kept_snapshot_needs_are_not_removed_for_their_bytes() {
    TrainingIsland island(directory(), 1, 3, of_three_chunks());
    const HeldState first = island.slow_snapshot([&](std::uint64_t) { island.train(1); });
    QCOMPARE(first, island.held(2));
    island.train(5);

    island.snapshot();

    const LoggedRounds logged = RoundLog(directory()).rounds();
    QVERIFY(logged.contains(OuterStep{0}) && logged.contains(OuterStep{1}) && !logged.contains(OuterStep{2}));
    QVERIFY(island.disk().kept_state(first, island.model()).ok());
  }

  // A state may come between the look at which states stay and that at which rounds do.
  void rounds_that_a_state_needs_which_came_meanwhile_are_not_removed() {
    TrainingIsland island(directory(), 1, 3, of_three_chunks());
    island.snapshot();
    island.train(1);
    const Retention retention{.keep = 3, .rounds = {}};
    remove_states(directory(), retention, RoundLog(directory()));
    const HeldState came = island.slow_snapshot([&](std::uint64_t) { island.train(1); });
    QCOMPARE(came, island.held(3));
    island.train(5);  // too many bytes

    remove_rounds(directory(), retention, RoundLog(directory()));

    const LoggedRounds logged = RoundLog(directory()).rounds();
    QVERIFY(!logged.contains(OuterStep{0}) && logged.contains(OuterStep{1}) && logged.contains(OuterStep{2}));
    QVERIFY(island.disk().kept_state(came, island.model()).ok());
  }

  // Who writes a snapshot waits for the round that made its state, whatever was logged of that number before.
  void a_round_that_a_rollback_undid_is_not_taken_for_the_one_in_its_place() {
    TrainingIsland island(directory());
    island.snapshot();
    island.train(3);
    island.go_back(1);
    island.average_round();
    const HeldState made = island.apply_round();

    std::promise<void> asks;
    auto led = std::async(std::launch::async, [&] {
      asks.set_value();
      return island.disk().rounds_lead_to(OuterStep{1}, made);
    });
    asks.get_future().wait();
    std::this_thread::sleep_for(std::chrono::milliseconds(50));  // for it to look; no longer is ever needed
    island.log_round();

    QVERIFY(led.get());
    island.disk().is_through_with({OuterStep{3}, std::string(64, 'f')});
    QVERIFY(!island.disk().rounds_lead_to(OuterStep{2}, {OuterStep{3}, std::string(64, 'f')}));  // it is not waited for
  }
};

}  // namespace atl

QTEST_GUILESS_MAIN(atl::ReplaySnapshotTest)
#include "replay_snapshot_test.moc"
