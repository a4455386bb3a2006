// The attempts of a round to average: what an island tells of each, keeps for the next, and owes after the last.
#include "tests/trainer/island/round_loop_fixture.h"

using namespace atl;
using namespace atl::test;
using Fixture = RoundLoopFixture;

class RoundAttemptsTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void a_failed_attempt_names_the_peer_and_the_next_one_averages_the_same_gradient() {
    Fixture f;
    f.train_first_round();

    f.network.fail = true;
    f.must(f.loop.handle(f.attempt(0, 1)));
    QCOMPARE(f.network.last<IslandAttemptFailed>().peer->value, std::string("isl-0000000000000000"));
    f.network.fail = false;
    f.must(f.loop.handle(f.attempt(0, 2)));

    QCOMPARE(f.network.last<IslandHave>().attempt.value, 2u);
    f.must(f.loop.handle(f.commit(0, 2, f.network.last<IslandHave>().digest)));
    QCOMPARE(f.outer.version().value, 1u);
  }

  void buckets_that_are_whole_after_a_failure_are_told_and_stay_for_the_next_attempt() {
    Fixture f;
    f.train_first_round();
    f.network.fail = true;
    f.network.whole_buckets = {true, false, true};
    f.must(f.loop.handle(f.attempt(0, 1)));
    QCOMPARE(f.network.last<IslandAttemptFailed>().whole_buckets, f.network.whole_buckets);

    f.network.fail = false;
    HubAttempt next = f.attempt(0, 2);
    next.final_buckets = {true, false, false};  // another member held fewer
    f.must(f.loop.handle(next));

    QCOMPARE(f.network.final_buckets, next.final_buckets);
    QVERIFY(!f.network.found.empty());
    QVERIFY(std::ranges::all_of(f.network.found, [](std::byte b) { return b == FakeNetwork::kOfFailedAttempt; }));
    QCOMPARE(f.network.last<IslandHave>().attempt.value, 2u);
  }

  void an_attempt_that_fails_before_a_byte_moved_keeps_what_was_kept_before() {
    Fixture f;
    f.train_first_round();
    f.network.fail = true;
    f.network.whole_buckets = {true, false};
    f.must(f.loop.handle(f.attempt(0, 1)));
    f.network.whole_buckets.clear();  // no edge stood
    HubAttempt next = f.attempt(0, 2);
    next.final_buckets = {true, false};

    f.must(f.loop.handle(next));

    QCOMPARE(f.network.last<IslandAttemptFailed>().whole_buckets, next.final_buckets);
  }

  void buckets_that_are_not_held_are_not_averaged_around_data() {
    QTest::addColumn<std::vector<bool>>("kept");
    QTest::addColumn<std::uint32_t>("attempt");
    QTest::newRow("another bucket") << std::vector<bool>{false, true} << 2u;
    QTest::newRow("of another model") << std::vector<bool>{true} << 2u;
    QTest::newRow("of an attempt in between") << std::vector<bool>{true, false} << 3u;
  }
  void buckets_that_are_not_held_are_not_averaged_around() {
    QFETCH(std::vector<bool>, kept);
    QFETCH(std::uint32_t, attempt);
    Fixture f;
    f.train_first_round();
    f.network.fail = true;
    f.network.whole_buckets = {true, false};
    f.must(f.loop.handle(f.attempt(0, 1)));
    f.network.fail = false;
    HubAttempt next = f.attempt(0, attempt);
    next.final_buckets = kept;

    f.must(f.loop.handle(next));

    QCOMPARE(f.network.last<IslandAttemptFailed>().attempt.value, attempt);
    QVERIFY(f.network.last<IslandAttemptFailed>().whole_buckets.empty());
    QVERIFY(!f.network.last<IslandAttemptFailed>().peer.has_value());
  }

  void an_average_whose_attempt_is_aborted_is_told_as_whole_and_stays() {
    Fixture f;
    f.train_first_round();
    f.must(f.loop.handle(f.attempt(0, 1)));
    const std::string digest = f.network.last<IslandHave>().digest;

    f.must(f.loop.handle(HubAbort{OuterStep{0}, Attempt{1}, "isl-2 failed"}));

    QCOMPARE(f.network.last<IslandAttemptFailed>().whole_buckets, std::vector<bool>{true});
    HubAttempt next = f.attempt(0, 2);
    next.final_buckets = {true};
    f.must(f.loop.handle(next));
    QVERIFY(to_hex(sha256(f.network.found)) == digest);
  }

  void what_a_committed_round_lost_is_sent_with_the_next() {
    Fixture f(Fixture::int4_run());
    const auto all = [&](const std::vector<float>& values, float expected) {
      return values == std::vector<float>(static_cast<std::size_t>(f.engine->numel()), expected);
    };
    f.must(f.loop.handle(HubInitialise{}));
    f.network.loses = 0.5f;
    f.commit_round(0);
    QVERIFY(all(f.network.residual, 0.0f));

    f.network.loses = 0.25f;
    f.begin_round(1);
    f.train();
    f.must(f.loop.handle(f.attempt(1, 1)));
    QVERIFY(all(f.network.residual, 0.5f));
    f.must(f.loop.handle(HubAbort{OuterStep{1}, Attempt{1}, "isl-2 failed"}));
    f.must(f.loop.handle(f.attempt(1, 2)));

    QVERIFY(all(f.network.residual, 0.5f));     // not paid back by an attempt that came to nothing
    QVERIFY(all(f.network.found_lost, 0.25f));  // of buckets that stay, the attempt before has told it
    f.must(f.loop.handle(f.commit(1, 2, f.network.last<IslandHave>().digest)));
    f.commit_round(2);
    QVERIFY(all(f.network.residual, 0.25f));
  }

  void nothing_is_owed_after_a_recovery_nor_in_formats_that_lose_little() {
    Fixture f(Fixture::int4_run());
    f.must(f.loop.handle(HubInitialise{}));
    f.network.loses = 0.5f;
    f.commit_round(0);
    f.network.fetched = FetchedState{OuterStep{5}, f.network.initial, std::vector<float>(f.network.initial.size())};

    f.must(f.loop.handle(HubRecover{OuterStep{5}, "hash", {}}));
    f.commit_round(5);

    QVERIFY(f.network.residual == std::vector<float>(static_cast<std::size_t>(f.engine->numel()), 0.0f));
    Fixture whole;
    whole.must(whole.loop.handle(HubInitialise{}));
    whole.commit_round(0);
    QVERIFY(whole.network.residual.empty());
  }

  void an_average_is_taken_in_the_format_of_its_attempt() {
    Fixture f(Fixture::int4_run());
    Fixture same;
    for (Fixture* each : {&f, &same}) {
      each->network.initial.assign(each->network.initial.size(), 0.125f);
      each->must(each->loop.handle(HubInitialise{}));
      each->commit_round(0);
    }

    QCOMPARE(f.outer.version().value, 1u);
    QCOMPARE(f.outer.tree_hash(), same.outer.tree_hash());
  }

  void buckets_of_another_format_are_not_averaged_around() {
    Fixture f(Fixture::int4_run());
    f.train_first_round();
    f.network.fail = true;
    f.network.whole_buckets = {true, false};
    f.must(f.loop.handle(f.attempt(0, 1)));
    HubAttempt next = f.attempt(0, 2);
    next.wire = WireFormat::kInt8Block;
    next.final_buckets = {true, false};

    f.must(f.loop.handle(next));

    QVERIFY(f.network.last<IslandAttemptFailed>().whole_buckets.empty());
    QVERIFY(!f.network.last<IslandAttemptFailed>().peer.has_value());
  }

  void the_hub_is_told_how_fast_the_link_to_the_next_island_was() {
    Fixture f;
    f.train_first_round();
    f.network.bytes_sent = 64u << 20;
    f.network.bytes_retransmitted = 16u << 20;

    f.must(f.loop.handle(f.attempt(0, 1)));

    const auto& links = f.network.last<IslandLinkReport>().links;
    QCOMPARE(links.size(), std::size_t{1});
    QCOMPARE(links[0].peer.value, std::string("isl-0000000000000000"));
    QVERIFY(links[0].outgoing && !links[0].at_least);
    QCOMPARE(links[0].bytes_per_second, 1e6);
    QCOMPARE(links[0].rtt_seconds, 0.25);
    QCOMPARE(links[0].loss, std::optional(0.25));
    HubAttempt direct = f.attempt(0, 2);
    direct.schedule = Schedule::kDirect;
    f.must(f.loop.handle(direct));
    QVERIFY(!f.network.last<IslandLinkReport>().links[0].loss);  // of a queue of its own, as like as not
  }

  void who_dials_an_edge_is_told_to_the_ring() {
    Fixture f;
    f.train_first_round();
    HubAttempt attempt = f.attempt(0, 1);
    attempt.order.back().dials_previous = true;

    f.must(f.loop.handle(attempt));

    QVERIFY(f.network.dials_previous);
    f.network.last<IslandHave>();  // and no report of a link over which nearly nothing went
  }

  void an_attempt_goes_the_way_that_the_hub_chose_and_the_next_goes_on_from_it_the_other() {
    Fixture f;
    f.train_first_round();
    f.network.fail = true;
    f.network.whole_buckets = {true, false};
    HubAttempt attempt = f.attempt(0, 1);
    attempt.schedule = Schedule::kDirect;
    f.must(f.loop.handle(attempt));
    f.network.fail = false;
    HubAttempt next = f.attempt(0, 2);
    next.final_buckets = {true, false};

    f.must(f.loop.handle(next));

    QCOMPARE(f.network.specs[0].schedule, Schedule::kDirect);
    QCOMPARE(f.network.specs[1].schedule, Schedule::kRing);
    QCOMPARE(f.network.specs[1].final_buckets, next.final_buckets);
    QCOMPARE(f.network.last<IslandHave>().attempt.value, 2u);
  }

  void a_commit_of_an_average_that_is_not_held_is_never_applied() {
    Fixture f;
    f.train_first_round();
    f.must(f.loop.handle(f.attempt(0, 1)));

    f.must(f.loop.handle(f.commit(0, 1, std::string(64, '0'))));

    QCOMPARE(f.network.last<IslandAttemptFailed>().attempt.value, 1u);
    QCOMPARE(f.outer.version().value, 0u);
  }

  void an_abort_drops_the_average_of_its_attempt() {
    Fixture f;
    f.train_first_round();
    f.must(f.loop.handle(f.attempt(0, 1)));
    const std::string digest = f.network.last<IslandHave>().digest;

    f.must(f.loop.handle(HubAbort{OuterStep{0}, Attempt{1}, "isl-2 is gone"}));

    f.must(f.loop.handle(f.commit(0, 1, digest)));

    QCOMPARE(f.network.last<IslandAttemptFailed>().round.value, 0u);
    QCOMPARE(f.outer.version().value, 0u);
  }
};

QTEST_GUILESS_MAIN(RoundAttemptsTest)
#include "round_attempts_test.moc"
