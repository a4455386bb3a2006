// How long an edge may be silent, by what it was like: each trace is of gaps between arrivals, as a monitor's looks see
// them.
#include "net/collective/silence_limit.h"

#include <QtTest>
#include <algorithm>

#include "net/collective/edge_monitor.h"

using namespace atl;
using namespace std::chrono_literals;

namespace {

using Milliseconds = std::chrono::milliseconds;

const Clock::time_point kStart = Clock::time_point(100h);
constexpr Milliseconds kTimeout{6'000};
constexpr Milliseconds kLook{50};

struct Watched {
  explicit Watched(Milliseconds timeout = kTimeout, Milliseconds round_trip = 0ms) : rtt(round_trip) {
    limit.begin(timeout, now);
  }

  // After so long something comes. False: it was lost before.
  bool hears_after(Milliseconds gap) {
    bool lives = true;
    for (const auto end = now + gap; now < end;) {
      now += std::min<Clock::duration>(kLook, end - now);
      limit.look(now, now == end);
      lives = lives && !limit.exceeded(now, rtt);
    }
    return lives;
  }
  bool hears(Clock::duration time, Milliseconds gap) {
    bool lives = true;
    for (const auto end = now + time; now < end;) lives = hears_after(gap) && lives;
    return lives;
  }
  Milliseconds until_lost() {
    SilenceLimit stopped = limit;
    auto then = now;
    while (!stopped.exceeded(then, rtt)) stopped.look(then += kLook, false);
    return std::chrono::duration_cast<Milliseconds>(then - now);
  }
  bool lost_after(Milliseconds time) { return until_lost() > time && until_lost() <= time + 2 * kLook; }
  void begin_attempt() { limit.begin(kTimeout, now); }

  SilenceLimit limit;
  Clock::time_point now = kStart;
  Milliseconds rtt;
};

constexpr Milliseconds kKeepalive = kTimeout / SilenceLimit::kLongestLook + kLook;

// One that had nothing to say for minutes but that it lives.
Watched never_paused(Milliseconds round_trip = 0ms) {
  Watched edge(kTimeout, round_trip);
  edge.hears(2min, kKeepalive);
  return edge;
}

}  // namespace

class SilenceLimitTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void of_whom_little_is_known_the_whole_timeout_is_waited() {
    Watched edge;
    QVERIFY(edge.lost_after(kTimeout));

    edge.hears(kTimeout / 2, 50ms);

    QVERIFY(edge.lost_after(kTimeout));
  }

  void an_edge_that_never_paused_is_lost_after_half_of_it() {
    QVERIFY(never_paused().lost_after(kTimeout / 2));
    QVERIFY(never_paused(300ms).lost_after(kTimeout / 2));
  }

  void keepalives_alone_are_no_gaps_data() {
    QTest::addColumn<int>("timeout");
    for (const int timeout : {4'000, 6'000, 20'000, 60'000}) {
      QTest::newRow(std::to_string(timeout).c_str()) << timeout;
    }
  }
  void keepalives_alone_are_no_gaps() {
    QFETCH(int, timeout);
    const Milliseconds whole(timeout);
    Watched edge(whole);

    QVERIFY(edge.hears(10 * whole, keepalive_interval(whole) + kLook));

    QVERIFY(edge.lost_after(whole / 2));
  }

  void what_an_attempt_has_seen_serves_the_next_one_when_that_has_begun_well() {
    Watched edge = never_paused();
    edge.begin_attempt();
    QVERIFY(edge.lost_after(kTimeout));

    QVERIFY(edge.hears(kTimeout / 3, kKeepalive));

    QVERIFY(edge.lost_after(kTimeout / 2));
  }

  void where_some_attempts_have_begun_the_first_arrival_of_one_is_enough() {
    Watched edge = never_paused();
    for (std::uint64_t i = 1; i < SilenceLimit::kFewestBeginnings; ++i) {
      edge.begin_attempt();
      QVERIFY(edge.hears_after(50ms));
      QVERIFY(edge.lost_after(kTimeout));
      QVERIFY(edge.hears(kTimeout / 3, kKeepalive));
    }

    edge.begin_attempt();
    QVERIFY(edge.lost_after(kTimeout));
    QVERIFY(edge.hears_after(50ms));

    QVERIFY(edge.lost_after(kTimeout / 2));
  }

  // Each attempt lasts for longer than the edge's gaps are remembered, and its peer stands still at first.
  void who_pauses_when_attempts_begin_is_given_the_time_when_the_next_one_does() {
    Watched edge;
    for (int attempt = 0; attempt < 10; ++attempt) {
      edge.begin_attempt();
      QVERIFY(edge.hears_after(50ms));
      QVERIFY(edge.hears_after(2s));
      QVERIFY(edge.hears(3 * SilenceLimit::kMemory * kTimeout, 50ms));
      QVERIFY(edge.lost_after(kTimeout / 2));
    }

    edge.begin_attempt();
    QVERIFY(edge.hears_after(50ms));

    QVERIFY(edge.lost_after(kTimeout));
    QVERIFY(edge.hears_after(5s));
  }

  void that_one_attempt_began_badly_is_forgotten_after_many() {
    Watched edge = never_paused();
    edge.begin_attempt();
    QVERIFY(edge.hears_after(50ms));
    QVERIFY(edge.hears_after(5s));
    QVERIFY(edge.hears(3 * SilenceLimit::kMemory * kTimeout, 50ms));
    for (int attempt = 0; attempt < 2 * SilenceLimit::kMemory; ++attempt) {
      edge.begin_attempt();
      QVERIFY(edge.hears(2s, 50ms));
    }

    edge.begin_attempt();
    QVERIFY(edge.hears_after(50ms));

    QVERIFY(edge.lost_after(kTimeout / 2));
  }

