// Open rounds alone, two fragments under way: without a coordinator around them, and nothing between them but the
// members, the links, and whom to trust.
#include <QtTest>
#include <random>

#include "tests/net/mesh/scripted_rounds.h"

namespace atl {

class OpenRoundTest : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void the_next_round_is_trained_while_one_is_averaged();
  void attempts_of_two_fragments_run_at_once_and_each_message_names_its_own();
  void what_fails_in_one_round_changes_nothing_in_the_other();
  void a_round_that_is_agreed_on_waits_for_the_one_before();
  void one_that_goes_while_its_round_waits_is_no_holder_and_costs_no_attempt();
  void where_most_go_while_their_round_waits_they_average_anew();
  void who_comes_back_gets_to_the_next_round_through_the_one_before();
  void leases_of_both_rounds_are_disjoint_and_unused_ones_are_free_again();
  void whatever_happens_each_fragment_keeps_the_rules_data();
  void whatever_happens_each_fragment_keeps_the_rules();
};

void OpenRoundTest::the_next_round_is_trained_while_one_is_averaged() {
  ScriptedRounds rounds(3);
  QVERIFY(!rounds.is_open(1));

  all_say_ready(rounds, 3, 0);

  QVERIFY(rounds.at(0).runs_attempt());
  for (int i = 1; i <= 3; ++i) {
    const auto begun = rounds.sent<HubRoundBegin>(i);
    QCOMPARE(begun.size(), std::size_t{2});
    QCOMPARE(begun[1].round, OuterStep{1});
    QCOMPARE(begun[1].fragment, FragmentId{1});
    QVERIFY(begun[1].lease_sequences > 0);
  }
}

void OpenRoundTest::attempts_of_two_fragments_run_at_once_and_each_message_names_its_own() {
  ScriptedRounds rounds(3);

  average_both(rounds, 3);

  QVERIFY(rounds.at(0).runs_attempt());
  QVERIFY(rounds.at(1).runs_attempt());
  for (const HubAttempt& attempt : rounds.sent<HubAttempt>()) {
    QCOMPARE(attempt.fragment.value, attempt.round.value);
    QCOMPARE(attempt.attempt, Attempt{1});  // each round counts its own
    QCOMPARE(attempt.order.size(), std::size_t{3});
  }
}

void OpenRoundTest::what_fails_in_one_round_changes_nothing_in_the_other() {
  ScriptedRounds rounds(3);
  average_both(rounds, 3);

  for (std::uint32_t attempt = 1; attempt <= 2; ++attempt) {
    for (int i = 1; i <= 3; ++i) rounds.failed(i, 0, attempt, {true, false});
    rounds.pass(6s);
  }

  QCOMPARE(of_round(rounds.sent<HubAttempt>(1), 0).size(), std::size_t{3});
  QCOMPARE(of_round(rounds.sent<HubAttempt>(1), 1).size(), std::size_t{1});
  QVERIFY(of_round(rounds.sent<HubAbort>(), 1).empty());
  QVERIFY(rounds.at(1).runs_attempt());
  const auto kept = of_round(rounds.sent<HubAttempt>(1), 0).back().final_buckets;
  QCOMPARE(kept, (std::vector<bool>{true, false}));  // of this fragment's buckets
}

void OpenRoundTest::a_round_that_is_agreed_on_waits_for_the_one_before() {
  ScriptedRounds rounds(3);
  average_both(rounds, 3);

  for (int i = 1; i <= 3; ++i) rounds.have(i, 1, 1);
  rounds.pass(60s);  // nobody is late: it is not given up
  QCOMPARE(rounds.committed, OuterStep{0});
  QVERIFY(rounds.at(1).runs_attempt());

  for (int i = 1; i <= 3; ++i) rounds.have(i, 0, 1);

  std::vector<OuterStep> committed;
  for (const CoordinatorAction& action : rounds.all) {
    if (const auto* commit = std::get_if<PersistCommit>(&action)) committed.push_back(commit->commit.round);
  }
  QCOMPARE(committed, (std::vector<OuterStep>{OuterStep{0}, OuterStep{1}}));
  QCOMPARE(of_round(rounds.sent<HubAttempt>(1), 1).size(), std::size_t{1});
}

