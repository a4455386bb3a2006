// RoundCoordinator: averages that are not what their members say that they gave, and work that goes against the
// others'.
#include <QtTest>

#include "net/mesh/attempt.h"
#include "tests/net/mesh/coordinator_script.h"
#include "tests/net/mesh/work_words.h"

using namespace atl;

namespace {

// What the islands of a mesh give, and say of it. The average is made of what those with weight give.
class SaidWork {
 public:
  explicit SaidWork(SimulatedMesh& mesh) {
    mesh.sketch = [this](const IslandId& id, const HubAttempt& attempt, IslandHave& have) { say(id, attempt, have); };
  }

  IslandId liar;
  double factor = 1;     // of what it gives
  bool says_so = false;  // and of what it says

  // In place of the island.
  void have(SimulatedMesh& mesh, int island, const HubAttempt& attempt) {
    IslandHave have{attempt.round, attempt.attempt, kDigest, 0.1};
    mesh.island(island).lane().average = {attempt.attempt, kDigest};
    say(mesh.island(island).id, attempt, have);
    mesh.say(island, have);
  }

 private:
  void say(const IslandId& id, const HubAttempt& attempt, IslandHave& have) {
    if (round_ != attempt.round) work_.begin_round();
    round_ = attempt.round;
    double tokens = 0;
    for (const AttemptMember& member : attempt.order) tokens += static_cast<double>(member.tokens);
    WorkSketch average(kSketchNumel);
    for (const AttemptMember& member : attempt.order) {
      const double share = static_cast<double>(member.tokens) / tokens;
      average = RandomWork::sum(1, average, share * (member.id == liar ? factor : 1), work_.of(member.id));
    }
    const WorkSketch& own = work_.of(id);
    have.gave_sketch = encode_sketch(RandomWork::sum(id == liar && says_so ? factor : 1, own, 0, own));
    have.average_sketch = encode_sketch(average);
  }

  RandomWork work_{1};
  std::optional<OuterStep> round_;
};

int rounds_with_work_of(const SimulatedMesh& mesh, const IslandId& id) {
  int rounds = 0;
  for (const HubCommit& commit : mesh.commits()) {
    for (const AttemptMember& member : commit.members) rounds += member.id == id && trained(member) ? 1 : 0;
  }
  return rounds;
}

std::string last_reason(const SimulatedMesh& mesh, const IslandId& id) {
  std::string reason;
  for (const CoordinatorNews& news : mesh.news()) {
    if (const auto* out = std::get_if<WorkLeftOut>(&news); out != nullptr && out->island == id) reason = out->reason;
  }
  return reason;
}

}  // namespace

class CoordinatorWorkTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void what_a_liar_gives_is_in_no_commit_data();
  void what_a_liar_gives_is_in_no_commit();
  void who_is_left_out_stays_with_the_others();
  void leaving_and_coming_back_brings_no_weight_back();
  void of_two_the_run_stands_still_and_names_both();
  void nothing_is_left_out_where_nobody_lies();
  void after_an_average_with_kept_parts_the_next_is_made_anew();
};

void CoordinatorWorkTest::what_a_liar_gives_is_in_no_commit_data() {
  QTest::addColumn<int>("islands");
  QTest::addColumn<double>("factor");
  QTest::addColumn<bool>("says_so");
  for (const int islands : {3, 4, 8}) {
    for (const double factor : {-1.0, -2.0, -7.0}) {
      QTest::addRow("1 of %d, x%g, said", islands, -factor) << islands << factor << true;
      QTest::addRow("1 of %d, x%g, hidden", islands, -factor) << islands << factor << false;
    }
  }
}

void CoordinatorWorkTest::what_a_liar_gives_is_in_no_commit() {
  QFETCH(const int, islands);
  QFETCH(const double, factor);
  QFETCH(const bool, says_so);
  SimulatedMesh mesh(run_for(static_cast<std::uint32_t>(islands)));
  SaidWork work(mesh);
  work.liar = mesh.island(2).id;
  work.factor = factor;
  work.says_so = says_so;
  for (int i = 1; i <= islands; ++i) mesh.start(i);

  commit_rounds(mesh, 5);

  QCOMPARE(mesh.violation(), std::string());
  // By its own word one that is borderline may pass once.
  QVERIFY(rounds_with_work_of(mesh, work.liar) <= (says_so ? 1 : 0));
  QVERIFY2(last_reason(mesh, work.liar).find("left out up to round") != std::string::npos,
           last_reason(mesh, work.liar).c_str());
  QVERIFY(received<HubNotice>(mesh.island(2)).back().text.find("left out up to round") != std::string::npos);
  QCOMPARE(mesh.hub().islands().at(work.liar).conduct.rounds_accepted,
           static_cast<std::uint32_t>(rounds_with_work_of(mesh, work.liar)));
}

