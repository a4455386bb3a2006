// What an island keeps on its disk to come back to: outer states, the average of the open round, the hub's records.
#include <QtCore/QTemporaryDir>
#include <QtTest/QTest>
#include <fstream>

#include "net/base/encoding.h"
#include "net/collective/canonical_digest.h"
#include "net/disk/checkpoint_directory.h"
#include "net/disk/kept_average_file.h"
#include "net/disk/kept_states.h"
#include "net/disk/replay.h"
#include "trainer/island/outer_state_store.h"
#include "trainer/island/run_record.h"

namespace atl {
namespace {

constexpr std::int64_t kNumel = 6;

// An outer state store that is `steps` outer steps on.
std::unique_ptr<OuterStateStore> at_step(std::uint32_t steps) {
  auto store = std::make_unique<OuterStateStore>(kNumel);
  store->initialise(std::vector<float>(kNumel, 1.0f));
  const std::vector<float> average(kNumel, 0.5f);
  for (std::uint32_t i = 0; i < steps; ++i) {
    store->apply(std::vector<ParameterRange>{{0, kNumel}}, WireFormat::kFp32, std::as_bytes(std::span(average)), 0.7f,
                 0.9f);
  }
  return store;
}

// A state that nobody has: what is asked here is only which ones stay.
KeptState kept_state(std::uint32_t step, std::uint64_t number, std::uint64_t day, std::uint32_t oldest_chunk) {
  SnapshotInfo info{.state = {OuterStep{step}, std::string(64, 'a')},
                    .numel = kNumel,
                    .number = number,
                    .saved_at = day * 86'400 + number,
                    .chunks = {{OuterStep{oldest_chunk}, {}}}};
  return {"outer." + std::to_string(step) + ".state", std::move(info)};
}

LoggedRound logged_round(std::uint32_t round) {
  LoggedRound logged{.record = {}, .from = std::string(64, 'a'), .made = std::string(64, 'a')};
  logged.record.commit.round = OuterStep{round};
  return logged;
}

std::vector<std::uint32_t> left_by(const RetentionPlan& plan, const std::vector<KeptState>& kept) {
  std::vector<std::uint32_t> steps;
  for (const KeptState& state : kept) {
    const bool goes = std::ranges::find(plan.remove, state.path, &KeptState::path) != plan.remove.end();
    if (!goes) steps.push_back(state.state().outer_step.value);
  }
  return steps;
}

std::shared_ptr<const SignedCommit> commit_of(std::uint32_t round) {
  SignedCommit commit;
  commit.commit.round = OuterStep{round};
  commit.commit.digest = std::string(64, 'a');
  commit.commit.epoch = 5;
  commit.hub_certificate = "PEM";
  return std::make_shared<const SignedCommit>(commit);
}

}  // namespace

class KeptFilesTest : public QObject {
  Q_OBJECT

  QTemporaryDir home_;
  std::filesystem::path directory() const { return home_.path().toStdString(); }

  void save(const Retention& retention, std::uint32_t step) const {
    const auto store = at_step(step);
    auto writer = SnapshotWriter::open(directory() / kWrittenSnapshot, kNumel);
    QVERIFY(writer.ok());
    Bytes bytes;
    const auto chunk = store->copy_chunk(0, bytes);
    QVERIFY(writer->put(0, {chunk->state.outer_step, chunk->sha256}, bytes).ok());
    QVERIFY(std::move(*writer).finish(chunk->state, directory() / kept_state_name(OuterStep{step})).ok());
    remove_states(directory(), retention, RoundLog(directory()));
  }
  std::vector<std::uint32_t> steps() const {
    std::vector<std::uint32_t> steps;
    for (const KeptState& kept : kept_states(directory())) steps.push_back(kept.state().outer_step.value);
    return steps;
  }

 private Q_SLOTS:
  void init() {
    for (const auto& entry : std::filesystem::directory_iterator(directory())) std::filesystem::remove_all(entry);
  }

