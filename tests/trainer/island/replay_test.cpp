// An island's disk gives back every state that its round log leads to, to the last bit; what is damaged, foreign or
// undone leads nowhere.
#include <QtCore/QTemporaryDir>
#include <QtTest/QTest>
#include <filesystem>
#include <fstream>
#include <future>
#include <random>
#include <thread>

#include "net/base/encoding.h"
#include "net/collective/canonical_digest.h"
#include "net/disk/checkpoint_directory.h"
#include "net/model/fragments.h"
#include "tests/trainer/island/round_loop_fixture.h"
#include "trainer/island/island_disk.h"

namespace atl {
namespace {

ModelConfig two_blocks() {
  ModelConfig config = test::tiny_model();
  config.num_hidden_layers = 2;
  return config;
}

// Of three chunks, the last one short; with two fragments each chunk is of one of them, or of both.
ModelConfig of_three_chunks() {
  ModelConfig config = two_blocks();
  config.vocab_size = 70'000;
  config.hidden_size = 32;
  return config;
}

// The island's disk, with something that happens after each chunk that is written.
class EventfulDisk final : public SnapshotDisk {
 public:
  EventfulDisk(IslandDisk& disk, std::function<void(std::uint64_t)> after) : disk_(disk), after_(std::move(after)) {}
  Status begin(std::uint64_t numel) override { return disk_.begin(numel); }
  Status put(std::uint64_t index, const StoredChunk& chunk, ByteView bytes) override {
    ATOLL_RETURN_IF_ERROR(disk_.put(index, chunk, bytes));
    after_(index);
    return ok_status();
  }
  Status flush() override { return disk_.flush(); }
  bool rounds_lead_to(OuterStep from, const HeldState& state) override { return disk_.rounds_lead_to(from, state); }
  Status finish(const HeldState& state) override { return disk_.finish(state); }
  void give_up() override {}  // as if the process had died
  bool has_snapshot_of(const HeldState& state) const override { return disk_.has_snapshot_of(state); }
  bool leads_to(const HeldState& state) const override { return disk_.leads_to(state); }
  bool asks_for_snapshot() const override { return disk_.asks_for_snapshot(); }

 private:
  IslandDisk& disk_;
  const std::function<void(std::uint64_t)> after_;
};

using States = std::map<OuterStep, std::pair<std::string, std::vector<float>>>;  // hash and parameters

// An island that trains, as far as its disk sees it. Averages are fp32, 4 bytes a parameter of the fragment.
class TrainingIsland {
 public:
  TrainingIsland(std::filesystem::path directory, std::uint32_t fragments = 1, std::uint32_t keep_states = 3,
                 ModelConfig model = two_blocks())
      : directory_(std::move(directory)),
        model_(std::move(model)),
        fragments_(*fragments_of(canonical_layout(model_), fragments)),
        outer_(canonical_layout(model_).numel),
        disk_(directory_) {
    disk_.of_run(model_, fragments, {.keep = keep_states, .rounds = {}});
    std::vector<float> parameters(static_cast<std::size_t>(numel()));
    for (float& value : parameters) value = uniform_(random_);
    outer_.initialise(std::move(parameters));
    remember();
  }

  std::int64_t numel() const { return canonical_layout(model_).numel; }
  const ModelConfig& model() const { return model_; }
  IslandDisk& disk() { return disk_; }
  OuterStateStore& outer() { return outer_; }
  const States& states() const { return states_; }
  HeldState held(std::uint32_t step) const { return {OuterStep{step}, states_.at(OuterStep{step}).first}; }

