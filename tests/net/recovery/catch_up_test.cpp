// An island that comes back, or joins while the others go on, or holds a few wrong chunks, fetches what it lacks and no
// more, and ends on the same bits as by fetching all of it.
#include <QtCore/QTemporaryDir>
#include <QtTest>
#include <bit>
#include <fstream>

#include "net/disk/kept_states.h"
#include "net/recovery/fetched_rounds.h"
#include "net/recovery/incoming_state.h"
#include "net/recovery/state_fetch.h"
#include "tests/net/recovery/committed_run.h"
#include "tests/net/recovery/state_peers.h"

using namespace std::chrono_literals;

namespace atl {
namespace {

constexpr std::uint64_t kNumel = 3 * kStateChunkNumel + 1'000'003;  // four chunks, the last one short
constexpr std::uint64_t kStateBytes = 2 * sizeof(float) * kNumel;
constexpr StateFetchOptions kFast{.stall = 2s, .retry_after = 20ms, .hedge_after = 20s, .max_failures = 4};

}  // namespace

class CatchUpTest : public QObject {
  Q_OBJECT

  std::unique_ptr<QTemporaryDir> home_;
  TestRun run_;
  AbortSignal never_;

  std::filesystem::path directory(const char* name) const {
    return std::filesystem::path(home_->path().toStdString()) / name;
  }
  std::unique_ptr<CommittedRun> committed(std::uint32_t fragments = 1) {
    return std::make_unique<CommittedRun>(run_, kNumel, fragments, directory("island"));
  }
  std::unique_ptr<StatePeer> peer(int number, const CommittedRun& state, const RoundLog* rounds,
                                  std::optional<double> bytes_per_second = {}) {
    return std::make_unique<StatePeer>(run_.island(number), state, Behaviour::kGood, HttpsPaceLimits{}, rounds,
                                       bytes_per_second);
  }
  StateFetch begin(const CommittedRun& run, const HeldStateSource* own = nullptr) {
    StateFetch fetch = StateFetch::create(run_.island(9), run.model(), {}, kFast).value();
    if (own != nullptr) fetch.state().copy_from(*own, own->version());
    return fetch;
  }
  // Another log of the same rounds, of which files may be altered.
  std::filesystem::path copy_of_log(const char* name) const {
    std::filesystem::copy(directory("island"), directory(name), std::filesystem::copy_options::recursive);
    return directory(name);
  }
  static void flip_byte(const std::filesystem::path& path, std::streamoff at) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(at);
    const int byte = file.get();
    file.seekp(at);
    file.put(static_cast<char>(byte ^ 1));
    QVERIFY(file.good());
  }
  static void verify_is(CommittedRun& run, StateFetch& fetch) {
    QVERIFY(run.is(fetch.state().release(run.held().outer_step)));
  }

 private Q_SLOTS:
  void init() { home_ = std::make_unique<QTemporaryDir>(); }

  void who_was_away_fetches_the_averages_of_the_rounds_or_the_state_whichever_is_less_data();
  void who_was_away_fetches_the_averages_of_the_rounds_or_the_state_whichever_is_less();
  void an_average_comes_from_whoever_has_it();
  void averages_that_nobody_has_cost_their_chunks_alone();
  void a_corrupt_average_costs_its_source_and_no_bits();
  void a_corrupt_piece_is_known_as_it_comes_and_the_others_stay();
  void a_record_that_the_hub_did_not_sign_is_not_believed();
  void rounds_of_an_undone_epoch_lead_nowhere_and_the_chunks_come();
  void a_source_that_dies_costs_what_was_under_way();
  void a_target_that_moves_on_again_and_again_is_reached();
  void a_target_that_moves_on_again_and_again_is_reached_data();
  void who_crashed_goes_on_with_what_had_come();
  void what_was_fetched_is_a_snapshot_at_its_end();
  void rounds_by_which_it_caught_up_are_in_its_log_and_served_on_data();
  void rounds_by_which_it_caught_up_are_in_its_log_and_served_on();
  void rounds_that_a_chunk_went_around_are_not_in_its_log();
  void rounds_that_were_undone_meanwhile_are_not_in_its_log();
  void a_flipped_bit_costs_its_chunk();
  void without_a_disk_it_goes_on_in_memory();
  void garbage_for_a_round_is_refused();
};