void OpenRoundTest::one_that_goes_while_its_round_waits_is_no_holder_and_costs_no_attempt() {
  ScriptedRounds rounds(4);
  average_both(rounds, 4);
  for (int i = 1; i <= 4; ++i) rounds.have(i, 1, 1);
  for (int i = 1; i <= 3; ++i) rounds.have(i, 0, 1);

  rounds.cut(4);
  rounds.pass(0s);
  rounds.pass(0s);

  QCOMPARE(rounds.committed, OuterStep{2});
  for (const CoordinatorAction& action : rounds.all) {
    const auto* commit = std::get_if<PersistCommit>(&action);
    if (commit == nullptr) continue;
    QCOMPARE(commit->commit.attempt, Attempt{1});
    QCOMPARE(commit->commit.members.size(), std::size_t{4});  // its work is in
    QCOMPARE(commit->commit.holders.size(), std::size_t{3});
  }
}

void OpenRoundTest::where_most_go_while_their_round_waits_they_average_anew() {
  ScriptedRounds rounds(4);
  average_both(rounds, 4);
  for (int i = 1; i <= 4; ++i) rounds.have(i, 1, 1);

  rounds.cut(3);
  rounds.cut(4);

  QVERIFY(!rounds.at(1).runs_attempt());
  QCOMPARE(of_round(rounds.sent<HubAbort>(1), 1).size(), std::size_t{1});
}

void OpenRoundTest::who_comes_back_gets_to_the_next_round_through_the_one_before() {
  ScriptedRounds rounds(3);
  all_say_ready(rounds, 3, 0);
  const LeaseRange lease = rounds.at(1).parts().of(ScriptedRounds::id(3)).lease();
  rounds.cut(3);
  const std::size_t before = rounds.sent<HubRoundBegin>(3).size();

  rounds.enter(3);
  for (const OuterStep round : rounds.numbers()) rounds.open[round]->parts().tell(rounds.island(3));
  rounds.settle();
  const auto first = rounds.sent<HubRoundBegin>(3);
  QCOMPARE(first.size(), before + 1);
  QCOMPARE(first.back().round, OuterStep{0});
  rounds.ready(3, 0);

  const auto told = rounds.sent<HubRoundBegin>(3);
  QCOMPARE(told.size(), before + 2);
  QCOMPARE(told.back().round, OuterStep{1});
  QCOMPARE(told.back().lease_first_sequence, lease.first);  // its own, as before
}

void OpenRoundTest::leases_of_both_rounds_are_disjoint_and_unused_ones_are_free_again() {
  ScriptedRounds rounds(3);
  all_say_ready(rounds, 3, 0);
  std::set<std::uint64_t> firsts;
  for (const HubRoundBegin& begun : rounds.sent<HubRoundBegin>()) firsts.insert(begun.lease_first_sequence);
  QCOMPARE(firsts.size(), std::size_t{6});

  rounds.at(1).abandon();

  const std::uint64_t sequences = 8;  // of a lease
  for (int i = 0; i < 3; ++i) QVERIFY(rounds.leases.take(sequences).first >= 3 * sequences);
  QCOMPARE(rounds.leases.cursor(), 6 * sequences);
}

// ---- random schedules

namespace {

// What must hold of each fragment, watched from outside.
class Watcher {
 public:
  explicit Watcher(ScriptedRounds& rounds) : rounds_(rounds) {}

  QString check() {
    for (const CoordinatorAction& action : rounds_.actions) {
      if (const auto* send = std::get_if<SendTo>(&action)) check(*send);
      if (const auto* attempt = std::get_if<PersistAttempt>(&action)) check(*attempt);
      if (const auto* commit = std::get_if<PersistCommit>(&action)) check(*commit);
      if (const auto* leases = std::get_if<PersistLeases>(&action)) check(*leases);
    }
    rounds_.actions.clear();
    return broken_;
  }
  Attempt newest_attempt(OuterStep round) const {
    Attempt newest;
    for (const auto& [key, attempt] : attempts) {
      if (key.first == round) newest = std::max(newest, key.second);
    }
    return newest;
  }