  void snapshot() { QVERIFY(write_snapshot(disk_, outer_).ok()); }
  // One that takes so long that this happens after each of its chunks. The state to which it leads.
  HeldState slow_snapshot(std::function<void(std::uint64_t)> after) {
    EventfulDisk disk(disk_, std::move(after));
    const auto written = write_snapshot(disk, outer_);
    if (!written.ok()) qFatal("%s", written.error().message.c_str());
    return *written;
  }
  // The average of the next round: kept before anybody commits it.
  void average_round() {
    const FragmentId fragment{outer_.version().value % static_cast<std::uint32_t>(fragments_.size())};
    average_.resize(static_cast<std::size_t>(fragments_[fragment.value].numel));
    for (float& value : average_) value = uniform_(random_);
    commit_ = {};
    commit_.round = outer_.version();
    commit_.attempt = Attempt{1};
    commit_.digest = to_hex(canonical_digest(canonical()));
    commit_.outer_learning_rate = 0.7;
    commit_.outer_momentum = 0.9;
    commit_.epoch = epoch;
    commit_.fragment = fragment;
    commit_.signature = "signature " + commit_.digest;
    kept = ok_status();
    if (!disk_.keeps()) return;  // as RoundKeeper does
    auto average = disk_.begin_average(fragment, commit_.round, WireFormat::kFp32, canonical().size());
    kept = average.ok() ? average->write(0, canonical()) : Status(average.error());
    if (kept.ok()) kept = average->finish(commit_.digest);
  }
  // As SyncLane::take_outer_step does it.
  void take_outer_step() {
    apply_round();
    log_round();
  }
  HeldState apply_round() {
    disk_.told(std::make_shared<const SignedCommit>(SignedCommit{commit_, "PEM"}));
    disk_.keep_commit(commit_);
    from_ = outer_.tree_hash();
    made_ = outer_.apply(fragments_[commit_.fragment.value].ranges, WireFormat::kFp32, canonical(), 0.7f, 0.9f);
    remember();
    return made_;
  }
  void log_round() { logged = disk_.keep_round({commit_, "PEM"}, WireFormat::kFp32, canonical(), from_, made_); }
  void train(int rounds) {
    for (int i = 0; i < rounds; ++i) {
      average_round();
      take_outer_step();
    }
  }
  void go_back(std::uint32_t step) {
    auto state = disk_.kept_state(held(step), model_);
    QVERIFY2(state.ok(), state.ok() ? "" : state.error().message.c_str());
    outer_.replace(std::move(*state));
    ++epoch;
    std::erase_if(states_, [&](const auto& entry) { return entry.first.value > step; });
  }

  std::uint64_t epoch = 5;
  Status kept = ok_status(), logged = ok_status();

 private:
  ByteView canonical() const { return std::as_bytes(std::span(average_)); }
  void remember() {
    states_[outer_.version()] = {outer_.tree_hash(), {outer_.parameters().begin(), outer_.parameters().end()}};
  }

  const std::filesystem::path directory_;
  const ModelConfig model_;
  const std::vector<Fragment> fragments_;
  OuterStateStore outer_;
  IslandDisk disk_;
  std::mt19937 random_{7};
  std::uniform_real_distribution<float> uniform_{-1, 1};
  std::vector<float> average_;
  HubCommit commit_;
  std::string from_;
  HeldState made_;
  States states_;
};

}  // namespace

class ReplayTest : public QObject {
  Q_OBJECT

  std::unique_ptr<QTemporaryDir> home_;
  std::filesystem::path directory() const { return home_->path().toStdString(); }
  std::filesystem::path average_of(std::uint32_t round) const {
    return directory() / "rounds" / ("round." + std::to_string(round) + ".average");
  }
  // Another process finds the disk as it is, to come back with this state.
  void verify_comes_back(const HeldState& held, const States& states) const {
    IslandDisk again(directory());
    const auto found = again.load();
    QVERIFY2(found.ok(), found.ok() ? "" : found.error().message.c_str());
    QCOMPARE(found->outer->version(), held.outer_step);
    QCOMPARE(found->outer->tree_hash(), held.state_hash);
    QVERIFY(std::ranges::equal(found->outer->parameters(), states.at(held.outer_step).second));
    QCOMPARE(again.durable().front(), held);
  }
  void flip_byte(const std::filesystem::path& path, std::streamoff at) const {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(at);
    const int byte = file.get();
    file.seekp(at);
    file.put(static_cast<char>(byte ^ 1));
    QVERIFY(file.good());
  }

 private Q_SLOTS:
  void init() { home_ = std::make_unique<QTemporaryDir>(); }

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

  // ---- snapshots of a state that goes on meanwhile

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