void CatchUpTest::who_was_away_fetches_the_averages_of_the_rounds_or_the_state_whichever_is_less_data() {
  QTest::addColumn<std::uint32_t>("fragments");
  QTest::addColumn<std::uint32_t>("rounds");
  QTest::newRow("one round") << 1u << 1u;
  QTest::newRow("five rounds") << 1u << 5u;
  QTest::newRow("fifty rounds") << 1u << 50u;
  QTest::newRow("one round of three fragments") << 3u << 1u;
  QTest::newRow("five rounds of three fragments") << 3u << 5u;
}

void CatchUpTest::who_was_away_fetches_the_averages_of_the_rounds_or_the_state_whichever_is_less() {
  QFETCH(std::uint32_t, fragments);
  QFETCH(std::uint32_t, rounds);
  const auto run = committed(fragments);
  run->commit(2);
  const HeldStateSource own(run->copy());
  run->commit(static_cast<int>(rounds));
  const auto one = peer(1, *run, &run->log()), two = peer(2, *run, &run->log());
  StateFetch fetch = begin(*run, &own);

  const Status done = fetch.run(run->held(), {one->address(), two->address()}, never_, {});

  QVERIFY2(done.ok(), done.ok() ? "" : done.error().message.c_str());
  const std::uint64_t averages = run->average_bytes(2, rounds);
  // 50 averages of 1.02 bytes a parameter are more than a state of 8.
  QCOMPARE(fetch.counts().average_bytes, averages < kStateBytes ? averages : 0);
  QCOMPARE(fetch.counts().chunk_bytes, averages < kStateBytes ? 0 : kStateBytes);
  QCOMPARE(fetch.counts().lost_bytes, std::uint64_t{0});
  verify_is(*run, fetch);
}

void CatchUpTest::an_average_comes_from_whoever_has_it() {
  const auto run = committed(3);
  const HeldStateSource own(run->copy());
  run->commit(3);
  const RoundLog other(copy_of_log("other"));
  run->log().remove(OuterStep{1});
  // The second holds another state.
  const auto one = peer(1, *run, &run->log());
  StatePeer two(run_.island(2), own, Behaviour::kGood, HttpsPaceLimits{}, &other);
  StateFetch fetch = begin(*run, &own);
  StateSourceAddress elsewhere = two.address();
  elsewhere.holds_target = false;

  const Status done = fetch.run(run->held(), {one->address(), elsewhere}, never_, {});

  QVERIFY2(done.ok(), done.ok() ? "" : done.error().message.c_str());
  QCOMPARE(fetch.counts().average_bytes, run->average_bytes(0, 3));
  QCOMPARE(fetch.counts().chunk_bytes, std::uint64_t{0});
  verify_is(*run, fetch);
}

void CatchUpTest::averages_that_nobody_has_cost_their_chunks_alone() {
  const auto run = committed(3);
  const HeldStateSource own(run->copy());
  run->commit(3);
  run->log().remove(OuterStep{1});
  const auto one = peer(1, *run, &run->log());
  StateFetch fetch = begin(*run, &own);

  const Status done = fetch.run(run->held(), {one->address()}, never_, {});

  // Each chunk has parameters of all three fragments: none gets there without the round.
  QVERIFY(done.ok());
  QCOMPARE(fetch.counts().chunk_bytes, kStateBytes);
  verify_is(*run, fetch);
}

void CatchUpTest::a_corrupt_average_costs_its_source_and_no_bits() {
  const auto run = committed();
  const HeldStateSource own(run->copy());
  run->commit(2);
  const RoundLog corrupt(copy_of_log("corrupt"));
  // The source hashes what lies there: its own manifest is not that of the digest which the hub signed.
  flip_byte(corrupt.average_file(OuterStep{1}), 92 + 3'000'000);
  const auto bad = peer(1, *run, &corrupt), good = peer(2, *run, &run->log());
  StateFetch fetch = begin(*run, &own);

  const Status done = fetch.run(run->held(), {bad->address(), good->address()}, never_, {});

  QVERIFY(done.ok());
  QCOMPARE(fetch.counts().average_bytes, run->average_bytes(0, 2));
  QCOMPARE(fetch.counts().chunk_bytes, std::uint64_t{0});
  verify_is(*run, fetch);
}

