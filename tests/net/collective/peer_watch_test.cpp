// Who is held to be lost, or to stall, in a direct exchange, and who is not.
#include "net/collective/peer_watch.h"

#include <QtTest>

#include "net/collective/attempt_context.h"

using namespace atl;
using namespace std::chrono_literals;

namespace {

const Clock::time_point kStart = Clock::time_point(100h);
constexpr std::chrono::milliseconds kTimeout{6'000};
constexpr std::chrono::milliseconds kTick{50};

// One that owes data and has all that it is to have.
PeerWatch::Facts owing() { return {.owes = true, .is_read = true}; }

struct Watched {
  PeerSilence silence;
  PeerWatch watch{IslandId{"isl-1"}, kTimeout, silence, kStart};
  Clock::time_point now = kStart;

  // What it says first, if it says something, in so much time in which `facts` tells of each moment.
  template <class FactsAt>
  std::optional<AllReduceFailure> pass(std::chrono::milliseconds time, FactsAt facts) {
    for (const auto end = now + time; now < end;) {
      now += kTick;
      if (auto failure = watch.look(facts(now - kStart), now, false)) return failure;
    }
    return std::nullopt;
  }
};

// What the kernel counts of keepalives, one a second.
TcpProgress keepalives(Clock::duration since_start) {
  return {.bytes_received = static_cast<std::uint64_t>(since_start / 1s) * 32};
}

PeerWatch::Facts stopped_after_a_minute(Clock::duration since) {
  PeerWatch::Facts facts = owing();
  facts.data = static_cast<std::uint64_t>(std::min<Clock::duration>(since, 1min) / kTick);
  facts.tcp.bytes_received = facts.data;
  return facts;
}

}  // namespace

class PeerWatchTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void who_owes_and_says_nothing_is_silent() {
    Watched watched;

    const auto failure = watched.pass(1min, [](auto) { return owing(); });

    QVERIFY(failure && failure->silent);
    QCOMPARE(failure->peer->value, std::string("isl-1"));
    QVERIFY(watched.now - kStart <= kTimeout + 2 * kTick);
  }

  void who_stops_on_an_edge_that_never_paused_is_missed_after_half_as_long() {
    Watched watched;

    const auto failure = watched.pass(2min, stopped_after_a_minute);

    QVERIFY(failure && failure->silent);
    QVERIFY(watched.now - kStart > 1min + kTimeout / 2);
    QVERIFY(watched.now - kStart < 1min + kTimeout * 2 / 3);
  }

  // It may have kept its connection warm, and yet have to begin.
  void what_comes_before_its_hello_tells_nothing_of_how_it_does_in_the_attempt() {
    PeerSilence silence;
    auto now = kStart;
    // Attempts until its first word is enough, and two more: it stops after that word, which is its hello in one.
    for (int attempt = 0; attempt < 5; ++attempt) {
      PeerWatch watch(IslandId{"isl-1"}, kTimeout, silence, now);
      PeerWatch::Facts facts = owing();
      std::optional<AllReduceFailure> failure;
      const auto began = now;
      const auto goes_on_for = attempt < 3 ? 10s : 0s;
      facts.awaits_hello = attempt == 4;
      while (!failure && now - began < goes_on_for + 1min) {
        facts.tcp.bytes_received += now - began < goes_on_for + 2 * kTick ? 1 : 0;
        now += kTick;
        failure = watch.look(facts, now, false);
      }
      QVERIFY(failure && failure->silent);
      const auto limit = attempt == 4 ? kTimeout : kTimeout / 2;
      QVERIFY(now - began > goes_on_for + limit);
      QVERIFY(now - began < goes_on_for + limit + 1s);
    }
  }

  void who_stops_while_nothing_comes_through_to_others_either_has_all_the_time() {
    Watched watched;

    const auto failure = watched.pass(2min, [](auto since) {
      PeerWatch::Facts facts = stopped_after_a_minute(since);
      facts.others_lost_all = since > 1min + kTimeout / 3;
      return facts;
    });

    QVERIFY(failure && failure->silent);
    QVERIFY(watched.now - kStart > 1min + kTimeout);
    QVERIFY(watched.now - kStart < 1min + kTimeout + 4 * kTick);
  }

  void who_was_not_heard_while_nothing_came_through_to_others_either_is_missed_as_soon_as_before() {
    Watched watched;
    // Nothing comes for nearly the timeout, twice; the second time it is the peer alone.
    const auto at = [](Clock::duration since) {
      PeerWatch::Facts facts = owing();
      const auto back = 1min + kTimeout - 1s;
      const auto after = std::clamp<Clock::duration>(since - back, 0s, 10s);
      facts.data = static_cast<std::uint64_t>((std::min<Clock::duration>(since, 1min) + after) / kTick);
      facts.tcp.bytes_received = facts.data;
      facts.others_lost_all = since > 1min + kTimeout / 3 && since <= back;
      return facts;
    };

    const auto failure = watched.pass(3min, at);

    QVERIFY(failure && failure->silent);
    const auto stopped_at = 1min + kTimeout - 1s + 10s;
    QVERIFY(watched.now - kStart > stopped_at + kTimeout / 2);
    QVERIFY(watched.now - kStart < stopped_at + kTimeout * 2 / 3);
  }

