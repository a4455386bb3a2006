// Rounds are written to the disk beside the ring: in pieces, in any order; whatever the disk does, lanes go on.
#include "trainer/island/round_keeper.h"

#include <fmt/format.h>

#include <QtCore/QTemporaryDir>
#include <QtTest/QTest>
#include <fstream>
#include <future>
#include <numeric>
#include <random>

#include "net/base/encoding.h"
#include "net/collective/canonical_digest.h"

namespace atl {
namespace {

constexpr std::chrono::seconds kLong{60};
constexpr std::size_t kPiece = kDigestPieceBytes;

struct Average {
  explicit Average(std::size_t size, unsigned seed = 1) : bytes(std::make_shared<Bytes>(size)) {
    std::mt19937 random(seed);
    for (std::byte& byte : *bytes) byte = static_cast<std::byte>(random());
    digest = to_hex(canonical_digest(*bytes));
  }
  SharedBytes bytes;
  std::string digest;
};

// A keeper over a directory of its own, and what it told.
struct Keeper {
  explicit Keeper(const QString& place = {})
      : disk(place.isEmpty() ? directory.path().toStdString() : place.toStdString()),
        keeper(std::in_place, disk,
               RoundKeeper::Tell{.kept =
                                     [this](OuterStep, const Status& status) {
                                       if (held) held->wait();
                                       told.push_back(status);
                                     },
                                 .durable_changed = [this] { ++durable_changed; }}) {}

  // All pieces, in a random order, from two threads; then it is finished.
  void write(const Average& average, OuterStep round, std::chrono::milliseconds patience = kLong) {
    auto writing = keeper->begin(FragmentId{0}, round, WireFormat::kInt8Block, average.bytes);
    std::vector<std::size_t> pieces((average.bytes->size() + kPiece - 1) / kPiece);
    std::iota(pieces.begin(), pieces.end(), 0);
    std::ranges::shuffle(pieces, std::mt19937(3));
    const auto tell = [&](std::size_t from, std::size_t to) {
      for (std::size_t i = from; i < to; ++i) {
        const std::size_t offset = pieces[i] * kPiece;
        writing->final_bytes(offset, std::min(kPiece, average.bytes->size() - offset));
      }
    };
    std::jthread other(tell, 0, pieces.size() / 2);
    tell(pieces.size() / 2, pieces.size());
    other.join();
    keeper->finish(std::move(writing), average.digest, patience);
  }
  HubCommit commit(const Average& average, OuterStep round) {
    HubCommit made;
    made.round = round;
    made.attempt = Attempt{1};
    made.digest = average.digest;
    made.signature = fmt::format("signature {}", round.value);
    disk.told(std::make_shared<const SignedCommit>(SignedCommit{made, "PEM"}));
    return made;
  }

  QTemporaryDir directory;
  IslandDisk disk;
  std::optional<std::shared_future<void>> held;  // what the disk waits for
  std::vector<Status> told;                      // of its thread; read when it is idle
  int durable_changed = 0;
  std::optional<RoundKeeper> keeper;
};

const std::string kFrom(64, 'a');
const HeldState kMade{OuterStep{5}, std::string(64, 'b')};

}  // namespace

class RoundKeeperTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void an_average_in_pieces_is_whole_on_the_disk_when_it_is_finished_data();
  void an_average_in_pieces_is_whole_on_the_disk_when_it_is_finished();
  void an_attempt_that_failed_leaves_the_average_before_it();
  void a_round_is_logged_after_its_average_and_told();
  void a_lane_waits_for_a_disk_that_is_stuck_no_longer_than_its_patience();
  void a_round_is_logged_however_many_are_committed_before_the_disk_comes_to_it();
  void a_disk_that_is_stuck_holds_two_averages_and_no_more();
  void what_was_asked_for_is_written_before_it_ends();
  void a_disk_that_takes_nothing_is_told_and_nothing_else_happens();
  void an_island_without_a_disk_keeps_nothing();
};