  void the_newest_two_states_and_a_validated_one_stay() {
    for (std::uint32_t step = 1; step <= 8; ++step) save({.keep = 3, .anchor_every = 5, .rounds = {}}, step);

    QCOMPARE(steps(), (std::vector<std::uint32_t>{8, 7, 5}));
  }

  void after_a_rollback_the_newest_is_kept_and_what_was_undone_goes_first() {
    const Retention retention{.keep = 3, .anchor_every = 2, .rounds = {}};
    for (std::uint32_t step = 5; step <= 9; ++step) save(retention, step);
    QCOMPARE(steps(), (std::vector<std::uint32_t>{9, 8, 6}));

    save(retention, 7);
    QCOMPARE(steps(), (std::vector<std::uint32_t>{9, 7, 6}));
    QCOMPARE(newest_of(kept_states(directory()))->state().outer_step, OuterStep{7});
    save(retention, 8);

    QCOMPARE(steps(), (std::vector<std::uint32_t>{8, 7, 6}));
    QCOMPARE(newest_of(kept_states(directory()))->state().outer_step, OuterStep{8});
  }

  void the_same_state_written_again_is_kept_once() {
    const Retention retention{.keep = 3, .rounds = {}};
    for (const std::uint32_t step : {5u, 6u, 5u, 5u}) save(retention, step);

    QCOMPARE(steps(), (std::vector<std::uint32_t>{6, 5}));
    QCOMPARE(newest_of(kept_states(directory()))->state().outer_step, OuterStep{5});
  }

  void what_a_process_that_died_left_of_a_state_that_it_removed_goes_too() {
    save({.keep = 2, .rounds = {}}, 5);
    std::filesystem::rename(directory() / "outer.5.state", directory() / kRemovedSnapshot);
    QVERIFY(steps().empty());

    save({.keep = 2, .rounds = {}}, 6);

    QVERIFY(!std::filesystem::exists(directory() / kRemovedSnapshot));
    QCOMPARE(steps(), (std::vector<std::uint32_t>{6}));
  }

  void one_state_alone_replaces_the_one_before() {
    for (std::uint32_t step = 4; step <= 6; ++step) save({.keep = 1, .anchor_every = 5, .rounds = {}}, step);

    QCOMPARE(steps(), (std::vector<std::uint32_t>{6}));
  }

  void the_newest_of_each_day_stays_as_many_days_as_asked() {
    const std::vector<KeptState> kept{
        kept_state(60, 10, 105, 60), kept_state(55, 9, 105, 55), kept_state(50, 8, 104, 50), kept_state(40, 7, 103, 40),
        kept_state(30, 6, 103, 30),  kept_state(20, 5, 101, 20), kept_state(10, 4, 99, 10)};
    const auto left = [&](std::uint32_t days) {
      return left_by(plan_retention(kept, {}, {.keep = 2, .days = days, .rounds = {}}), kept);
    };

    QCOMPARE(left(0), (std::vector<std::uint32_t>{60, 55}));
    QCOMPARE(left(1), (std::vector<std::uint32_t>{60, 55, 50}));
    QCOMPARE(left(2), (std::vector<std::uint32_t>{60, 55, 50, 40}));
    QCOMPARE(left(4), (std::vector<std::uint32_t>{60, 55, 50, 40, 20}));
    QCOMPARE(left(100), (std::vector<std::uint32_t>{60, 55, 50, 40, 20, 10}));
  }

  // The round's own state was never written.
  void a_named_round_stays_reachable_by_the_state_before_it_and_its_rounds() {
    const std::vector<KeptState> kept{kept_state(60, 10, 0, 60), kept_state(50, 9, 0, 49), kept_state(40, 8, 0, 38),
                                      kept_state(30, 7, 0, 30)};
    LoggedRounds logged;
    for (std::uint32_t round = 30; round < 60; ++round) logged.emplace(OuterStep{round}, logged_round(round));

    const RetentionPlan plan = plan_retention(kept, logged, {.keep = 1, .rounds = {OuterStep{43}, OuterStep{99}}});

    QCOMPARE(left_by(plan, kept), (std::vector<std::uint32_t>{60, 40}));
    QCOMPARE(plan.needed_rounds, (std::set{OuterStep{38}, OuterStep{39}, OuterStep{40}, OuterStep{41}, OuterStep{42}}));
  }