  std::map<std::pair<OuterStep, Attempt>, HubAttempt> attempts;
  // By round and attempt: what each member has said of it.
  std::map<std::pair<OuterStep, Attempt>, std::map<IslandId, std::string>> digests;
  std::map<std::pair<OuterStep, Attempt>, std::map<IslandId, std::vector<bool>>> whole;
  std::vector<OuterStep> committed;

 private:
  void must(bool holds, const char* what) {
    if (!holds && broken_.isEmpty()) broken_ = what;
  }
  void check(const SendTo& send) {
    std::visit([this](const auto& message) { check_fragment(message); }, send.message);
    const auto* attempt = std::get_if<HubAttempt>(&send.message);
    if (attempt == nullptr) return;
    attempts[{attempt->round, attempt->attempt}] = *attempt;
    const auto& reports = whole[{attempt->round, Attempt{attempt->attempt.value - 1}}];
    for (std::size_t bucket = 0; bucket < attempt->final_buckets.size(); ++bucket) {
      if (!attempt->final_buckets[bucket]) continue;
      for (const AttemptMember& member : attempt->order) {
        const auto report = reports.find(member.id);
        must(report != reports.end() && report->second.at(bucket), "a bucket is kept that a member does not hold");
      }
    }
  }
  template <class Message>
  void check_fragment(const Message& message) {
    if constexpr (requires { message.round, message.fragment; }) {
      must(message.fragment == rounds_.turn.run().fragment_of(message.round), "a message names another fragment");
    }
  }
  void check(const PersistAttempt& attempt) {
    must(attempt.attempt.value == ++last_attempts_[attempt.round], "attempts do not count on by one");
  }
  void check(const PersistLeases& leases) {
    for (const IslandLease& lease : leases.leases) {
      must(!used_up_.contains(lease.range.first), "a used up lease is given out");
    }
  }
  void check(const PersistCommit& persist) {
    const HubCommit& commit = persist.commit;
    must(commit.round.value == committed.size(), "rounds are not committed in their order");
    committed.push_back(commit.round);
    const auto& said = digests[{commit.round, commit.attempt}];
    for (const IslandId& holder : commit.holders) {
      const auto found = said.find(holder);
      must(found != said.end() && found->second == commit.digest, "a holder never said that it holds the average");
    }
    std::size_t trainers = 0, trainers_that_hold = 0;  // who only receives has no say
    for (const AttemptMember& member : commit.members) {
      if (member.tokens == 0) continue;
      ++trainers;
      if (std::ranges::find(commit.holders, member.id) != commit.holders.end()) ++trainers_that_hold;
    }
    must(2 * trainers_that_hold > trainers, "few commit what many averaged");
    for (const LeaseRange& lease : persist.leases) {
      must(used_up_.insert(lease.first).second, "a lease is used up twice");
    }
  }