void RoundKeeperTest::an_average_in_pieces_is_whole_on_the_disk_when_it_is_finished_data() {
  QTest::addColumn<int>("bytes");
  QTest::newRow("less than a piece") << 1000;
  QTest::newRow("pieces, the last one short") << static_cast<int>(7 * kPiece + 13);
}

void RoundKeeperTest::an_average_in_pieces_is_whole_on_the_disk_when_it_is_finished() {
  QFETCH(const int, bytes);
  const Average average(static_cast<std::size_t>(bytes));
  Keeper keeper;

  keeper.write(average, OuterStep{4});

  const auto kept = keeper.disk.kept_average(FragmentId{0}, OuterStep{4}, average.digest);
  QVERIFY2(kept.ok(), kept.ok() ? "" : kept.error().message.c_str());
  QVERIFY(kept->canonical == *average.bytes);
  QCOMPARE(kept->wire, WireFormat::kInt8Block);
}

void RoundKeeperTest::an_attempt_that_failed_leaves_the_average_before_it() {
  const Average first(3 * kPiece, 1), second(3 * kPiece, 2);
  Keeper keeper;
  keeper.write(first, OuterStep{4});
  {
    const auto writing = keeper.keeper->begin(FragmentId{0}, OuterStep{4}, WireFormat::kInt8Block, second.bytes);
    writing->final_bytes(0, kPiece);
  }
  QVERIFY(keeper.keeper->await_idle(Deadline::after(kLong)));
  QVERIFY(keeper.disk.kept_average(FragmentId{0}, OuterStep{4}, first.digest).ok());
  QCOMPARE(second.bytes.use_count(), 1);
  QCOMPARE(std::distance(std::filesystem::directory_iterator(keeper.directory.path().toStdString()), {}), 1);
}

void RoundKeeperTest::a_round_is_logged_after_its_average_and_told() {
  const Average average(2 * kPiece);
  Keeper keeper;
  keeper.write(average, OuterStep{4});
  const HubCommit commit = keeper.commit(average, OuterStep{4});

  keeper.keeper->keep_round(commit, WireFormat::kInt8Block, average.bytes, kFrom, kMade);

  QVERIFY(keeper.keeper->await_idle(Deadline::after(kLong)));
  const LoggedRounds logged = RoundLog(keeper.directory.path().toStdString()).rounds();
  QCOMPARE(logged.size(), std::size_t{1});
  QCOMPARE(logged.at(OuterStep{4}).made, kMade.state_hash);
  QCOMPARE(keeper.durable_changed, 1);
  QCOMPARE(keeper.told.size(), std::size_t{2});
  for (const Status& status : keeper.told) QVERIFY(status.ok());
}

void RoundKeeperTest::a_lane_waits_for_a_disk_that_is_stuck_no_longer_than_its_patience() {
  const Average average(2 * kPiece);
  std::promise<void> let_go;
  Keeper keeper;
  keeper.held = let_go.get_future().share();

  keeper.write(average, OuterStep{4}, std::chrono::milliseconds(1));  // returns
  keeper.keeper->keep_round(keeper.commit(average, OuterStep{4}), WireFormat::kInt8Block, average.bytes, kFrom, kMade);

  QVERIFY(!keeper.keeper->await_idle(Deadline::after(std::chrono::milliseconds(1))));
  QCOMPARE(keeper.durable_changed, 0);
  let_go.set_value();
  QVERIFY(keeper.keeper->await_idle(Deadline::after(kLong)));
  QCOMPARE(keeper.durable_changed, 1);
}

