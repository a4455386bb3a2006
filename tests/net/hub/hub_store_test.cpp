// What a hub that starts again finds: the rounds that were open, whatever their number, with leases and attempts; also
// in a database that an earlier version wrote.
#include <QTemporaryDir>
#include <QtTest>

#include "net/hub/hub_store.h"

namespace atl {
namespace {

const std::string kHash(64, 'a');

PersistLeases leases_of(std::uint32_t round, std::uint64_t first) {
  return {OuterStep{round}, {{IslandId{"isl-1"}, {first, 8}}, {IslandId{"isl-2"}, {first + 8, 8}}}};
}

PersistCommit commit_of(std::uint32_t round, std::vector<LeaseRange> leases) {
  PersistCommit persist;
  persist.commit.round = OuterStep{round};
  persist.commit.attempt = Attempt{1};
  persist.commit.digest = kHash;
  persist.commit.members = {{IslandId{"isl-1"}, Address{"10.0.0.1", 1}, 64}};
  persist.commit.signature = "c2ln";
  persist.commit.epoch = 1;
  persist.leases = std::move(leases);
  return persist;
}

}  // namespace

class HubStoreTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void init();
  void rounds_that_were_begun_are_found_again_with_their_leases_and_attempts();
  void leases_of_committed_rounds_that_were_not_used_up_are_free();
  void only_attempts_of_rounds_that_may_be_open_are_remembered();
  void after_a_rollback_no_attempt_is_remembered();
  void what_a_hub_of_one_round_at_a_time_wrote_is_read();

 private:
  std::filesystem::path path() const { return std::filesystem::path(directory_->path().toStdString()) / "hub.db"; }
  HubStore& store() { return *store_; }
  CoordinatorMemory memory() {  // of a hub that starts now
    store_.reset();
    store_ = std::move(*HubStore::open(path()));
    return *store_->memory();
  }

  std::optional<QTemporaryDir> directory_;
  std::unique_ptr<HubStore> store_;
};

void HubStoreTest::init() {
  store_.reset();
  directory_.emplace();
  store_ = std::move(*HubStore::open(path()));
}

void HubStoreTest::rounds_that_were_begun_are_found_again_with_their_leases_and_attempts() {
  QVERIFY(store().save(leases_of(0, 0)).ok());
  QVERIFY(store().save(PersistAttempt{OuterStep{0}, Attempt{1}}).ok());
  QVERIFY(store().save(leases_of(1, 16)).ok());
  QVERIFY(store().save(PersistAttempt{OuterStep{1}, Attempt{1}}).ok());
  QVERIFY(store().save(PersistAttempt{OuterStep{0}, Attempt{2}}).ok());

  const CoordinatorMemory found = memory();

  QCOMPARE(found.committed, OuterStep{0});
  QCOMPARE(found.begun.size(), std::size_t{2});
  for (std::uint32_t round : {0u, 1u}) {
    QCOMPARE(found.begun[round].round, OuterStep{round});
    QCOMPARE(found.begun[round].leases.size(), std::size_t{2});
    QCOMPARE(found.begun[round].leases[1].island, IslandId{"isl-2"});
    QCOMPARE(found.begun[round].leases[1].range.first, std::uint64_t{16 * round + 8});
    QCOMPARE(found.begun[round].last_attempt, Attempt{2 - round});
  }
  QVERIFY(found.returned_leases.empty());
  QCOMPARE(found.lease_cursor, std::uint64_t{32});
}

void HubStoreTest::leases_of_committed_rounds_that_were_not_used_up_are_free() {
  QVERIFY(store().save(leases_of(0, 0)).ok());
  QVERIFY(store().save(leases_of(1, 16)).ok());

  QVERIFY(store().save(commit_of(0, {{0, 8}})).ok());

  const CoordinatorMemory found = memory();
  QCOMPARE(found.committed, OuterStep{1});
  QCOMPARE(found.returned_leases, (std::vector<LeaseRange>{{8, 8}}));
  QCOMPARE(found.begun.size(), std::size_t{1});
  QCOMPARE(found.begun[0].round, OuterStep{1});
}

void HubStoreTest::only_attempts_of_rounds_that_may_be_open_are_remembered() {
  for (std::uint32_t round = 0; round < 100; ++round) {
    QVERIFY(store().save(leases_of(round, 16 * round)).ok());
    QVERIFY(store().save(PersistAttempt{OuterStep{round}, Attempt{3}}).ok());
  }

  const CoordinatorMemory found = memory();

  QCOMPARE(found.begun.size(), std::size_t{100});
  for (const BegunRound& begun : found.begun) {
    QCOMPARE(begun.last_attempt, Attempt{begun.round.value + kMaxFragments >= 100 ? 3u : 0u});
  }
}

void HubStoreTest::after_a_rollback_no_attempt_is_remembered() {
  QVERIFY(store().save(leases_of(0, 0)).ok());
  QVERIFY(store().save(PersistAttempt{OuterStep{0}, Attempt{1}}).ok());
  QVERIFY(store().save(commit_of(0, {{0, 8}, {8, 8}})).ok());
  QVERIFY(store().save(leases_of(1, 16)).ok());
  QVERIFY(store().save(PersistAttempt{OuterStep{1}, Attempt{2}}).ok());

  QVERIFY(store().save(PersistRollback{OuterStep{0}, 5, "asked for", false}, 0).ok());

  const CoordinatorMemory found = memory();
  QCOMPARE(found.committed, OuterStep{0});
  QCOMPARE(found.begun.size(), std::size_t{2});  // their leases are free, or of whom comes back
  for (const BegunRound& begun : found.begun) QCOMPARE(begun.last_attempt, Attempt{0});
}

void HubStoreTest::what_a_hub_of_one_round_at_a_time_wrote_is_read() {
  QVERIFY(store().save(leases_of(7, 0)).ok());
  store_.reset();
  Result<Database> database = Database::open(path());
  QVERIFY(database.ok());
  // As it was written before rounds could overlap.
  QVERIFY(database->exec("INSERT OR REPLACE INTO fact VALUES ('last_attempt', '7 3')").ok());
  QVERIFY(database
              ->exec("INSERT INTO round_commit VALUES (6, 1, 1, 64, 0, 0, "
                     "'{\"attempt\":1,\"digest\":\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\","
                     "\"members\":[{\"address\":{\"host\":\"10.0.0.1\",\"port\":1},\"id\":\"isl-1\",\"tokens\":64}],"
                     "\"outer_learning_rate\":0.7,\"outer_momentum\":0.9,\"round\":6,\"signature\":\"c2ln\","
                     "\"type\":\"commit\"}')")
              .ok());

  const CoordinatorMemory found = memory();

  QCOMPARE(found.committed, OuterStep{7});
  QVERIFY(found.last_commit.has_value());
  QCOMPARE(found.last_commit->fragment, FragmentId{0});
  QCOMPARE(found.begun.size(), std::size_t{1});
  QCOMPARE(found.begun[0].last_attempt, Attempt{3});
}

}  // namespace atl

QTEST_GUILESS_MAIN(atl::HubStoreTest)
#include "hub_store_test.moc"
