// What an island keeps on its disk to come back to: outer states, the average of the open round, the hub's records.
#include <QtCore/QTemporaryDir>
#include <QtTest/QTest>
#include <fstream>

#include "net/base/encoding.h"
#include "net/collective/canonical_digest.h"
#include "net/disk/checkpoint_directory.h"
#include "net/disk/kept_average_file.h"
#include "net/disk/outer_state_file.h"
#include "trainer/island/kept_states.h"
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

std::vector<std::uint32_t> steps_of(const KeptStates& kept) {
  std::vector<std::uint32_t> steps;
  for (const HeldState& state : kept.list()) steps.push_back(state.outer_step.value);
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

  void save(KeptStates& kept, std::uint32_t step) const {
    const auto store = at_step(step);
    kept.make_room(OuterStep{step});
    QVERIFY(store->save(directory() / kOuterStateFile).ok());
    kept.prune();
  }

 private Q_SLOTS:
  void init() {
    for (const auto& entry : std::filesystem::directory_iterator(directory())) std::filesystem::remove_all(entry);
  }

  void the_newest_two_states_and_a_validated_one_stay() {
    KeptStates kept(directory(), 3, 5);
    for (std::uint32_t step = 1; step <= 8; ++step) save(kept, step);

    QCOMPARE(steps_of(kept), (std::vector<std::uint32_t>{8, 7, 5}));
  }

  void after_a_rollback_the_newest_is_kept_and_what_was_undone_goes_first() {
    KeptStates kept(directory(), 3, 2);
    for (std::uint32_t step = 5; step <= 9; ++step) save(kept, step);
    QCOMPARE(steps_of(kept), (std::vector<std::uint32_t>{9, 8, 6}));

    save(kept, 7);
    QCOMPARE(steps_of(kept), (std::vector<std::uint32_t>{9, 7, 6}));
    QCOMPARE(peek_outer_state(directory() / kOuterStateFile)->outer_step, OuterStep{7});
    save(kept, 8);

    QCOMPARE(steps_of(kept), (std::vector<std::uint32_t>{8, 7, 6}));
    QCOMPARE(peek_outer_state(directory() / kOuterStateFile)->outer_step, OuterStep{8});
  }

  void what_is_kept_is_read_back_to_the_last_bit() {
    KeptStates kept(directory(), 3, 5);
    for (std::uint32_t step = 1; step <= 3; ++step) save(kept, step);
    const auto expected = at_step(2);

    const auto state = kept.load({OuterStep{2}, expected->tree_hash()}, kNumel);

    QVERIFY(state.ok());
    QVERIFY(std::ranges::equal(state->parameters, expected->parameters()));
    QVERIFY(!kept.load({OuterStep{2}, std::string(64, 'e')}, kNumel).ok());
  }

  void a_kept_state_that_is_damaged_is_not_believed() {
    KeptStates kept(directory(), 2, 0);
    save(kept, 1);
    save(kept, 2);
    std::fstream file(directory() / "outer.1.state", std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(30);
    file.put('x');
    file.close();

    const auto state = kept.load({OuterStep{1}, at_step(1)->tree_hash()}, kNumel);

    QVERIFY(!state.ok());
    QCOMPARE(state.error().code, ErrorCode::kCorrupt);
  }

  void one_state_alone_replaces_the_one_before() {
    KeptStates kept(directory(), 1, 5);
    for (std::uint32_t step = 4; step <= 6; ++step) save(kept, step);

    QCOMPARE(steps_of(kept), (std::vector<std::uint32_t>{6}));
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
    const RingPayload payload{.wire = WireFormat::kInt8Block, .numel = 4096, .bucket_numel = 2048, .final_buckets = {}};
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