// Its piece hashes were right, and then a piece is not.
void CatchUpTest::a_corrupt_piece_is_known_as_it_comes_and_the_others_stay() {
  const auto run = committed();
  const HeldStateSource own(run->copy());
  run->commit(1);
  const RoundLog corrupt(copy_of_log("corrupt"));
  const auto bad = peer(1, *run, &corrupt), good = peer(2, *run, &run->log());
  StateFetch fetch = begin(*run, &own);
  bool flipped = false;
  const auto flip = [&](std::uint64_t, std::uint64_t) {
    if (flipped || fetch.counts().round_bytes == 0) return;
    flip_byte(corrupt.average_file(OuterStep{0}), 92 + static_cast<std::streamoff>(20 * kDigestPieceBytes));
    flipped = true;
  };

  const Status alone = fetch.run(run->held(), {bad->address()}, never_, flip);

  QCOMPARE(alone.error().code, ErrorCode::kCorrupt);
  QVERIFY(alone.error().message.find(TestRun::island_id(1).value) != std::string::npos);
  const std::uint64_t came = fetch.counts().average_bytes;
  QVERIFY(came > 0 && came < run->average_bytes(0));

  QVERIFY(fetch.run(run->held(), {bad->address(), good->address()}, never_, {}).ok());
  // None of its good pieces came twice.
  QCOMPARE(fetch.counts().average_bytes, run->average_bytes(0));
  verify_is(*run, fetch);
}

void CatchUpTest::a_record_that_the_hub_did_not_sign_is_not_believed() {
  const auto run = committed();
  const HeldStateSource own(run->copy());
  run->commit(1);
  const auto forged = copy_of_log("forged");
  LoggedRound round = run->log().rounds().at(OuterStep{0});
  round.record.commit.outer_learning_rate = 0.1;
  QVERIFY(write_logged_round(forged / "rounds" / "round.0.record", round).ok());
  const RoundLog forged_log(forged);
  QVERIFY(forged_log.rounds().contains(OuterStep{0}));
  const auto liar = peer(1, *run, &forged_log);
  StateFetch alone = begin(*run, &own);

  // The liar alone: it is asked no more, and there is nobody else.
  QCOMPARE(alone.run(run->held(), {liar->address()}, never_, {}).error().code, ErrorCode::kCorrupt);
  QCOMPARE(alone.counts().average_bytes, std::uint64_t{0});

  const auto good = peer(2, *run, &run->log());
  StateFetch fetch = begin(*run, &own);
  QVERIFY(fetch.run(run->held(), {liar->address(), good->address()}, never_, {}).ok());
  QCOMPARE(fetch.counts().average_bytes, run->average_bytes(0));
  verify_is(*run, fetch);
}

void CatchUpTest::rounds_of_an_undone_epoch_lead_nowhere_and_the_chunks_come() {
  const auto run = committed();
  const FetchedState base = run->copy();
  const HeldStateSource own(base);
  run->commit(2);
  const RoundLog undone(copy_of_log("undone"));
  run->go_back_to(base);
  run->commit(2);
  // It holds the newest state, but logged the rounds that a rollback undid: signed, whole, and of no use.
  const auto stale = peer(1, *run, &undone);
  StateFetch fetch = begin(*run, &own);

  const Status done = fetch.run(run->held(), {stale->address()}, never_, {});

  QVERIFY2(done.ok(), done.ok() ? "" : done.error().message.c_str());
  QCOMPARE(fetch.counts().chunk_bytes, kStateBytes);
  verify_is(*run, fetch);
}

void CatchUpTest::a_source_that_dies_costs_what_was_under_way() {
  const auto run = committed();
  const HeldStateSource own(run->copy());
  run->commit(3);
  auto dies = peer(1, *run, &run->log());
  const auto lives = peer(2, *run, &run->log());
  StateFetch fetch = begin(*run, &own);

  const Status done =
      fetch.run(run->held(), {dies->address(), lives->address()}, never_, [&](std::uint64_t came, std::uint64_t) {
        if (came > run->average_bytes(0)) dies.reset();
      });

  QVERIFY(done.ok());
  QVERIFY(!dies);
  QCOMPARE(fetch.counts().average_bytes, run->average_bytes(0, 3));
  verify_is(*run, fetch);
}

void CatchUpTest::a_target_that_moves_on_again_and_again_is_reached_data() {
  QTest::addColumn<std::uint32_t>("fragments");
  QTest::addColumn<int>("chunks");
  QTest::newRow("at every chunk") << 1u << 1;
  QTest::newRow("at every other chunk") << 1u << 2;
  QTest::newRow("of three fragments, at every chunk") << 3u << 1;
}

