// Whose work is left out for what it does to the others': n islands of which f give their work with another sign.
#include "net/mesh/work_watch.h"

#include <QtTest/QTest>
#include <algorithm>

#include "net/mesh/attempt.h"
#include "tests/net/mesh/work_words.h"

using namespace atl;

namespace {

constexpr double kLoss = 0.02;  // of encoding

IslandId name_of(int number) { return IslandId{"isl-" + std::to_string(number)}; }

// Islands 1..n around a watch; who lies, and how, is a function of who gives to the attempt.
class Run {
 public:
  enum class Word { kTrue, kFalse, kNone };  // what a liar says that it gave

  Run(int islands, unsigned seed, double shared = 0.2) : islands_(islands), work_(seed, shared) {}

  std::map<IslandId, double> factors;  // of liars: what they give is so many times what they learned
  Word word = Word::kTrue;
  // Whether it lies in this attempt, to which these give.
  std::function<bool(const IslandId&, const std::set<IslandId>&)> lies = [](const auto&, const auto&) { return true; };

  WorkWatch watch;
  int attempts = 0, poisoned_commits = 0;
  std::map<IslandId, int> rounds_out;
  std::set<IslandId> found;  // left out for longer
  std::optional<WorkWatch::Fault> last_fault;

  void round(std::uint32_t number, int most_attempts = 100) {
    work_.begin_round();
    for (int i = 0; i < most_attempts; ++i) {
      if (try_once(OuterStep{number})) return;
    }
  }

 private:
  bool try_once(OuterStep round) {
    ++attempts;
    std::vector<AttemptMember> members;
    for (int i = 1; i <= islands_; ++i) members.push_back({name_of(i), {}, 64});
    watch.leave_out(round, 1, members);
    std::set<IslandId> gives, left_out;
    for (const AttemptMember& member : members) (trained(member) ? gives : left_out).insert(member.id);
    WorkSketch average(kSketchNumel);
    WorkWords words;
    bool is_poisoned = false;
    for (const IslandId& id : gives) {
      const bool lie = factors.contains(id) && lies(id, gives);
      is_poisoned = is_poisoned || lie;
      const WorkSketch given = RandomWork::sum(lie ? factors[id] : 1, work_.of(id), 0, work_.of(id));
      average = RandomWork::sum(1, average, 1.0 / static_cast<double>(gives.size()), given);
      IslandHave have{round, Attempt{1}, "", 0};
      if (!lie || word == Word::kTrue) have.gave_sketch = encode_sketch(given);
      if (lie && word == Word::kFalse) have.gave_sketch = encode_sketch(work_.of(id));
      words.add(id, have);
    }
    IslandHave have{round, Attempt{1}, "", 0};
    have.average_sketch = encode_sketch(work_.with_loss(average, kLoss));
    for (const AttemptMember& member : members) words.add(member.id, have);
    last_fault = watch.find_fault(round, members, left_out, words, WireFormat::kInt8Block);
    if (last_fault) return false;
    if (is_poisoned) ++poisoned_commits;
    for (const auto& [id, why] : watch.note_committed(round, members, left_out)) {
      ++rounds_out[id];
      if (why.find("up to round") != std::string::npos) found.insert(id);
    }
    return true;
  }

  const int islands_;
  RandomWork work_;
};

void add_gangs() {
  QTest::addColumn<int>("islands");
  QTest::addColumn<int>("liars");
  QTest::addColumn<double>("factor");
  for (const auto& [islands, liars] : {std::pair{3, 1}, {4, 1}, {8, 2}, {14, 4}}) {
    for (const double factor : {-1.0, -2.0, -7.0}) {
      QTest::addRow("%d of %d, x%g", liars, islands, -factor) << islands << liars << factor;
    }
  }
}

}  // namespace

class WorkWatchTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void who_says_that_it_goes_against_the_others_is_left_out_data() { add_gangs(); }
  void who_says_that_it_goes_against_the_others_is_left_out();
  void who_gives_other_than_it_says_is_found_before_a_commit_data() { add_gangs(); }
  void who_gives_other_than_it_says_is_found_before_a_commit();
  void who_does_not_say_what_it_gave_is_found_as_well_data() { add_gangs(); }
  void who_does_not_say_what_it_gave_is_found_as_well();
  void who_lies_now_and_then_is_found_by_those_averages_data() { add_gangs(); }
  void who_lies_now_and_then_is_found_by_those_averages();
  void who_has_another_suspected_is_left_out_as_often_itself();
  void nobody_is_left_out_where_nobody_lies_data();
  void nobody_is_left_out_where_nobody_lies();
  void one_lie_costs_everybody_a_round_at_most();
  void who_is_found_again_is_left_out_for_longer();
  void of_two_nobody_can_tell_who_lies();
  void half_and_half_nobody_can_tell_who_goes_against_whom();
  void nobody_is_left_out_below_the_quorum();
  void words_of_older_versions_are_missing_and_prove_nothing();
  void what_no_sketch_is_says_nothing();
  void with_error_feedback_what_a_receivers_chunk_loses_is_no_lie();
};

void WorkWatchTest::who_says_that_it_goes_against_the_others_is_left_out() {
  QFETCH(const int, islands);
  QFETCH(const int, liars);
  QFETCH(const double, factor);
  Run run(islands, 1);
  for (int i = 1; i <= liars; ++i) run.factors[name_of(i)] = factor;

  for (std::uint32_t round = 0; round < 6; ++round) run.round(round);

  QCOMPARE(run.found.size(), static_cast<std::size_t>(liars));
  for (const auto& [id, its] : run.factors) QVERIFY(run.found.contains(id));
  QVERIFY2(run.poisoned_commits <= 2, qPrintable(QString::number(run.poisoned_commits)));
  QCOMPARE(run.rounds_out.size(), static_cast<std::size_t>(liars));  // and nobody else was
}

void WorkWatchTest::who_gives_other_than_it_says_is_found_before_a_commit() {
  QFETCH(const int, islands);
  QFETCH(const int, liars);
  QFETCH(const double, factor);
  Run run(islands, 2);
  run.word = Run::Word::kFalse;
  for (int i = 1; i <= liars; ++i) run.factors[name_of(i)] = factor;

  for (std::uint32_t round = 0; round < 6; ++round) run.round(round);

  QCOMPARE(run.poisoned_commits, 0);
  for (const auto& [id, its] : run.factors) QVERIFY2(run.found.contains(id), id.value.c_str());
  QCOMPARE(run.found.size(), static_cast<std::size_t>(liars));
  QVERIFY2(run.attempts <= 6 + 2 * islands, qPrintable(QString::number(run.attempts)));
}

void WorkWatchTest::who_does_not_say_what_it_gave_is_found_as_well() {
  QFETCH(const int, islands);
  QFETCH(const int, liars);
  QFETCH(const double, factor);
  Run run(islands, 3);
  run.word = Run::Word::kNone;
  for (int i = 1; i <= liars; ++i) run.factors[name_of(i)] = factor;

  for (std::uint32_t round = 0; round < 6; ++round) run.round(round);

  QVERIFY2(run.poisoned_commits <= 2, qPrintable(QString::number(run.poisoned_commits)));
  for (const auto& [id, its] : run.factors) QVERIFY2(run.found.contains(id), id.value.c_str());
  QCOMPARE(run.found.size(), static_cast<std::size_t>(liars));
}