// It receives, takes the outer step, and its leases are not used up.
void CoordinatorWorkTest::who_is_left_out_stays_with_the_others() {
  SimulatedMesh mesh(run_for(3));
  SaidWork work(mesh);
  work.liar = mesh.island(3).id;
  work.factor = -2;
  for (int i = 1; i <= 3; ++i) mesh.start(i);

  commit_rounds(mesh, 5);
  mesh.settle();

  std::uint64_t trained_sequences = 0, used_up = 0;
  for (const HubCommit& commit : mesh.commits()) {
    for (const AttemptMember& member : commit.members) trained_sequences += trained(member) ? 8 : 0;
  }
  for (const LeaseRange& lease : mesh.committed_leases()) used_up += lease.sequences;
  QCOMPARE(used_up, trained_sequences);
  QVERIFY(!mesh.island(3).goodbye);
  QVERIFY(received<HubRecover>(mesh.island(3)).empty());
  QCOMPARE(mesh.island(3).outer_step, mesh.island(1).outer_step);
  QCOMPARE(mesh.island(3).state_hash, mesh.island(1).state_hash);
}

void CoordinatorWorkTest::leaving_and_coming_back_brings_no_weight_back() {
  SimulatedMesh mesh(run_for(4));
  SaidWork work(mesh);
  work.liar = mesh.island(1).id;
  work.factor = -2;
  for (int i = 1; i <= 4; ++i) mesh.start(i);
  commit_rounds(mesh, 3);

  mesh.say(1, IslandLeaving{"done"});
  commit_rounds(mesh, 1);
  mesh.start(1);
  commit_rounds(mesh, 4);

  QCOMPARE(rounds_with_work_of(mesh, work.liar), 0);
  const auto last = mesh.commits().back().members;
  QVERIFY(std::ranges::find(last, work.liar, &AttemptMember::id) != last.end());
}

void CoordinatorWorkTest::of_two_the_run_stands_still_and_names_both() {
  SimulatedMesh mesh(run_for(2));
  SaidWork work(mesh);
  work.liar = mesh.island(2).id;
  work.factor = -1;
  for (int i = 1; i <= 2; ++i) mesh.start(i);

  for (int i = 0; i < 100 && !mesh.hub().standstill(); ++i) {
    for (int step = 0; step < 50; ++step) mesh.settle_once();
    mesh.pass(100ms);
  }

  QVERIFY(mesh.commits().empty());
  QVERIFY(mesh.hub().standstill().has_value());
  QCOMPARE(mesh.hub().standstill()->kind, Standstill::Kind::kSplitAverage);
  QVERIFY(mesh.hub().standstill()->text.find("not what its members say that they gave") != std::string::npos);
}

void CoordinatorWorkTest::nothing_is_left_out_where_nobody_lies() {
  SimulatedMesh mesh(run_for(3));
  SaidWork work(mesh);
  for (int i = 1; i <= 3; ++i) mesh.start(i);

  commit_rounds(mesh, 10);

  QCOMPARE(mesh.count<WorkLeftOut>(), 0);
  QCOMPARE(mesh.count<AttemptFailed>(), 0);
}

// Or whoever makes an attempt fail in each round would never be looked at.
void CoordinatorWorkTest::after_an_average_with_kept_parts_the_next_is_made_anew() {
  SimulatedMesh mesh(run_for(3));
  SaidWork work(mesh);
  begin_first_round(mesh, 3);
  for (std::uint32_t round = 0; round < 2; ++round) {
    all_ready(mesh, 3);
    const std::uint32_t attempt = received<HubAttempt>(mesh.island(1)).back().attempt.value;
    for (int i = 1; i <= 3; ++i) {
      IslandAttemptFailed failed{OuterStep{round}, Attempt{attempt}, {}, "reset", {true, true, false, false}};
      mesh.say(i, failed);
    }
    deliver(mesh);
    const HubAttempt next = received<HubAttempt>(mesh.island(1)).back();
    QCOMPARE(next.attempt.value, attempt + 1);
    QCOMPARE(next.final_buckets.empty(), round > 0);
    for (int i = 1; i <= 3; ++i) work.have(mesh, i, next);
    deliver(mesh);
    QCOMPARE(mesh.hub().committed(), OuterStep{round + 1});
    deliver(mesh);
  }
}

QTEST_GUILESS_MAIN(CoordinatorWorkTest)
#include "coordinator_work_test.moc"