  void what_comes_late_at_first_is_no_gap_of_the_edges() {
    Watched edge = never_paused();
    edge.begin_attempt();

    QVERIFY(edge.hears_after(5s));
    QVERIFY(edge.hears(kTimeout / 3, kKeepalive));

    QVERIFY(edge.lost_after(kTimeout / 2));
  }

  // The rate falls to a hundredth for 20 s: of a link of 1 Mbit/s, a packet comes in 1.2 s.
  void a_trickle_is_no_death_and_is_remembered_for_minutes() {
    Watched edge = never_paused();

    QVERIFY(edge.hears(20s, 1'200ms));

    QVERIFY(edge.lost_after(kTimeout));
    QVERIFY(edge.hears(SilenceLimit::kMemory * kTimeout / 2, 50ms));
    QVERIFY(edge.lost_after(kTimeout));
    QVERIFY(edge.hears(2 * SilenceLimit::kMemory * kTimeout, 50ms));
    QVERIFY(edge.lost_after(kTimeout / 2));
  }

  void retransmissions_that_back_off_are_waited_for() {
    Watched edge = never_paused(300ms), other = edge;
    for (const Milliseconds gap : {1'000ms, 2'000ms, 4'000ms}) QVERIFY(edge.hears_after(gap));
    // Of a first packet and of its retransmission after 650 ms; the next comes after twice as long.
    QVERIFY(other.hears_after(650ms + 1'300ms + 300ms));
  }

  void on_a_long_way_two_retransmissions_may_be_lost() {
    Watched edge = never_paused(600ms);
    QVERIFY(edge.hears_after(3 * 1'100ms + 300ms));
  }

  // It swaps, or a disk or a GPU lets it wait: nothing tells that from a stopped process.
  void a_peer_that_stops_once_for_longer_than_half_is_lost_and_for_less_is_given_more_time() {
    Watched edge = never_paused();
    QVERIFY(!never_paused().hears_after(5'000ms));

    QVERIFY(edge.hears_after(2'500ms));

    QVERIFY(edge.lost_after(kTimeout));
    QVERIFY(edge.hears_after(5'000ms));
  }

  void who_slept_itself_blames_nobody() {
    Watched edge = never_paused();
    // Something came meanwhile.
    edge.limit.look(edge.now += 10min, true);
    QVERIFY(edge.lost_after(kTimeout / 2));
    // Nothing came, for its whole machine stood still.
    edge.limit.look(edge.now += 5s, false);
    QVERIFY(!edge.limit.exceeded(edge.now, edge.rtt));
    QVERIFY(edge.limit.exceeded(edge.now + kTimeout, edge.rtt));
  }

  void what_may_have_been_this_ends_own_fault_is_no_gap_of_the_peers() {
    Watched cut_off = never_paused(), other = cut_off;
    for (auto silence = 0ms; silence < 5s; silence += kLook) {
      // That the link is gone is known when nothing was acknowledged for a while, and no longer when it is back.
      cut_off.limit.look(cut_off.now += kLook, /*arrived=*/false, /*at_fault=*/silence > 1s);
      other.limit.look(other.now += kLook, /*arrived=*/false);
    }
    QVERIFY(cut_off.limit.exceeded(cut_off.now, cut_off.rtt));

    cut_off.limit.look(cut_off.now, /*arrived=*/true);
    other.limit.look(other.now, /*arrived=*/true);

    QVERIFY(cut_off.lost_after(kTimeout / 2));
    QVERIFY(other.lost_after(kTimeout));
    // It is that silence's alone.
    QVERIFY(cut_off.hears_after(2s));
    QVERIFY(cut_off.lost_after(kTimeout));
  }

  void that_this_ends_link_was_gone_for_a_moment_explains_no_long_silence() {
    Watched edge = never_paused();
    for (auto silence = 0ms; silence < 2s; silence += kLook) edge.limit.look(edge.now += kLook, false, silence < 800ms);
    edge.limit.look(edge.now, true);

    QVERIFY(edge.lost_after(kTimeout));
  }

  void what_the_owner_holds_back_is_no_silence() {
    Watched edge = never_paused();
    for (int i = 0; i < 10'000; ++i) {
      edge.limit.excuse(edge.now += kLook);
      QVERIFY(!edge.limit.exceeded(edge.now, edge.rtt));
    }
    QVERIFY(edge.lost_after(kTimeout / 2));
  }

  void a_liar_that_makes_gaps_gains_no_more_than_the_timeout() {
    Watched edge;
    QVERIFY(edge.hears(10min, kTimeout - kLook));

    QVERIFY(edge.lost_after(kTimeout));
    QVERIFY(never_paused(1h).lost_after(kTimeout));
  }

  void a_short_timeout_is_not_halved() {
    for (const Milliseconds timeout : {1'000ms, 2'000ms, 3'000ms}) {
      Watched edge(timeout);
      QVERIFY(edge.hears(1min, 50ms));

      QVERIFY(edge.lost_after(std::min<Milliseconds>(timeout, SilenceLimit::kShortest)));
    }
  }

  void who_is_silent_for_half_of_what_is_allowed_is_suspect() {
    Watched edge = never_paused();
    for (Milliseconds silence = 0ms; silence < kTimeout / 4; silence += kLook) {
      QVERIFY(!edge.limit.is_suspect(edge.now, edge.rtt));
      edge.limit.look(edge.now += kLook, false);
    }

    edge.limit.look(edge.now += kLook, false);

    QVERIFY(edge.limit.is_suspect(edge.now, edge.rtt));
    QVERIFY(!edge.limit.exceeded(edge.now, edge.rtt));
  }
};

QTEST_APPLESS_MAIN(SilenceLimitTest)
#include "silence_limit_test.moc"
