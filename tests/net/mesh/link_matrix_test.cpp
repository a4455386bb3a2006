#include "net/mesh/link_matrix.h"

#include <QtTest>
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

namespace atl {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

const Clock::time_point kStart = Clock::time_point(hours(100));
const IslandId kA{"isl-a"}, kB{"isl-b"}, kC{"isl-c"}, kD{"isl-d"};
const std::vector<IslandId> kAll{kA, kB, kC, kD};

double rate(const LinkMatrix& matrix, int from, int to, Clock::time_point now = kStart) {
  return matrix.question(kAll, now).edge(from, to).bytes_per_second;
}

}  // namespace

class LinkMatrixTest : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void each_direction_is_known_for_itself();
  void a_new_measurement_outweighs_an_old_one_the_more_the_older_it_is();
  void a_rate_that_the_sender_did_not_fill_only_raises();
  void a_link_that_carried_little_for_long_is_as_slow_until_it_is_measured_again();
  void of_a_loss_that_was_seen_once_nothing_is_believed();
  void two_have_met_when_bytes_went_between_them_and_their_edge_is_not_dead();
  void what_nobody_measured_is_taken_to_be_half_of_what_its_ends_do();
  void old_measurements_are_forgotten();
  void a_dead_edge_is_dead_both_ways_until_it_is_measured_or_time_has_passed();
  void a_dead_edge_is_probed_until_it_comes_back_once();
  void measurements_that_cannot_be_are_ignored();
  void probes_go_to_what_is_unknown_and_touch_no_island_twice();
  void twelve_islands_have_all_met_before_the_sixteenth_round();
};

void LinkMatrixTest::each_direction_is_known_for_itself() {
  LinkMatrix matrix;
  QVERIFY(!matrix.knows(kAll, kStart));

  matrix.report({kA, kB, 10e6, 0.1, false}, kStart);
  matrix.report({kB, kA, 2e6, 0, false}, kStart);

  QVERIFY(matrix.knows(kAll, kStart));
  QCOMPARE(rate(matrix, 0, 1), 10e6);
  QCOMPARE(rate(matrix, 1, 0), 2e6);
  QCOMPARE(matrix.question(kAll, kStart).edge(1, 0).rtt_seconds, 0.1);  // of the pair
  QCOMPARE(matrix.known(kA, kB, kStart)->bytes_per_second, 10e6);
  QVERIFY(!matrix.known(kA, kC, kStart));
}

void LinkMatrixTest::a_new_measurement_outweighs_an_old_one_the_more_the_older_it_is() {
  LinkMatrix fresh, old;
  fresh.report({kA, kB, 10e6, 0.1, false}, kStart);
  old.report({kA, kB, 10e6, 0.1, false}, kStart);

  fresh.report({kA, kB, 20e6, 0.1, false}, kStart);
  old.report({kA, kB, 20e6, 0.1, false}, kStart + LinkMatrix::kHalfLife);

  QCOMPARE(rate(fresh, 0, 1), 15e6);
  QCOMPARE(rate(old, 0, 1, kStart + LinkMatrix::kHalfLife), 17.5e6);
}

void LinkMatrixTest::a_rate_that_the_sender_did_not_fill_only_raises() {
  LinkMatrix matrix;
  matrix.report({kA, kB, 10e6, 0.1, false}, kStart);

  matrix.report({kA, kB, 1e6, 0.2, true}, kStart + minutes(1));
  QCOMPARE(rate(matrix, 0, 1), 10e6);

  matrix.report({kA, kB, 30e6, 0.2, true}, kStart + minutes(2));
  QCOMPARE(rate(matrix, 0, 1), 30e6);
}

void LinkMatrixTest::a_link_that_carried_little_for_long_is_as_slow_until_it_is_measured_again() {
  LinkMatrix matrix;
  matrix.report({kA, kB, 10e6, 0.1, false}, kStart);

  matrix.carried(kA, kB, 20e6, kStart);  // which it can do
  QCOMPARE(rate(matrix, 0, 1), 10e6);
  matrix.carried(kA, kB, 1e5, kStart);
  QCOMPARE(rate(matrix, 0, 1), 1e5);
  QCOMPARE(matrix.known(kA, kB, kStart)->rtt_seconds, 0.1);
  matrix.report({kA, kB, 8e6, 0.1, false}, kStart);
  QCOMPARE(rate(matrix, 0, 1), 8e6);
}

