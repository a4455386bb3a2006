#include "net/collective/connection_tuner.h"

#include <QtTest>
#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "net/base/link_window.h"

using namespace atl;

namespace {

constexpr double kLong = 10 * ConnectionTuner::kRoundTripsThatTell;  // round trips

// The number chosen most often in the last attempts of many, on a link of this goodput.
int settles_at(ConnectionTuner& tuner, const std::function<double(int)>& goodput) {
  std::map<int, int> times;
  for (int attempt = 0; attempt < 80; ++attempt) {
    const int connections = tuner.connections();
    if (attempt >= 40) ++times[connections];
    tuner.measured(connections, goodput(connections), kLong);
  }
  return std::ranges::max_element(times, {}, [](const auto& entry) { return entry.second; })->first;
}

}  // namespace

class ConnectionTunerTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void it_finds_the_top_of_the_hill_data();
  void it_finds_the_top_of_the_hill();
  void it_never_leaves_its_bounds();
  void fragments_share_the_connections_of_an_edge_data();
  void fragments_share_the_connections_of_an_edge();
  void noise_below_the_gain_that_counts_moves_nothing();
  void it_follows_a_link_that_changes();
  void attempts_with_another_number_tell_nothing();
  void connections_hold_what_is_under_way_data();
  void connections_hold_what_is_under_way();
  void half_of_the_connections_hold_it_in_the_buffers_that_the_node_check_wants();
  void it_does_not_go_below_what_the_link_needs();
  void short_attempts_make_no_new_connections_but_those_that_are_needed();
  void it_may_begin_with_a_guess_until_the_link_is_known_data();
  void it_may_begin_with_a_guess_until_the_link_is_known();
  void a_later_guess_takes_the_place_of_the_one_before();
  void once_the_link_is_known_a_guess_changes_nothing();
};

void ConnectionTunerTest::connections_hold_what_is_under_way_data() {
  QTest::addColumn<double>("mbit");
  QTest::addColumn<double>("milliseconds");
  QTest::addColumn<bool>("lossy");
  QTest::addColumn<int>("needed");
  QTest::newRow("nothing known") << 0.0 << 0.0 << false << 1;
  QTest::newRow("near") << 1000.0 << 5.0 << false << 1;
  QTest::newRow("a continent") << 500.0 << 80.0 << false << 2;
  QTest::newRow("an ocean") << 800.0 << 200.0 << false << 8;
  QTest::newRow("with losses") << 800.0 << 200.0 << true << 16;
  QTest::newRow("beyond what an edge may have") << 1e6 << 1000.0 << true << 16;
}

void ConnectionTunerTest::connections_hold_what_is_under_way() {
  QFETCH(double, mbit);
  QFETCH(double, milliseconds);
  QFETCH(bool, lossy);
  QFETCH(int, needed);
  constexpr double kWindow = 3 << 20;

  QCOMPARE(connections_needed(mbit * 1e6 / 8, milliseconds / 1000, kWindow, lossy), needed);
}

// The two count alike: tests/net/check/judged_cases.h has this link, too.
void ConnectionTunerTest::half_of_the_connections_hold_it_in_the_buffers_that_the_node_check_wants() {
  const double rate = 400e6, rtt = 0.1;
  const double buffer = buffer_of_window(bytes_under_way(rate, rtt, /*lossy=*/false) / 8);

  QCOMPARE(buffer, 8e6);
  QCOMPARE(connections_needed(rate, rtt, window_of_buffer(buffer), /*lossy=*/false), 8);
  QCOMPARE(connections_needed(rate, rtt, window_of_buffer(0.99 * buffer), /*lossy=*/false), 9);
}

void ConnectionTunerTest::it_does_not_go_below_what_the_link_needs() {
  for (const int most : {16, 4}) {
    ConnectionTuner tuner(most);
    const auto equal = [](int) { return 1e8; };  // of a link that is full with any number
    tuner.needs(7);
    QCOMPARE(tuner.connections(), std::min(8, most));
    QCOMPARE(settles_at(tuner, equal), std::min(8, most));
    for (int attempt = 0; attempt < 50; ++attempt) {
      QVERIFY(tuner.connections() >= std::min(8, most));
      tuner.measured(tuner.connections(), 1e8, kLong);
    }
    tuner.needs(1);
    QCOMPARE(settles_at(tuner, [](int k) { return 1e9 / k; }), 2);  // where fewer are faster
  }
}

void ConnectionTunerTest::it_finds_the_top_of_the_hill_data() {
  QTest::addColumn<int>("top");
  for (const int top : ConnectionTuner::kSteps) QTest::addRow("%d", top) << top;
}

void ConnectionTunerTest::it_finds_the_top_of_the_hill() {
  QFETCH(int, top);
  ConnectionTuner tuner;

  const int settled =
      settles_at(tuner, [top](int k) { return 1e8 * std::min<double>(k, top) * top / std::max(k, top); });

  QCOMPARE(settled, top);
}

void ConnectionTunerTest::it_never_leaves_its_bounds() {
  for (const double sign : {1.0, -1.0}) {
    ConnectionTuner tuner;
    for (int attempt = 0; attempt < 200; ++attempt) {
      const int connections = tuner.connections();
      QVERIFY(connections >= 2 && connections <= 16);
      tuner.measured(connections, std::pow(connections, sign), kLong);
    }
  }
}