// The disk remembers the hub's records of the newest rounds alone.
void RoundKeeperTest::a_round_is_logged_however_many_are_committed_before_the_disk_comes_to_it() {
  const Average average(2 * kPiece);
  std::promise<void> let_go;
  Keeper keeper;
  keeper.held = let_go.get_future().share();
  keeper.write(average, OuterStep{4}, std::chrono::milliseconds(0));
  keeper.keeper->keep_round(keeper.commit(average, OuterStep{4}), WireFormat::kInt8Block, average.bytes, kFrom, kMade);

  for (std::uint32_t round = 5; round < 5 + kMaxFragments; ++round) (void)keeper.commit(average, OuterStep{round});
  let_go.set_value();

  QVERIFY(keeper.keeper->await_idle(Deadline::after(kLong)));
  QCOMPARE(RoundLog(keeper.directory.path().toStdString()).rounds().size(), std::size_t{1});
}

// An average is gigabytes of memory, and a disk may be stuck for hours. What it does not get is told.
void RoundKeeperTest::a_disk_that_is_stuck_holds_two_averages_and_no_more() {
  std::promise<void> let_go;
  Keeper keeper;
  keeper.held = let_go.get_future().share();
  std::vector<Average> averages;
  for (std::uint32_t round = 0; round < 6; ++round) averages.emplace_back(32 * kPiece, round);
  for (std::uint32_t round = 0; round < averages.size(); ++round) {
    keeper.write(averages[round], OuterStep{round}, std::chrono::milliseconds(0));
    keeper.keeper->keep_round(keeper.commit(averages[round], OuterStep{round}), WireFormat::kInt8Block,
                              averages[round].bytes, kFrom, {OuterStep{round + 1}, kMade.state_hash});
  }

  std::vector<long> holders;
  for (const Average& average : averages) holders.push_back(average.bytes.use_count());
  let_go.set_value();
  QVERIFY(keeper.keeper->await_idle(Deadline::after(kLong)));
  for (std::size_t round = 2; round < holders.size(); ++round) QCOMPARE(holders[round], 1);
  QCOMPARE(std::ranges::count_if(keeper.told, [](const Status& status) { return !status.ok(); }), 4);
  QCOMPARE(RoundLog(keeper.directory.path().toStdString()).rounds().size(), std::size_t{2});
}

void RoundKeeperTest::what_was_asked_for_is_written_before_it_ends() {
  const Average average(2 * kPiece);
  Keeper keeper;
  keeper.write(average, OuterStep{4}, std::chrono::milliseconds(0));
  keeper.keeper->keep_round(keeper.commit(average, OuterStep{4}), WireFormat::kInt8Block, average.bytes, kFrom, kMade);

  keeper.keeper.reset();

  QCOMPARE(RoundLog(keeper.directory.path().toStdString()).rounds().size(), std::size_t{1});
  QCOMPARE(average.bytes.use_count(), 1);
}

void RoundKeeperTest::a_disk_that_takes_nothing_is_told_and_nothing_else_happens() {
  const Average average(2 * kPiece);
  QTemporaryDir place;
  const QString file = place.filePath("a file, and no directory");
  std::ofstream(file.toStdString()) << "x";
  Keeper keeper(file);

  keeper.write(average, OuterStep{4});

  QCOMPARE(keeper.told.size(), std::size_t{1});
  QVERIFY(!keeper.told[0].ok());
  QVERIFY(!keeper.disk.kept_average(FragmentId{0}, OuterStep{4}, average.digest).ok());
}

void RoundKeeperTest::an_island_without_a_disk_keeps_nothing() {
  const Average average(kPiece);
  IslandDisk none{std::filesystem::path()};
  RoundKeeper keeper(none, {.kept = [](OuterStep, const Status&) { QFAIL("nothing is kept"); },
                            .durable_changed = [] { QFAIL("nothing is durable"); }});
  QVERIFY(!keeper.begin(FragmentId{0}, OuterStep{4}, WireFormat::kInt8Block, average.bytes));
  keeper.finish(nullptr, average.digest, kLong);
  keeper.keep_round({}, WireFormat::kInt8Block, average.bytes, kFrom, kMade);
  QVERIFY(keeper.await_idle(Deadline::after(kLong)));
}

}  // namespace atl

QTEST_GUILESS_MAIN(atl::RoundKeeperTest)
#include "round_keeper_test.moc"