// A round is committed whenever so many chunks' bytes have come, while others are under way. What came of the versions
// before stays. From one source, so that no more than two of the four chunks come before the next word.
void CatchUpTest::a_target_that_moves_on_again_and_again_is_reached() {
  QFETCH(std::uint32_t, fragments);
  QFETCH(int, chunks);
  const auto run = committed(fragments);
  run->commit(1);
  const auto one = peer(1, *run, &run->log());
  StateFetch fetch = begin(*run);
  std::uint64_t moves_at = 0;
  int moves = 0;
  const auto moves_on = [&] {
    if (fetch.counts().useful() < moves_at || moves == 12) return;
    moves_at = fetch.counts().useful() + static_cast<std::uint64_t>(chunks) * kStateChunkBytes;
    ++moves;
    run->commit();
  };

  Status done = ok_status();
  int targets = 0;
  HeldState target;
  do {
    target = run->held();
    ++targets;
    done = fetch.run(
        target, {one->address()}, never_, [&](std::uint64_t, std::uint64_t) { moves_on(); },
        [&] { return run->held() != target; });
    // One that is reached just as the next round is committed is gone on from, too.
  } while ((done.ok() || done.error().code == ErrorCode::kNotFound) && target != run->held() && targets < 100);

  QVERIFY2(done.ok(), done.ok() ? "" : done.error().message.c_str());
  QVERIFY(targets > 2);
  QVERIFY2(
      fetch.counts().lost_bytes <= fetch.counts().useful() / 100,
      qPrintable(QString("%1 of %2 bytes came in vain").arg(fetch.counts().lost_bytes).arg(fetch.counts().useful())));
  verify_is(*run, fetch);
}

void CatchUpTest::who_crashed_goes_on_with_what_had_come() {
  const auto run = committed();
  run->commit(1);
  std::uint64_t before = 0;
  {
    StateFetch* fetching = nullptr;
    IncomingState incoming(directory("incoming.state"), kNumel,
                           [](const std::string& why) { qFatal("%s", why.c_str()); });
    StateFetch fetch =
        StateFetch::create(
            run_.island(9), run->model(), [&](std::uint64_t chunk) { incoming.put(chunk, fetching->state()); }, kFast)
            .value();
    fetching = &fetch;
    AbortSignal crash;
    const auto slow = peer(1, *run, &run->log(), 20e6);  // so that the crash comes before the last chunk
    const Status done = fetch.run(run->held(), {slow->address()}, crash, [&](std::uint64_t came, std::uint64_t) {
      if (came >= 2 * kStateChunkBytes) crash.raise("the process is gone");
    });
    QCOMPARE(done.error().code, ErrorCode::kAborted);
    before = fetch.counts().chunk_bytes;
    QVERIFY(before >= 2 * kStateChunkBytes && before < kStateBytes);
  }
  run->commit(1);  // meanwhile
  const auto one = peer(2, *run, &run->log());

  StateFetch fetch = begin(*run);
  IncomingState incoming(directory("incoming.state"), kNumel,
                         [](const std::string& why) { qFatal("%s", why.c_str()); });
  incoming.read_into(fetch.state());
  const Status done = fetch.run(run->held(), {one->address()}, never_, {});

  QVERIFY2(done.ok(), done.ok() ? "" : done.error().message.c_str());
  QCOMPARE(fetch.counts().chunk_bytes, kStateBytes - before);
  QVERIFY(fetch.counts().average_bytes > 0);
  QVERIFY(fetch.counts().average_bytes < run->average_bytes(1));  // of the chunks that were there alone
  verify_is(*run, fetch);
}