void WorkWatchTest::who_lies_now_and_then_is_found_by_those_averages() {
  QFETCH(const int, islands);
  QFETCH(const int, liars);
  QFETCH(const double, factor);
  Run run(islands, 4);
  run.word = Run::Word::kFalse;
  RandomWork dice(5);
  run.lies = [&](const IslandId&, const auto&) { return dice.chance(0.3); };
  for (int i = 1; i <= liars; ++i) run.factors[name_of(i)] = factor;

  for (std::uint32_t round = 0; round < 60; ++round) run.round(round);

  QCOMPARE(run.poisoned_commits, 0);
  int honest_out = 0;
  for (const auto& [id, rounds] : run.rounds_out) honest_out += run.factors.contains(id) ? 0 : rounds;
  // All honest rounds, and what is left of them.
  QVERIFY2(honest_out <= 60 * islands / 5, qPrintable(QString::number(honest_out)));
}

void WorkWatchTest::who_has_another_suspected_is_left_out_as_often_itself() {
  Run run(8, 6);
  run.word = Run::Word::kFalse;
  run.factors[name_of(5)] = -2;
  run.lies = [](const auto&, const std::set<IslandId>& gives) { return gives.contains(name_of(2)); };

  for (std::uint32_t round = 0; round < 100; ++round) run.round(round);

  QCOMPARE(run.poisoned_commits, 0);
  QVERIFY2(run.rounds_out[name_of(2)] <= run.rounds_out[name_of(5)] + 8,
           qPrintable(QString("%1 %2").arg(run.rounds_out[name_of(2)]).arg(run.rounds_out[name_of(5)])));
}

void WorkWatchTest::nobody_is_left_out_where_nobody_lies_data() {
  QTest::addColumn<int>("islands");
  QTest::addColumn<double>("shared");
  for (const int islands : {2, 3, 4, 8, 14, 40}) {
    QTest::addRow("%d that learn much the same", islands) << islands << 0.5;
    QTest::addRow("%d that have nothing in common", islands) << islands << 0.0;
  }
}

void WorkWatchTest::nobody_is_left_out_where_nobody_lies() {
  QFETCH(const int, islands);
  QFETCH(const double, shared);
  Run run(islands, 7, shared);

  for (std::uint32_t round = 0; round < 30; ++round) run.round(round);

  QCOMPARE(run.attempts, 30);
  QVERIFY(run.rounds_out.empty());
}

void WorkWatchTest::one_lie_costs_everybody_a_round_at_most() {
  Run run(5, 8);
  run.word = Run::Word::kFalse;
  run.factors[name_of(3)] = -1;
  int lies = 1;
  run.lies = [&](const auto&, const auto&) { return lies-- > 0; };

  for (std::uint32_t round = 0; round < 40; ++round) run.round(round);

  QCOMPARE(run.attempts, 41);
  QVERIFY(run.found.empty());
  for (const auto& [id, rounds] : run.rounds_out) QVERIFY(rounds <= 1);
}

void WorkWatchTest::who_is_found_again_is_left_out_for_longer() {
  Run run(4, 9);
  run.factors[name_of(2)] = -2;
  std::vector<int> out;

  for (std::uint32_t round = 0; round < 80; ++round) {
    const int before = run.attempts;
    run.round(round);
    if (run.attempts > before + 1) out.push_back(static_cast<int>(round));  // tried again, and found
  }

  QCOMPARE(out, (std::vector<int>{0, 8, 24, 56}));
  QCOMPARE(run.watch.suspect(), std::optional(name_of(2)));
}

void WorkWatchTest::of_two_nobody_can_tell_who_lies() {
  Run run(2, 10);
  run.factors[name_of(2)] = -1;
  run.round(0, 1);
  QVERIFY(!run.last_fault);  // each goes against the other

  run.word = Run::Word::kFalse;
  run.round(1, 1);
  QVERIFY(run.last_fault && run.last_fault->is_hopeless);
}

void WorkWatchTest::half_and_half_nobody_can_tell_who_goes_against_whom() {
  Run run(4, 11);
  for (const int i : {1, 2}) run.factors[name_of(i)] = -1;

  run.round(0, 1);

  QVERIFY(!run.last_fault);
}

