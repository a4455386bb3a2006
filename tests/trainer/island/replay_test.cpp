// An island's disk gives back every state that its round log leads to, to the last bit; what is damaged, foreign or
// undone leads nowhere.
#include <QtCore/QTemporaryDir>
#include <QtTest/QTest>
#include <filesystem>
#include <fstream>

#include "tests/trainer/island/training_island.h"

namespace atl {

using namespace test;

class ReplayTest : public QObject, private ReplayFixture {
  Q_OBJECT

 private Q_SLOTS:
  void init() { new_directory(); }

  void an_island_comes_back_to_the_newest_state_however_old_its_snapshot_is_data() {
    QTest::addColumn<quint32>("fragments");
    QTest::newRow("the whole model") << 1u;
    QTest::newRow("two fragments") << 2u;
    QTest::newRow("four fragments") << 4u;
  }
  void an_island_comes_back_to_the_newest_state_however_old_its_snapshot_is() {
    QFETCH(const quint32, fragments);
    TrainingIsland island(directory(), fragments);
    island.train(2);
    island.snapshot();

    island.train(9);

    verify_comes_back(island.held(11), island.states());
    QVERIFY(!std::filesystem::exists(directory() / "average.kept"));  // moved, not copied
  }

  // Its commit may come when it is back.
  void the_average_of_a_round_that_is_not_committed_is_found_beside_the_log() {
    TrainingIsland island(directory());
    island.snapshot();
    island.train(3);
    island.average_round();

    verify_comes_back(island.held(3), island.states());
    IslandDisk again(directory());
    const LoggedRounds logged = RoundLog(directory()).rounds();
    const auto open = peek_average(directory() / "average.kept");
    QVERIFY(open.ok());
    QCOMPARE(open->round, OuterStep{3});
    QVERIFY(again.kept_average(FragmentId{0}, OuterStep{3}, open->digest).ok());
    QVERIFY(again.kept_average(FragmentId{0}, OuterStep{1}, logged.at(OuterStep{1}).record.commit.digest).ok());
    QVERIFY(!again.kept_average(FragmentId{0}, OuterStep{1}, open->digest).ok());
  }

  void every_state_that_is_said_to_be_durable_can_be_gone_back_to() {
    TrainingIsland island(directory(), /*fragments=*/2);
    for (int i = 0; i < 4; ++i) {
      island.snapshot();
      island.train(3);
    }

    const std::vector<HeldState> durable = island.disk().durable();

    QCOMPARE(durable.front(), island.held(12));
    QVERIFY(durable.size() > 8 && durable.size() <= kMaxHeldStates);
    for (const HeldState& held : durable) {
      QCOMPARE(held, island.held(held.outer_step.value));
      const auto state = island.disk().kept_state(held, two_blocks());
      QVERIFY(state.ok());
      QCOMPARE(state->version, held.outer_step);
      QCOMPARE(state->parameters, island.states().at(held.outer_step).second);
    }
    QVERIFY(!island.disk().kept_state({OuterStep{5}, std::string(64, 'e')}, two_blocks()).ok());
    QVERIFY(!island.disk().kept_state({OuterStep{13}, island.held(12).state_hash}, two_blocks()).ok());
  }

  void a_way_back_takes_the_memory_of_the_state_that_it_undoes() {
    TrainingIsland island(directory());
    island.snapshot();
    island.train(3);
    QVERIFY(island.disk().has_way_to(island.held(1)));
    QVERIFY(!island.disk().has_way_to({OuterStep{1}, std::string(64, 'f')}));
    FetchedState room = island.outer().release();
    const float* const parameters = room.parameters.data();
    const float* const momentum = room.momentum.data();

    const auto state = island.disk().kept_state(island.held(1), island.model(), std::move(room));

    QVERIFY(state.ok());
    QVERIFY(state->parameters.data() == parameters && state->momentum.data() == momentum);
    QVERIFY(state->parameters == island.states().at(OuterStep{1}).second);
  }