void LinkMatrixTest::of_a_loss_that_was_seen_once_nothing_is_believed() {
  LinkMatrix matrix;
  const auto loss = [&](Clock::time_point now = kStart) { return matrix.known(kA, kB, now)->loss; };
  matrix.report({kA, kB, 10e6, 0.1, true, 0.3}, kStart);
  QVERIFY(!loss());

  matrix.report({kA, kB, 10e6, 0.1, true, 0.01}, kStart);
  QCOMPARE(loss(), std::optional(0.01));
  matrix.report({kA, kB, 20e6, 0.1, false}, kStart);  // a probe
  QCOMPARE(loss(), std::optional(0.01));
  matrix.report({kA, kB, 10e6, 0.1, true, 0.2}, kStart);
  QCOMPARE(loss(), std::optional(0.01));
  matrix.report({kA, kB, 10e6, 0.1, true, 0.2}, kStart);
  QCOMPARE(loss(), std::optional(0.2));

  for (const double wrong : {-0.1, 1.1, std::nan("")}) matrix.report({kA, kB, 1e6, 0.1, false, wrong}, kStart);
  QCOMPARE(loss(), std::optional(0.2));
  QCOMPARE(matrix.known(kA, kB, kStart)->bytes_per_second, 20e6);
  QVERIFY(!loss(kStart + hours(1) + seconds(1)));
}

void LinkMatrixTest::two_have_met_when_bytes_went_between_them_and_their_edge_is_not_dead() {
  LinkMatrix matrix;
  QVERIFY(!matrix.have_met(kA, kB, kStart));
  matrix.report({kB, kA, 10e6, 0.1, true}, kStart);
  QVERIFY(matrix.have_met(kA, kB, kStart) && matrix.have_met(kB, kA, kStart));

  matrix.declare_dead(kA, kB, kStart);

  QVERIFY(!matrix.have_met(kA, kB, kStart));
  QVERIFY(matrix.have_met(kA, kB, kStart + LinkMatrix::kDeadFor + minutes(1)));
  QVERIFY(!matrix.have_met(kA, kB, kStart + LinkMatrix::kForgottenAfter + minutes(1)));
}

void LinkMatrixTest::what_nobody_measured_is_taken_to_be_half_of_what_its_ends_do() {
  LinkMatrix matrix;
  matrix.report({kA, kB, 10e6, 0.1, false}, kStart);
  matrix.report({kC, kD, 40e6, 0.3, false}, kStart);

  QCOMPARE(rate(matrix, 0, 3), 5e6);   // a sends at most 10, d receives 40
  QCOMPARE(rate(matrix, 2, 1), 5e6);   // c sends 40, b receives 10
  QCOMPARE(rate(matrix, 1, 0), 20e6);  // nothing known of either: half of the best
  QCOMPARE(matrix.question(kAll, kStart).edge(0, 3).rtt_seconds, 0.3);
}

void LinkMatrixTest::old_measurements_are_forgotten() {
  LinkMatrix matrix;
  matrix.report({kA, kB, 10e6, 0.1, false}, kStart);

  QVERIFY(matrix.knows(kAll, kStart + LinkMatrix::kForgottenAfter));
  QVERIFY(!matrix.knows(kAll, kStart + LinkMatrix::kForgottenAfter + minutes(1)));
  QCOMPARE(rate(matrix, 0, 1, kStart + hours(24)), 1.0);
}

void LinkMatrixTest::a_dead_edge_is_dead_both_ways_until_it_is_measured_or_time_has_passed() {
  LinkMatrix matrix;
  matrix.declare_dead(kC, kA, kStart);
  matrix.declare_dead(kB, kD, kStart);

  QVERIFY(!matrix.question(kAll, kStart).may_be_neighbours(0, 2));
  QVERIFY(!matrix.question(kAll, kStart).may_be_neighbours(2, 0));
  matrix.report({kA, kC, 1e6, 0.1, false}, kStart);
  QVERIFY(matrix.question(kAll, kStart).may_be_neighbours(0, 2));
  QVERIFY(!matrix.question(kAll, kStart).may_be_neighbours(1, 3));
  QVERIFY(matrix.question(kAll, kStart + LinkMatrix::kDeadFor + minutes(1)).may_be_neighbours(1, 3));
}