void CatchUpTest::what_was_fetched_is_a_snapshot_at_its_end() {
  const auto run = committed();
  const HeldStateSource own(run->copy());
  run->commit(2);
  const auto one = peer(1, *run, &run->log());
  IncomingState incoming(directory("incoming.state"), kNumel,
                         [](const std::string& why) { qFatal("%s", why.c_str()); });
  StateFetch* fetching = nullptr;
  StateFetch fetch =
      StateFetch::create(
          run_.island(9), run->model(), [&](std::uint64_t chunk) { incoming.put(chunk, fetching->state()); }, kFast)
          .value();
  fetching = &fetch;
  fetch.state().copy_from(own, own.version());
  QVERIFY(fetch.run(run->held(), {one->address()}, never_, {}).ok());

  const auto kept = std::move(incoming).finish(fetch.state(), run->held(), directory("outer.2.state"));

  QVERIFY2(kept.ok() && *kept, kept.ok() ? "it was left to others" : kept.error().message.c_str());
  const auto reader = SnapshotReader::open(directory("outer.2.state"));
  QVERIFY(reader.ok());
  QCOMPARE(reader->info().state, run->held());
  QCOMPARE(reader->info().oldest_chunk(), OuterStep{2});
  const FetchedState state = run->copy();
  for (std::uint64_t index = 0; index < fetch.state().chunks(); ++index) {
    std::vector<float> parameters(of_chunk(std::span(state.parameters), index).size()), momentum = parameters;
    QVERIFY(reader->read(index, parameters, momentum).ok());
    QVERIFY(std::ranges::equal(parameters, of_chunk(std::span(state.parameters), index)));
    QVERIFY(std::ranges::equal(momentum, of_chunk(std::span(state.momentum), index)));
  }
  QVERIFY(!std::filesystem::exists(directory("incoming.state")));
}

void CatchUpTest::rounds_by_which_it_caught_up_are_in_its_log_and_served_on_data() {
  QTest::addColumn<std::uint32_t>("fragments");
  QTest::newRow("the whole model") << 1u;
  QTest::newRow("three fragments") << 3u;
}

// Also where the target moves on meanwhile.
void CatchUpTest::rounds_by_which_it_caught_up_are_in_its_log_and_served_on() {
  QFETCH(std::uint32_t, fragments);
  const auto run = committed(fragments);
  run->commit(2);
  const HeldStateSource own(run->copy());
  run->commit(3);
  const auto one = peer(1, *run, &run->log());
  const RoundLog mine(directory("mine"));
  FetchedRounds rounds(mine, kNumel, fragments);
  StateFetch fetch = begin(*run, &own);
  fetch.plan().tell_rounds_to(&rounds);
  QVERIFY(fetch.run(run->held(), {one->address()}, never_, {}).ok());
  run->commit(2);
  QVERIFY(fetch.run(run->held(), {one->address()}, never_, {}).ok());
  QVERIFY(mine.rounds().empty());

  QCOMPARE(std::move(rounds).log(), std::size_t{5});

  const LoggedRounds all = run->log().rounds(), logged = mine.rounds();
  QCOMPARE(logged.size(), std::size_t{5});
  for (const auto& [number, round] : logged) {
    const LoggedRound& theirs = all.at(number);
    QCOMPARE(round.before(), theirs.before());
    QCOMPARE(round.after(), theirs.after());
    QCOMPARE(round.fragments, fragments);
    QVERIFY(mine.average(number, theirs.record.commit.digest).ok());
  }
  const auto two = peer(2, *run, &mine);
  StateFetch next = begin(*run, &own);
  QVERIFY(next.run(run->held(), {two->address()}, never_, {}).ok());
  QCOMPARE(next.counts().chunk_bytes, std::uint64_t{0});
  verify_is(*run, next);
}

// What that chunk was before the target nobody here knows.
void CatchUpTest::rounds_that_a_chunk_went_around_are_not_in_its_log() {
  const auto run = committed();
  HeldStateSource own(run->copy());
  own.flip_bit(77);
  run->commit(2);
  const auto one = peer(1, *run, &run->log());
  FetchedRounds rounds(RoundLog(directory("mine")), kNumel, 1);
  StateFetch fetch = begin(*run, &own);
  fetch.plan().tell_rounds_to(&rounds);
  QVERIFY(fetch.run(run->held(), {one->address()}, never_, {}).ok());
  QVERIFY(fetch.counts().average_bytes > 0);

  QCOMPARE(std::move(rounds).log(), std::size_t{0});

  QVERIFY(std::filesystem::is_empty(directory("mine") / "rounds"));
}