  void more_states_than_can_be_told_are_told_newest_first_and_with_all_that_are_kept() {
    TrainingIsland island(directory());
    island.snapshot();
    island.train(3);
    island.snapshot();
    island.train(20);

    const std::vector<HeldState> durable = island.disk().durable();

    QCOMPARE(durable.size(), kMaxHeldStates);
    QCOMPARE(durable.front(), island.held(23));
    QCOMPARE(durable[1], island.held(22));
    QCOMPARE(durable[kMaxHeldStates - 2], island.held(3));
    QCOMPARE(durable.back(), island.held(0));
  }

  void where_an_average_is_damaged_the_island_comes_back_to_the_state_before_it_data() {
    QTest::addColumn<int>("damage");
    QTest::newRow("cut short") << 0;
    QTest::newRow("altered") << 1;
    QTest::newRow("gone") << 2;
    QTest::newRow("its wire format altered") << 3;
    QTest::newRow("of another model") << 4;
  }
  void where_an_average_is_damaged_the_island_comes_back_to_the_state_before_it() {
    QFETCH(const int, damage);
    TrainingIsland island(directory());
    island.snapshot();
    island.train(6);
    const auto file = average_of(4);
    switch (damage) {
      case 0: std::filesystem::resize_file(file, std::filesystem::file_size(file) / 2); break;
      case 1: flip_byte(file, 1'000); break;
      case 2: std::filesystem::remove(file); break;
      case 3: flip_byte(file, 16); break;
      default: {
        const std::string digest = peek_average(file)->digest;
        QVERIFY(save_average(file, OuterStep{4}, WireFormat::kFp32, digest, Bytes(100)).ok());
      }
    }

    verify_comes_back(island.held(4), island.states());
    IslandDisk again(directory());
    QVERIFY(again.load().ok());
    QVERIFY(!again.kept_state(island.held(6), two_blocks()).ok());
    QVERIFY(again.kept_state(island.held(3), two_blocks()).ok());
  }

  // Learning rate and hashes are behind the record's own digest; here somebody writes a record that is whole and wrong.
  void a_round_that_makes_another_state_than_it_did_is_not_taken() {
    TrainingIsland island(directory());
    island.snapshot();
    island.train(5);
    LoggedRound wrong = RoundLog(directory()).rounds().at(OuterStep{3});
    wrong.record.commit.outer_learning_rate = 0.5;
    QVERIFY(write_logged_round(directory() / "rounds" / "round.3.record", wrong).ok());

    verify_comes_back(island.held(3), island.states());
  }

  void a_round_is_taken_on_no_other_state_than_its_own() {
    TrainingIsland island(directory());
    island.snapshot();
    island.train(5);
    LoggedRound wrong = RoundLog(directory()).rounds().at(OuterStep{2});
    wrong.from = island.held(1).state_hash;
    QVERIFY(write_logged_round(directory() / "rounds" / "round.2.record", wrong).ok());

    verify_comes_back(island.held(2), island.states());
  }

  void what_was_made_after_a_rollback_counts_and_what_it_undid_does_not() {
    TrainingIsland island(directory());
    island.snapshot();
    island.train(3);
    island.snapshot();
    island.train(5);
    const HeldState undone = island.held(8);

    island.go_back(5);
    island.train(1);  // without a snapshot of what it went back to

    verify_comes_back(island.held(6), island.states());
    QVERIFY(!island.disk().kept_state(undone, two_blocks()).ok());
    island.train(4);
    verify_comes_back(island.held(10), island.states());
  }

  // Its snapshot is of an outer step that the rounds after the rollback reach as well, in another state.
  void a_snapshot_of_what_was_undone_is_nothing_to_go_on_from() {
    TrainingIsland island(directory());
    island.snapshot();
    island.train(4);
    island.snapshot();
    island.train(1);

    island.go_back(2);
    island.train(4);

    verify_comes_back(island.held(6), island.states());
  }

  void a_snapshot_that_cannot_be_read_is_made_up_for_by_an_older_one_and_the_log() {
    TrainingIsland island(directory());
    island.snapshot();
    island.train(3);
    island.snapshot();
    island.train(3);
    flip_byte(directory() / "outer.3.state" / "chunks.00000", 100);

    verify_comes_back(island.held(6), island.states());
    for (const std::uint32_t step : {3u, 5u}) {
      const auto state = island.disk().kept_state(island.held(step), two_blocks());
      QVERIFY(state.ok());
      QCOMPARE(state->parameters, island.states().at(OuterStep{step}).second);
    }
  }

  // Of its index alone nobody could tell; from when it was read in vain on nobody is to count on it.
  void a_snapshot_that_cannot_be_read_is_not_said_to_be_durable() {
    TrainingIsland island(directory());
    island.snapshot();
    island.train(1);
    island.snapshot();
    std::filesystem::remove(directory() / "rounds" / "round.0.record");
    QCOMPARE(island.disk().durable().front(), island.held(1));
    flip_byte(directory() / "outer.1.state" / "chunks.00000", 100);

    QVERIFY(!island.disk().kept_state(island.held(1), two_blocks()).ok());
    QCOMPARE(island.disk().durable(), (std::vector<HeldState>{island.held(0)}));
    QVERIFY(!island.disk().has_snapshot_of(island.held(1)));
    IslandDisk again(directory());
    const auto loaded = again.load();
    QVERIFY(loaded.ok());
    QCOMPARE(loaded->outer->version(), OuterStep{0});
    QCOMPARE(again.durable(), (std::vector<HeldState>{island.held(0)}));

    island.snapshot();  // in its place, of what the island holds still
    QCOMPARE(island.disk().durable().front(), island.held(1));
    QVERIFY(island.disk().kept_state(island.held(1), two_blocks()).ok());
  }

  void a_state_for_which_there_is_no_room_is_not_begun() {
    TrainingIsland island(directory());
    island.snapshot();
    const std::uint64_t largest = kMaxStateChunks * kStateChunkNumel;  // 18 TB
    if (std::filesystem::space(directory()).available > 2 * sizeof(float) * largest) QSKIP("there is room for it");

    const Status begun = island.disk().begin(largest);

    QVERIFY(!begun.ok());
    QCOMPARE(begun.error().code, ErrorCode::kDiskFull);
    QVERIFY(!std::filesystem::exists(directory() / kWrittenSnapshot));
    island.train(1);
    QVERIFY(island.logged.ok());
  }

  // The hub leads it on, or names others that hold a newer one.
  void an_older_snapshot_alone_is_better_than_none() {
    TrainingIsland island(directory());
    island.train(2);
    island.snapshot();
    island.train(2);
    island.snapshot();
    std::filesystem::remove_all(directory() / "rounds");
    std::filesystem::remove_all(directory() / "outer.4.state");

    verify_comes_back(island.held(2), island.states());
  }

  void a_state_that_no_round_leads_to_is_asked_for() {
    TrainingIsland island(directory());
    island.snapshot();
    island.train(2);
    QVERIFY(!island.disk().asks_for_snapshot());
    FetchedState fetched;  // from others, who are further
    fetched.version = OuterStep{9};
    fetched.parameters.assign(static_cast<std::size_t>(island.numel()), 0.25f);
    fetched.momentum.assign(static_cast<std::size_t>(island.numel()), 0.5f);
    island.outer().replace(std::move(fetched));
    island.train(1);
    QCOMPARE(island.disk().durable().front(), island.held(2));

    QVERIFY(island.disk().asks_for_snapshot());
    island.snapshot();

    QVERIFY(!island.disk().asks_for_snapshot());
    island.train(2);
    verify_comes_back(island.held(12), island.states());
  }

  // An average of fp32 is half a state: the fifth is more than two of them.
  void so_much_is_logged_and_no_more_before_a_state_is_asked_for() {
    TrainingIsland island(directory(), /*fragments=*/1, /*keep_states=*/2);
    island.snapshot();
    island.train(4);
    QVERIFY(!island.disk().asks_for_snapshot());
    island.train(1);
    QVERIFY(island.disk().asks_for_snapshot());

    island.snapshot();

    QVERIFY(!island.disk().asks_for_snapshot());
    QCOMPARE(RoundLog(directory()).rounds().size(), std::size_t{4});
    verify_comes_back(island.held(5), island.states());
  }

  void rounds_before_the_oldest_kept_state_are_removed_with_the_one_before() {
    TrainingIsland island(directory(), /*fragments=*/1, /*keep_states=*/2);
    for (int i = 0; i < 5; ++i) {
      island.snapshot();
      island.train(1);
    }

    QCOMPARE(RoundLog(directory()).rounds().begin()->first, OuterStep{3});
    verify_comes_back(island.held(5), island.states());
  }

  void a_disk_that_takes_no_average_is_told_of_and_one_that_is_mended_has_the_round_at_its_commit() {
    TrainingIsland island(directory());
    island.snapshot();
    island.train(1);
    std::filesystem::create_directory(directory() / "average.kept");  // nothing can take its place
    island.average_round();
    QVERIFY(!island.kept.ok());

    island.take_outer_step();

    QVERIFY2(island.logged.ok(), island.logged.ok() ? "" : island.logged.error().message.c_str());
    verify_comes_back(island.held(2), island.states());
    std::filesystem::remove_all(directory() / "rounds");
    std::ofstream(directory() / "rounds") << "no directory";
    island.train(1);
    QVERIFY(!island.logged.ok());
  }

  void a_lane_has_the_round_logged_before_the_hub_hears_of_its_outer_step_data() {
    QTest::addColumn<quint32>("fragments");
    QTest::newRow("the whole model") << 1u;
    QTest::newRow("two fragments") << 2u;
  }
  void a_lane_has_the_round_logged_before_the_hub_hears_of_its_outer_step() {
    QFETCH(const quint32, fragments);
    test::RoundLoopFixture island(test::RoundLoopFixture::run_of(fragments));
    island.must(island.loop.handle(HubInitialise{}));
    std::string from = island.outer.tree_hash();
    for (std::uint32_t round = 0; round < 3; ++round) {
      island.commit_round(round);

      QCOMPARE(island.network.logged.size(), std::size_t{round + 1});
      const auto& logged = island.network.logged.back();
      QCOMPARE(logged.round, OuterStep{round});
      QCOMPARE(logged.from, from);
      QCOMPARE(logged.made, (HeldState{OuterStep{round + 1}, island.outer.tree_hash()}));
      QVERIFY(logged.canonical == island.network.kept.at(OuterStep{round}).canonical);
      QCOMPARE(logged.told_before, std::size_t{round});
      from = logged.made.state_hash;
    }
  }

  void an_outer_state_in_a_single_file_is_gone_on_from() {
    TrainingIsland island(directory());
    island.snapshot();
    island.train(2);
    std::filesystem::remove_all(directory() / "outer.0.state");
    const std::vector<float>& values = island.states().at(OuterStep{0}).second;
    ByteWriter file;
    file.put_bytes(as_bytes("ATLOUTER"));
    file.put(std::uint32_t{1});
    file.put(std::uint32_t{0});
    file.put(static_cast<std::uint64_t>(values.size()));
    file.put_bytes(std::as_bytes(std::span(values)));
    file.put_bytes(Bytes(values.size() * sizeof(float)));
    file.put_bytes(as_bytes(island.held(0).state_hash));
    std::ofstream(directory() / "outer.state", std::ios::binary) << to_string(file.bytes());

    verify_comes_back(island.held(2), island.states());
    flip_byte(directory() / "outer.state", 103);  // an exponent

    QCOMPARE(IslandDisk(directory()).load().error().code, ErrorCode::kCorrupt);
  }

  // After a kill nobody may ever write that round again.
  void what_a_killed_process_left_of_files_is_removed_when_the_next_begins() {
    TrainingIsland island(directory());
    island.snapshot();
    island.train(2);
    const std::set<std::filesystem::path> left{directory() / "average.kept.new.0123456789abcdef01234567",
                                               directory() / "rounds" / "round.1.average.new.0123456789abcdef01234567",
                                               directory() / "rounds" / "round.7.record.new.0123456789abcdef01234567"};
    for (const auto& file : left) std::ofstream(file) << "half";

    verify_comes_back(island.held(2), island.states());

    for (const auto& file : left) QVERIFY(!std::filesystem::exists(file));
  }

  void an_island_without_a_directory_keeps_nothing() {
    TrainingIsland island({});

    island.train(2);

    QVERIFY(island.kept.ok() && island.logged.ok());
    QVERIFY(island.disk().durable().empty());
    QCOMPARE(island.disk().kept_state(island.held(2), two_blocks()).error().code, ErrorCode::kNotFound);
  }
};

}  // namespace atl

QTEST_GUILESS_MAIN(atl::ReplayTest)
#include "replay_test.moc"