  ScriptedRounds& rounds_;
  std::map<OuterStep, std::uint32_t> last_attempts_;
  std::set<std::uint64_t> used_up_;  // first positions
  QString broken_;
};

std::string digest_of(OuterStep round, Attempt attempt) {
  return fake_sha256(std::to_string(round.value) + " " + std::to_string(attempt.value));
}

// One thing that an island may do, or that may happen to it.
void happen(ScriptedRounds& rounds, Watcher& watcher, std::mt19937& random, int islands) {
  const int who = 1 + static_cast<int>(random() % static_cast<unsigned>(islands));
  const auto open = rounds.numbers();
  const OuterStep round = open[random() % open.size()];
  MeshIsland& island = rounds.island(who);
  const RoundPart part = std::as_const(rounds.at(round.value)).parts().of(island.id());
  const std::uint32_t attempt = watcher.newest_attempt(round).value;
  const auto key = std::pair(round, Attempt{attempt});
  switch (random() % 12) {
    case 0:
      if (island.connected && random() % 4 == 0) rounds.cut(who);
      return;
    case 1:
    case 2:
      if (island.connected) return;
      rounds.enter(who);
      for (const OuterStep each : open) rounds.at(each.value).parts().tell(rounds.island(who));
      return rounds.settle();
    case 3: return rounds.pass(std::chrono::milliseconds(random() % 4000));
    case 4: {
      if (!island.connected || attempt == 0 || random() % 3 != 0) return;
      const std::vector<bool> whole{random() % 2 == 0, random() % 2 == 0};
      watcher.whole[key].emplace(island.id(), whole);
      return rounds.failed(who, round.value, attempt, whole);
    }
    case 5:
    case 6:
    case 7:
    case 8:
      if (!island.connected || !part.told || part.ready) return;
      return rounds.ready(who, round.value, part.begun.lease_sequences * 8);
    default: {
      if (!island.connected || attempt == 0 || !part.ready) return;
      const std::string digest = digest_of(round, Attempt{attempt});
      watcher.digests[key][island.id()] = digest;
      return rounds.have(who, round.value, attempt, digest);
    }
  }
}

// Everybody is here, trains and averages, until three more rounds are committed; or for five minutes, as who sits out
// comes back every thirty seconds.
void heal(ScriptedRounds& rounds, Watcher& watcher, int islands) {
  const std::size_t enough = watcher.committed.size() + 3;
  for (int second = 0; second < 300 && watcher.committed.size() < enough; ++second) {
    for (int who = 1; who <= islands; ++who) {
      if (!rounds.island(who).connected) rounds.enter(who);
      rounds.island(who).standing = MeshIsland::Standing::kTraining;
      for (const OuterStep round : rounds.numbers()) {
        if (!rounds.is_open(round.value)) continue;
        const RoundPart part = std::as_const(rounds.at(round.value)).parts().of(ScriptedRounds::id(who));
        if (part.told && !part.ready) rounds.ready(who, round.value, part.begun.lease_sequences * 8);
        if (watcher.check(); !rounds.is_open(round.value)) continue;
        const Attempt attempt = watcher.newest_attempt(round);
        const std::string digest = digest_of(round, attempt);
        watcher.digests[{round, attempt}][ScriptedRounds::id(who)] = digest;
        rounds.have(who, round.value, attempt.value, digest);
        watcher.check();
      }
    }
    rounds.pass(1s);
    watcher.check();
  }
}

}  // namespace

void OpenRoundTest::whatever_happens_each_fragment_keeps_the_rules_data() {
  QTest::addColumn<int>("islands");
  for (const int islands : {2, 3, 5}) QTest::addRow("%d islands", islands) << islands;
}

void OpenRoundTest::whatever_happens_each_fragment_keeps_the_rules() {
  QFETCH(int, islands);
  std::size_t overlapped = 0, committed = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    std::mt19937 random(seed * 31 + static_cast<unsigned>(islands));
    ScriptedRounds rounds(islands);
    rounds.settle();
    Watcher watcher(rounds);
    for (int step = 0; step < 600; ++step) {
      happen(rounds, watcher, random, islands);
      const QString broken = watcher.check();
      QVERIFY2(broken.isEmpty(), qPrintable(QString("seed %1: ").arg(seed) + broken));
      const auto runs = [](const auto& entry) { return entry.second->runs_attempt(); };
      if (std::ranges::count_if(rounds.open, runs) == 2) ++overlapped;
      // Who had to recover has done so.
      for (auto& [id, island] : rounds.members.islands()) {
        if (random() % 20 == 0) island.standing = MeshIsland::Standing::kTraining;
      }
    }
    committed += watcher.committed.size();

    const std::size_t before = watcher.committed.size();
    heal(rounds, watcher, islands);

    QVERIFY2(watcher.check().isEmpty(), qPrintable(QString("seed %1: ").arg(seed) + watcher.check()));
    QVERIFY2(watcher.committed.size() >= before + 3,
             qPrintable(QString("seed %1 stands still at round %2").arg(seed).arg(rounds.committed.value)));
  }
  QVERIFY(committed > 100);   // in the midst of it
  QVERIFY(overlapped > 100);  // it is about two attempts at once
}

}  // namespace atl

QTEST_GUILESS_MAIN(atl::OpenRoundTest)
#include "open_round_test.moc"