void CatchUpTest::rounds_that_were_undone_meanwhile_are_not_in_its_log() {
  const auto run = committed();
  const FetchedState base = run->copy();
  const HeldStateSource own(base);
  run->commit(2);
  const auto one = peer(1, *run, &run->log());
  const RoundLog mine(directory("mine"));
  FetchedRounds rounds(mine, kNumel, 1);
  StateFetch fetch = begin(*run, &own);
  fetch.plan().tell_rounds_to(&rounds);
  QVERIFY(fetch.run(run->held(), {one->address()}, never_, {}).ok());

  run->go_back_to(base);
  run->commit(2);
  QVERIFY(fetch.run(run->held(), {one->address()}, never_, {}).ok());
  run->commit(1);
  QVERIFY(fetch.run(run->held(), {one->address()}, never_, {}).ok());

  QCOMPARE(std::move(rounds).log(), std::size_t{1});
  QCOMPARE(mine.rounds().begin()->second.after(), run->held());
  verify_is(*run, fetch);
}

void CatchUpTest::a_flipped_bit_costs_its_chunk() {
  const auto run = committed();
  run->commit(1);
  HeldStateSource own(run->copy());
  own.flip_bit(kStateChunkNumel + 77);
  const auto one = peer(1, *run, &run->log());
  StateFetch fetch = begin(*run, &own);

  QVERIFY(fetch.run(run->held(), {one->address()}, never_, {}).ok());

  QCOMPARE(fetch.counts().chunk_bytes, kStateChunkBytes);
  QCOMPARE(fetch.counts().average_bytes, std::uint64_t{0});
  QVERIFY(fetch.plan().wrong() == std::set<std::uint64_t>{1});
  verify_is(*run, fetch);

  // The same, found two rounds later.
  run->commit(2);
  StateFetch later = begin(*run, &own);
  QVERIFY(later.run(run->held(), {one->address()}, never_, {}).ok());
  QCOMPARE(later.counts().chunk_bytes, kStateChunkBytes);
  QVERIFY(later.plan().wrong() == std::set<std::uint64_t>{1});
  verify_is(*run, later);
}

void CatchUpTest::without_a_disk_it_goes_on_in_memory() {
  const auto run = committed();
  run->commit(1);
  const auto one = peer(1, *run, &run->log());
  // A file is where the directory would be.
  std::ofstream(directory("full")) << "a file";
  std::atomic<int> told{0};
  IncomingState incoming(directory("full") / "incoming.state", kNumel, [&](const std::string&) { ++told; });
  StateFetch* fetching = nullptr;
  StateFetch fetch =
      StateFetch::create(
          run_.island(9), run->model(), [&](std::uint64_t chunk) { incoming.put(chunk, fetching->state()); }, kFast)
          .value();
  fetching = &fetch;

  QVERIFY(fetch.run(run->held(), {one->address()}, never_, {}).ok());
  const auto kept = std::move(incoming).finish(fetch.state(), run->held(), directory("outer.1.state"));

  QVERIFY(kept.ok() && !*kept);
  QCOMPARE(told.load(), 1);
  verify_is(*run, fetch);
}

void CatchUpTest::garbage_for_a_round_is_refused() {
  const auto run = committed();
  run->commit(1);
  const LoggedRound round = run->log().rounds().at(OuterStep{0});
  const KeptAverage average = run->log().average(OuterStep{0}, round.record.commit.digest).value();
  Bytes good = round_manifest_head(round.record, average.wire, average.canonical.size());
  for (std::size_t piece = 0; piece < digest_pieces(average.canonical.size()); ++piece) {
    const PieceHash hash = hash_of_piece(average.canonical, piece);
    good.insert(good.end(), hash.begin(), hash.end());
  }
  const auto read = [&](ByteView bytes, OuterStep number = OuterStep{0}) {
    return read_round_manifest(bytes, run_.island(9), number, static_cast<std::int64_t>(kNumel), 1);
  };
  QVERIFY(read(good).ok());
  QCOMPARE(read(good, OuterStep{1}).error().code, ErrorCode::kCorrupt);

  // Cut anywhere, or with any byte of its frame altered, or more behind it.
  for (std::size_t length = 0; length < good.size(); length += 7) QVERIFY(!read(ByteView(good).first(length)).ok());
  for (std::size_t at = 0; at < 28; ++at) {
    Bytes bad = good;
    bad[at] ^= std::byte{0x40};
    QVERIFY(!read(bad).ok());
  }
  Bytes altered = good;
  altered.back() ^= std::byte{1};
  QCOMPARE(read(altered).error().code, ErrorCode::kCorrupt);
  good.push_back(std::byte{0});
  QVERIFY(!read(good).ok());
}

}  // namespace atl

QTEST_GUILESS_MAIN(atl::CatchUpTest)
#include "catch_up_test.moc"