  void rounds_that_chunks_of_a_kept_state_need_stay() {
    const std::vector<KeptState> kept{kept_state(60, 10, 0, 58), kept_state(50, 9, 0, 50)};

    const RetentionPlan plan = plan_retention(kept, {}, {.keep = 2, .rounds = {}});

    QVERIFY(plan.remove.empty());
    QCOMPARE(plan.needed_rounds, (std::set{OuterStep{58}, OuterStep{59}}));
  }

  void an_average_comes_back_for_its_round_and_digest_alone() {
    const Bytes canonical(1000, std::byte{7});
    const std::string digest = to_hex(canonical_digest(canonical));
    const auto file = directory() / "average.kept";
    QVERIFY(save_average(file, OuterStep{4}, WireFormat::kInt8Block, digest, canonical).ok());

    const auto kept = load_average(file, OuterStep{4}, digest);

    QVERIFY(kept.ok());
    QVERIFY(kept->canonical == canonical && kept->wire == WireFormat::kInt8Block);
    QCOMPARE(load_average(file, OuterStep{5}, digest).error().code, ErrorCode::kNotFound);
    QCOMPARE(load_average(file, OuterStep{4}, std::string(64, 'e')).error().code, ErrorCode::kNotFound);
    std::filesystem::resize_file(file, 500);
    QCOMPARE(load_average(file, OuterStep{4}, digest).error().code, ErrorCode::kCorrupt);
  }

  void the_newest_commit_survives_a_line_cut_short() {
    {
      RunRecord record(directory());
      QVERIFY(record.add(commit_of(3)).ok());
      QVERIFY(record.add(commit_of(4)).ok());
    }
    std::ofstream(directory() / "commits.log", std::ios::app) << "\n{\"commit\":{\"rou";

    RunRecord record(directory());
    record.load();
    QVERIFY(record.newest_commit() != nullptr);
    QCOMPARE(record.newest_commit()->commit.round, OuterStep{4});
    QVERIFY(record.add(commit_of(5)).ok());
    RunRecord again(directory());
    again.load();

    QCOMPARE(again.newest_commit()->commit.round, OuterStep{5});
  }

  void the_older_of_two_hubs_is_not_followed_also_after_a_restart() {
    {
      RunRecord record(directory());
      QVERIFY(record.meet({7, "sig", "PEM"}).ok());
      QVERIFY(!record.meet({6, "sig", "PEM"}).ok());
    }
    RunRecord record(directory());
    record.load();

    QVERIFY(!record.meet({6, "sig", "PEM"}).ok());
    QVERIFY(record.meet({8, "sig", "PEM"}).ok());
  }

  void altered_bytes_show_in_the_digest_of_their_chunk_alone() {
    const RingPayload payload{WireFormat::kInt8Block, 4096, 2048, {}};
    Bytes canonical(static_cast<std::size_t>(encoded_bytes(payload.wire, payload.numel)), std::byte{1});
    const auto before = chunk_digests(payload, 4, canonical);
    const auto place = static_cast<std::size_t>(encoded_bytes(payload.wire, payload.chunk_begin(1, 2, 4)));
    canonical[place] = std::byte{2};

    const auto after = chunk_digests(payload, 4, canonical);

    QCOMPARE(before.size(), std::size_t{4});
    for (std::size_t chunk = 0; chunk < 4; ++chunk) QCOMPARE(before[chunk] == after[chunk], chunk != 2);
  }
};

}  // namespace atl

QTEST_GUILESS_MAIN(atl::KeptFilesTest)
#include "kept_files_test.moc"