void ConnectionTunerTest::fragments_share_the_connections_of_an_edge_data() {
  QTest::addColumn<int>("fragments");
  QTest::addColumn<int>("most");
  QTest::newRow("1") << 1 << 16;
  QTest::newRow("2") << 2 << 8;
  QTest::newRow("3") << 3 << 4;  // 5 is none of its steps
  QTest::newRow("4") << 4 << 4;
}

void ConnectionTunerTest::fragments_share_the_connections_of_an_edge() {
  QFETCH(const int, fragments);
  QFETCH(const int, most);
  ConnectionTuner tuner(most_connections_per_edge(fragments));
  for (int attempt = 0; attempt < 200; ++attempt) {
    QVERIFY(tuner.connections() * fragments <= kMaxConnectionsPerEdge);
    tuner.measured(tuner.connections(), 1e8 * tuner.connections(), kLong);
  }

  QCOMPARE(settles_at(tuner, [](int k) { return 1e8 * k; }), most);
}

void ConnectionTunerTest::noise_below_the_gain_that_counts_moves_nothing() {
  ConnectionTuner tuner;
  const int first = tuner.connections();
  int attempt = 0;

  const int settled = settles_at(tuner, [&attempt](int) { return 1e8 * (1 + 0.02 * (attempt++ % 3 - 1)); });

  QCOMPARE(settled, first);
}

void ConnectionTunerTest::it_follows_a_link_that_changes() {
  ConnectionTuner tuner;
  QCOMPARE(settles_at(tuner, [](int k) { return 1e8 / k; }), 2);

  QCOMPARE(settles_at(tuner, [](int k) { return 1e8 * k; }), 16);
}

void ConnectionTunerTest::attempts_with_another_number_tell_nothing() {
  ConnectionTuner tuner;
  const int connections = tuner.connections();

  for (int i = 0; i < 20; ++i) tuner.measured(connections + 1, 1e12, kLong);

  QCOMPARE(tuner.connections(), connections);
}

void ConnectionTunerTest::short_attempts_make_no_new_connections_but_those_that_are_needed() {
  ConnectionTuner tuner;
  tuner.needs(8);
  for (int attempt = 0; attempt < 30; ++attempt) {
    QCOMPARE(tuner.connections(), 8);
    tuner.measured(tuner.connections(), 1e6, ConnectionTuner::kRoundTripsThatTell - 1);
  }
  tuner.measured(tuner.connections(), 1e6, ConnectionTuner::kRoundTripsThatTell);

  QCOMPARE(tuner.connections(), 12);
}

void ConnectionTunerTest::it_may_begin_with_a_guess_until_the_link_is_known_data() {
  QTest::addColumn<int>("most");
  QTest::addColumn<int>("guess");
  QTest::addColumn<int>("begins");
  QTest::addColumn<int>("needs");
  QTest::addColumn<int>("then");
  QTest::newRow("fewer than it has anyway") << 16 << 1 << 4 << 1 << 4;
  QTest::newRow("the link needs fewer") << 16 << 12 << 12 << 1 << 4;
  QTest::newRow("the link needs fewer, but more than one has anyway") << 16 << 12 << 12 << 6 << 6;
  QTest::newRow("the link needs as many") << 16 << 7 << 8 << 8 << 8;
  QTest::newRow("the link needs more") << 16 << 8 << 8 << 16 << 16;
  QTest::newRow("no more than two fragments may have") << most_connections_per_edge(2) << 16 << 8 << 16 << 8;
  QTest::newRow("no more than three fragments may have") << most_connections_per_edge(3) << 16 << 4 << 16 << 4;
  QTest::newRow("no more than four fragments may have") << most_connections_per_edge(4) << 16 << 4 << 16 << 4;
}

void ConnectionTunerTest::it_may_begin_with_a_guess_until_the_link_is_known() {
  QFETCH(const int, most);
  QFETCH(const int, guess);
  QFETCH(const int, begins);
  QFETCH(const int, needs);
  QFETCH(const int, then);
  ConnectionTuner tuner(most);

  tuner.begins_with(guess);
  QCOMPARE(tuner.connections(), begins);
  tuner.needs(needs);

  QCOMPARE(tuner.connections(), then);
}

void ConnectionTunerTest::a_later_guess_takes_the_place_of_the_one_before() {
  ConnectionTuner tuner;

  tuner.begins_with(16);
  tuner.begins_with(6);
  QCOMPARE(tuner.connections(), 6);
  tuner.begins_with(12);
  QCOMPARE(tuner.connections(), 12);
}

void ConnectionTunerTest::once_the_link_is_known_a_guess_changes_nothing() {
  ConnectionTuner tuner;
  tuner.needs(6);

  for (const int guess : {16, 1}) {
    tuner.begins_with(guess);
    QCOMPARE(tuner.connections(), 6);
  }
  tuner.measured(6, 1e8, kLong);  // the first that rests, or probes
  const int probes = tuner.connections();
  tuner.begins_with(16);

  QCOMPARE(tuner.connections(), probes);
  QCOMPARE(probes, 8);
}

QTEST_APPLESS_MAIN(ConnectionTunerTest)
#include "connection_tuner_test.moc"
