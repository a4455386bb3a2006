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
  void a_decided_decay_is_remembered_until_it_is_taken_back();
  void what_is_in_the_object_store_is_remembered_until_it_is_undone();
  void what_a_hub_of_one_round_at_a_time_wrote_is_read();
  void what_tasks_came_to_is_remembered_until_it_is_undone();
  void who_agreed_is_named_and_the_others_are_counted();
  void who_contributed_is_counted_until_it_is_undone();
  void commits_of_a_database_of_before_are_counted_once();

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

void HubStoreTest::a_decided_decay_is_remembered_until_it_is_taken_back() {
  const DecidedDecay decay{12, 200, 3.25e-5, DecayShape::kCosine};
  QVERIFY(!memory().decay);
  QVERIFY(store().save(PersistDecay{decay}).ok());
  QVERIFY(memory().decay == decay);
  QVERIFY(store().save(PersistDecay{}).ok());
  QVERIFY(!memory().decay);
}

void HubStoreTest::what_is_in_the_object_store_is_remembered_until_it_is_undone() {
  const HeldState second{OuterStep{2}, std::string(64, 'a')}, fourth{OuterStep{4}, std::string(64, 'b')};
  QVERIFY(store().save(PersistUploaded{second}).ok());
  QVERIFY(store().save(PersistUploaded{{OuterStep{4}, std::string(64, 'c')}}).ok());
  QVERIFY(store().save(PersistUploaded{fourth}).ok());  // written over
  store_.reset();
  store_ = std::move(*HubStore::open(path()));
  QVERIFY(memory().uploaded == (std::vector<HeldState>{second, fourth}));

  QVERIFY(store().save(PersistRollback{OuterStep{3}, 5, "asked for", false}, 0).ok());

  QVERIFY(memory().uploaded == std::vector<HeldState>{second});
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

void HubStoreTest::what_tasks_came_to_is_remembered_until_it_is_undone() {
  const EvaluationTask choices{"choices", TaskKind::kMultipleChoice, 4, 9, kHash};
  const auto came_to = [](std::uint32_t step, std::vector<double> figures, std::uint32_t islands) {
    return StateEvaluated{IslandId{"isl-1"},
                          {OuterStep{step}, "choices", TaskKind::kMultipleChoice, std::move(figures), islands}};
  };
  QVERIFY(store().save(came_to(0, {0.25, 0.5, 0.125}, 1)).ok());
  QVERIFY(store().save(came_to(4, {1, 1, 1}, 1)).ok());
  QVERIFY(store().save(came_to(4, {0.5, 0.25, 0.75}, 3)).ok());  // with what others say
  (void)memory();                                                // of a hub that starts again

  const auto found = store().evaluations(choices);

  QVERIFY(found.ok());
  QVERIFY(*found == (std::map<OuterStep, std::vector<double>>{{OuterStep{0}, {0.25, 0.5, 0.125}},
                                                              {OuterStep{4}, {0.5, 0.25, 0.75}}}));
  QVERIFY(store().evaluations({"others", TaskKind::kRolling, 1, 9, kHash})->empty());
  QVERIFY(store().save(PersistRollback{OuterStep{3}, 5, "asked for", false}, 0).ok());
  QCOMPARE(store().evaluations(choices)->size(), std::size_t{1});
}

namespace {

void enrol(const std::filesystem::path& path, const std::string& id, const std::string& name) {
  Result<Database> database = Database::open(path);
  QVERIFY(database.ok());
  QVERIFY(database
              ->exec("INSERT INTO island (id, display_name, key_sha256, enrolled_at) VALUES ('" + id + "', '" + name +
                     "', '" + id + "', 0)")
              .ok());
}

}  // namespace

void HubStoreTest::who_agreed_is_named_and_the_others_are_counted() {
  for (const char* number : {"1", "2", "3"}) enrol(path(), std::string("isl-") + number, std::string("Reef ") + number);
  for (std::uint32_t round = 0; round < 2; ++round) {
    PersistCommit commit = commit_of(round, {});
    commit.commit.members.push_back({IslandId{"isl-2"}, Address{"10.0.0.2", 1}, 10});
    commit.commit.members.push_back({IslandId{"isl-3"}, Address{"10.0.0.3", 1}, 20});
    QVERIFY(store().save(commit).ok());
  }
  const auto named = [&] {
    QStringList names;
    const auto found = store().contributors();
    for (const Contributor& one : *found) {
      names << QString("%1 x%2 %3").arg(QString::fromStdString(one.name)).arg(one.islands).arg(one.tokens);
    }
    return names;
  };
  QCOMPARE(named(), QStringList{" x3 188"});  // nobody was asked yet

  QVERIFY(store().save_credited(IslandId{"isl-2"}, true).ok());
  QVERIFY(store().save_credited(IslandId{"isl-2"}, true).ok());
  QVERIFY(store().save_credited(IslandId{"isl-3"}, false).ok());
  QCOMPARE(named(), (QStringList{"Reef 2 x1 20", " x2 168"}));

  QVERIFY(store().save_credited(IslandId{"isl-2"}, false).ok());  // a change of mind
  QCOMPARE(named(), QStringList{" x3 188"});
}

void HubStoreTest::who_contributed_is_counted_until_it_is_undone() {
  enrol(path(), "isl-1", "Reef");
  QVERIFY(store().save_credited(IslandId{"isl-1"}, true).ok());
  enrol(path(), "isl-2", "Receiver");
  for (std::uint32_t round = 0; round < 3; ++round) {
    PersistCommit commit = commit_of(round, {});
    commit.commit.members.push_back({IslandId{"isl-2"}, Address{"10.0.0.2", 1}, 0});
    QVERIFY(store().save(commit).ok());
  }
  const auto counted = [&](std::uint64_t rounds) {
    const auto found = store().contributors();
    const auto accepted = store().accepted_rounds();
    return found.ok() && found->size() == 1 && found->front().name == "Reef" && found->front().rounds == rounds &&
           found->front().tokens == 64 * rounds && accepted.ok() && accepted->size() == 1 &&
           accepted->at(IslandId{"isl-1"}) == rounds;
  };
  QVERIFY(counted(3));

  QVERIFY(store().save(PersistRollback{OuterStep{1}, 5, "asked for", false}, 0).ok());
  QVERIFY(counted(1));
  PersistFastForward forward{commit_of(7, {}).commit};
  QVERIFY(store().save(forward).ok());
  QVERIFY(counted(2));
}

void HubStoreTest::commits_of_a_database_of_before_are_counted_once() {
  enrol(path(), "isl-1", "Reef");
  for (std::uint32_t round = 0; round < 3; ++round) QVERIFY(store().save(commit_of(round, {})).ok());
  store_.reset();
  {
    // As version 3 left it; and a commit of long ago that nobody can read any more.
    Result<Database> database = Database::open(path());
    QVERIFY(database.ok());
    QVERIFY(database
                ->exec("DROP TABLE contribution; DROP TABLE credited; DROP TABLE evaluation; PRAGMA user_version = 3; "
                       "INSERT INTO round_commit VALUES (9, 1, 1, 64, 0, 0, '{}')")
                .ok());
  }

  for (int start = 0; start < 2; ++start) {
    store_ = std::move(*HubStore::open(path()));
    const auto found = store().contributors();
    QVERIFY(found.ok());
    QCOMPARE(found->size(), std::size_t{1});
    QCOMPARE(found->front().tokens, std::uint64_t{3 * 64});
    QVERIFY(store().evaluations({"choices", TaskKind::kMultipleChoice, 4, 9, kHash}).ok());
  }
}

}  // namespace atl

QTEST_GUILESS_MAIN(atl::HubStoreTest)
#include "hub_store_test.moc"