void LinkMatrixTest::a_dead_edge_is_probed_until_it_comes_back_once() {
  LinkMatrix matrix;
  for (const auto& [from, to] : {std::pair{kA, kB}, {kB, kA}}) matrix.report({from, to, 1e6, 0.1, false}, kStart);
  matrix.declare_dead(kA, kB, kStart);
  QVERIFY(matrix.worth_a_probe({kA, kB}, kStart + seconds(5)).empty());
  QCOMPARE(matrix.worth_a_probe({kA, kB}, kStart + seconds(10)).size(), std::size_t{1});
  // An edge that nobody knows comes first.
  QCOMPARE(matrix.worth_a_probe({kA, kB, kC}, kStart + seconds(10)).front().second, kC);

  matrix.report({kB, kA, 1e6, 0.1, false}, kStart + seconds(20));
  QVERIFY(matrix.question({kA, kB, kC, kD}, kStart + seconds(20)).may_be_neighbours(0, 1));

  // It answers probes, but carries no all-reduce: not tried again each round.
  matrix.declare_dead(kA, kB, kStart + seconds(30));
  QVERIFY(!matrix.question({kA, kB, kC, kD}, kStart + seconds(60)).may_be_neighbours(0, 1));
  QVERIFY(matrix.worth_a_probe({kA, kB}, kStart + seconds(60)).empty());
  QVERIFY(matrix.question(kAll, kStart + LinkMatrix::kDeadFor + minutes(1)).may_be_neighbours(0, 1));
}

void LinkMatrixTest::measurements_that_cannot_be_are_ignored() {
  LinkMatrix matrix;

  for (const double wrong : {0.0, -1.0, 1e15, std::nan(""), std::numeric_limits<double>::infinity()}) {
    matrix.report({kA, kB, wrong, 0.1, false}, kStart);
  }
  matrix.report({kA, kB, 1e6, -1, false}, kStart);
  matrix.report({kA, kB, 1e6, std::nan(""), false}, kStart);
  matrix.report({kA, kA, 1e6, 0.1, false}, kStart);

  QVERIFY(!matrix.knows(kAll, kStart));
}

void LinkMatrixTest::probes_go_to_what_is_unknown_and_touch_no_island_twice() {
  LinkMatrix matrix;
  for (const IslandId& from : kAll) {
    for (const IslandId& to : kAll) {
      if (from != to && !(from == kC && to == kB)) matrix.report({from, to, 1e6, 0.1, false}, kStart);
    }
  }
  using Edges = std::vector<std::pair<IslandId, IslandId>>;

  QCOMPARE(matrix.worth_a_probe(kAll, kStart), (Edges{{kC, kB}}));
  const Edges later = matrix.worth_a_probe(kAll, kStart + LinkMatrix::kProbeAfter);
  QCOMPARE(later, (Edges{{kC, kB}, {kA, kD}}));

  matrix.set_dialable(kC, false);  // nobody can fetch from it
  matrix.declare_dead(kA, kD, kStart);
  QCOMPARE(matrix.worth_a_probe({kA, kC, kD}, kStart + LinkMatrix::kProbeAfter), (Edges{{kA, kC}}));
}

// A direct exchange wants all to have met, within the time after which it is forgotten.
void LinkMatrixTest::twelve_islands_have_all_met_before_the_sixteenth_round() {
  std::vector<IslandId> islands;
  for (int i = 10; i < 22; ++i) islands.push_back(IslandId{std::to_string(i)});
  LinkMatrix matrix;
  const auto have_all_met = [&](Clock::time_point now) {
    return std::ranges::all_of(islands, [&](const IslandId& a) {
      return std::ranges::all_of(islands, [&](const IslandId& b) { return a == b || matrix.have_met(a, b, now); });
    });
  };
  int rounds = 0;
  while (rounds < 30 && !have_all_met(kStart + rounds * minutes(20))) {
    const Clock::time_point now = kStart + ++rounds * minutes(20);
    for (const auto& [from, to] : matrix.worth_a_probe(islands, now)) matrix.report({from, to, 1e6, 0.1, false}, now);
  }
  QVERIFY2(rounds < 16, std::to_string(rounds).c_str());
}

}  // namespace atl

QTEST_GUILESS_MAIN(atl::LinkMatrixTest)
#include "link_matrix_test.moc"