void WorkWatchTest::nobody_is_left_out_below_the_quorum() {
  Run run(3, 12);
  run.factors[name_of(1)] = -2;
  run.round(0);
  std::vector<AttemptMember> members{{name_of(1), {}, 64}, {name_of(2), {}, 64}, {name_of(3), {}, 64}};
  std::vector<AttemptMember> again = members;

  run.watch.leave_out(OuterStep{1}, 3, members);
  run.watch.leave_out(OuterStep{1}, 2, again);

  QCOMPARE(std::ranges::count_if(members, trained), 3);
  QCOMPARE(std::ranges::count_if(again, trained), 2);
}

void WorkWatchTest::words_of_older_versions_are_missing_and_prove_nothing() {
  RandomWork work(13);
  work.begin_round();
  std::vector<AttemptMember> members;
  WorkWords words;
  WorkSketch average(kSketchNumel);
  for (int i = 1; i <= 4; ++i) {
    members.push_back({name_of(i), {}, 64});
    average = RandomWork::sum(1, average, 0.25, work.of(name_of(i)));
  }
  IslandHave have{OuterStep{0}, Attempt{1}, "", 0};
  have.average_sketch = encode_sketch(average);
  for (int i = 1; i <= 3; ++i) {
    have.gave_sketch = encode_sketch(work.of(name_of(i)));
    words.add(name_of(i), have);
  }
  WorkWatch watch;

  QVERIFY(!watch.find_fault(OuterStep{0}, members, {}, {}, WireFormat::kInt8Block));
  QVERIFY(!watch.find_fault(OuterStep{0}, members, {}, words, WireFormat::kInt8Block));
}

void WorkWatchTest::what_no_sketch_is_says_nothing() {
  WorkSketch sketch(kSketchNumel, 0.5);
  QCOMPARE(decode_sketch(encode_sketch(sketch)), std::optional(sketch));
  QCOMPARE(encode_sketch(sketch).size(), kSketchText);

  sketch[7] = std::numeric_limits<double>::infinity();
  QVERIFY(!decode_sketch(encode_sketch(sketch)));
  QVERIFY(!decode_sketch(""));
  QVERIFY(!decode_sketch(std::string(kSketchText, '*')));
  QVERIFY(!decode_sketch(encode_sketch(WorkSketch(kSketchNumel - 1))));
}

// Two of three give; what encoding loses in the third's chunk is in nobody's sketch.
void WorkWatchTest::with_error_feedback_what_a_receivers_chunk_loses_is_no_lie() {
  RandomWork work(14, 0.5);
  work.begin_round();
  const std::vector<AttemptMember> members{{name_of(1), {}, 64}, {name_of(2), {}, 64}, {name_of(3), {}, 0}};
  const WorkSketch average = RandomWork::sum(0.5, work.of(name_of(1)), 0.5, work.of(name_of(2)));
  const std::string with_loss = encode_sketch(work.with_loss(average, 0.2 / std::sqrt(3)));
  WorkWords words, lied;
  for (const AttemptMember& member : members) {
    IslandHave have{OuterStep{0}, Attempt{1}, "", 0};
    have.average_sketch = with_loss;
    if (trained(member)) have.gave_sketch = encode_sketch(work.of(member.id));
    words.add(member.id, have);
    have.average_sketch = encode_sketch(RandomWork::sum(0.5, work.of(name_of(1)), -0.5, work.of(name_of(2))));
    lied.add(member.id, have);
  }
  WorkWatch watch;

  QVERIFY(!watch.find_fault(OuterStep{0}, members, {}, words, WireFormat::kInt4E3m0));
  QVERIFY(watch.find_fault(OuterStep{0}, members, {}, words, WireFormat::kInt8Block));
  QVERIFY(watch.find_fault(OuterStep{0}, members, {}, lied, WireFormat::kInt4E3m0));
}

QTEST_GUILESS_MAIN(WorkWatchTest)
#include "work_watch_test.moc"