  void what_comes_twice_or_out_of_order_is_heard() {
    Watched watched;
    QVERIFY(!watched.pass(kStallTimeouts * kTimeout - 1s, [](auto since) {
      PeerWatch::Facts facts = owing();
      facts.tcp.segments_received = static_cast<std::uint64_t>(since / 1s);
      return facts;
    }));
  }

  void who_owes_nothing_may_be_silent() {
    Watched watched;
    QVERIFY(!watched.pass(10min, [](auto) { return PeerWatch::Facts{.is_read = true, .is_owed = true}; }));
  }

  void who_is_not_read_is_not_silent_and_stalls_nobody() {
    Watched watched;
    const auto not_read = [](auto) { return PeerWatch::Facts{.owes = true, .is_read = false}; };

    QVERIFY(!watched.pass(10min, not_read));
    // From when it is read again it has as much time as at first.
    QVERIFY(!watched.pass(kTimeout, [](auto) { return owing(); }));
    QVERIFY(watched.pass(kTimeout, [](auto) { return owing(); }));
  }

  void who_sends_keepalives_alone_stalls() {
    Watched watched;

    const auto failure = watched.pass(1min, [](auto since) {
      PeerWatch::Facts facts = owing();
      facts.data = 77;
      facts.tcp = keepalives(since);
      return facts;
    });

    QVERIFY(failure && !failure->silent);
    QCOMPARE(failure->stalled_after, std::optional<std::uint64_t>(77));
    QVERIFY(watched.now - kStart >= kStallTimeouts * kTimeout);
    QVERIFY(watched.now - kStart <= kStallTimeouts * kTimeout + 4 * kTick);
  }

  void who_waits_itself_is_waited_for_as_long_as_it_says_but_not_for_ever() {
    Watched watched;

    const auto failure = watched.pass(10min, [&](auto since) {
      watched.watch.vouch(17s, watched.now);
      PeerWatch::Facts facts = owing();
      facts.tcp = keepalives(since);
      return facts;
    });

    QVERIFY(failure && failure->stalled_after);
    QVERIFY(watched.now - kStart >= kLongestStall * kTimeout);
  }

  void a_promise_is_believed_no_longer_than_one_would_wait_by_oneself() {
    Watched watched;

    watched.watch.vouch(24h, kStart + 1s);

    QCOMPARE(watched.watch.waits_until(), kStart + 1s + kStallTimeouts * kTimeout);
  }

  void a_byte_of_data_now_and_then_is_enough() {
    Watched watched;
    QVERIFY(!watched.pass(10min, [](auto since) {
      PeerWatch::Facts facts = owing();
      facts.data = static_cast<std::uint64_t>(since / 5s);
      facts.tcp.bytes_received = facts.data;
      return facts;
    }));
  }

  void who_has_done_its_part_and_takes_nothing_is_silent() {
    Watched watched;
    PeerWatch::Facts stuck{.is_read = true, .is_owed = true};
    stuck.tcp.bytes_queued = 1'000'000;

    const auto failure = watched.pass(1min, [&](auto) { return stuck; });

    QVERIFY(failure && failure->silent);
    QVERIFY(failure->error.message.find("took nothing") != std::string::npos);
  }

  // It may have no room for what this member contributes, as long as another's lacks.
  void who_owes_and_takes_nothing_may_wait_for_others() {
    Watched watched;
    QVERIFY(!watched.pass(kStallTimeouts * kTimeout - 1s, [](auto since) {
      PeerWatch::Facts stuck{.owes = true, .is_read = true, .is_owed = true};
      stuck.tcp = keepalives(since);
      stuck.tcp.bytes_queued = 1'000'000;
      return stuck;
    }));
  }

  void a_member_that_slept_blames_nobody_for_it() {
    Watched watched;
    PeerWatch::Facts facts = owing();
    facts.tcp.bytes_received = 1;  // that came meanwhile, and lie in the kernel

    QVERIFY(!watched.watch.look(facts, kStart + 1h, true));
  }

  void at_anothers_end_it_says_of_whom_it_heard_nothing_for_half_as_long() {
    Watched watched;
    QVERIFY(!watched.pass(kTimeout / 2, [](auto) { return owing(); }));
    QVERIFY(!watched.watch.suspicion(watched.now));
    QVERIFY(!watched.pass(1s, [](auto) { return owing(); }));

    const auto suspicion = watched.watch.suspicion(watched.now);

    QVERIFY(suspicion && suspicion->failure.silent);
    QCOMPARE(suspicion->failure.peer->value, std::string("isl-1"));
  }

  void keepalives_are_due_to_whom_something_is_owed_and_nothing_was_said() {
    Watched watched;
    PeerWatch::Facts owed{.owes = true, .is_read = true, .is_owed = true};
    QVERIFY(!watched.watch.look(owed, kStart, false));

    QVERIFY(!watched.watch.keepalive_due(kStart + 450ms));
    QVERIFY(watched.watch.keepalive_due(kStart + 500ms));
    watched.watch.spoke(kStart + 500ms);
    QVERIFY(!watched.watch.keepalive_due(kStart + 900ms));
    owed.is_owed = false;
    QVERIFY(!watched.watch.look(owed, kStart + 2s, false));
    QVERIFY(!watched.watch.keepalive_due(kStart + 5s));
  }
};

QTEST_APPLESS_MAIN(PeerWatchTest)
#include "peer_watch_test.moc"
