// Rounds of several fragments: the next is trained while those before are averaged.
#include "tests/trainer/island/round_loop_fixture.h"

using namespace atl;
using namespace atl::test;
using Fixture = RoundLoopFixture;

namespace {

constexpr float kOuterRate = 0.7f, kOuterMomentum = 0.9f;  // as the fixture's commits say

std::vector<float> values_of(const std::vector<float>& whole, const std::vector<ParameterRange>& ranges) {
  std::vector<float> values;
  for (const ParameterRange& range : ranges) {
    values.insert(values.end(), whole.begin() + range.offset, whole.begin() + range.offset + range.numel);
  }
  return values;
}

// DiLoCo of one island as its papers say it, one thing after the other on whole vectors: rounds of kInnerSteps; round k
// averages fragment k mod F, and with more than one fragment that comes back after the first step of round k + 1.
struct PlainDiloco {
  PlainDiloco(std::uint32_t fragments, const std::vector<float>& initial)
      : engine(std::move(*Engine::create(tiny_model(), {}))),
        parts(*fragments_of(canonical_layout(tiny_model()), fragments)),
        theta(initial),
        velocity(initial.size()) {
    engine->write_parameters(initial);
  }
  void step(std::uint32_t round, std::uint32_t number) {
    const RunConfig& run = Fixture::run_config();
    const auto batch = batches.train_batch(OuterStep{round}, number, {});
    const std::int64_t at = std::int64_t{round} * kInnerSteps + number;
    QVERIFY(engine->train_step(*batch, static_cast<float>(learning_rate_at(schedule_of(run.inner), at, 1))).ok());
  }
  std::vector<float> local() const {
    std::vector<float> values(theta.size());
    engine->read_parameters(values);
    return values;
  }
  void outer_step(std::uint32_t round, const std::vector<float>& then) {
    std::vector<float> now = local();
    for (const ParameterRange& range : parts[round % parts.size()].ranges) {
      for (auto i = static_cast<std::size_t>(range.offset); i < static_cast<std::size_t>(range.offset + range.numel);
           ++i) {
        const float d = theta[i] - then[i];
        velocity[i] = kOuterMomentum * velocity[i] + d;
        theta[i] = theta[i] - kOuterRate * (d + kOuterMomentum * velocity[i]);
        now[i] = theta[i];
      }
    }
    engine->write_parameters(now);
  }
  void run(std::uint32_t rounds) {
    std::optional<std::vector<float>> under_way;
    for (std::uint32_t round = 0; round < rounds; ++round) {
      for (std::uint32_t i = 0; i < kInnerSteps; ++i) {
        step(round, i);
        if (i == 0 && under_way) outer_step(round - 1, *std::exchange(under_way, std::nullopt));
      }
      under_way = local();
      if (parts.size() == 1) outer_step(round, *std::exchange(under_way, std::nullopt));
    }
    if (under_way) outer_step(rounds - 1, *under_way);
  }

  FixedBatches batches;
  std::unique_ptr<Engine> engine;
  std::vector<Fragment> parts;
  std::vector<float> theta, velocity;
};

// Round 0 is handed to its lane, and round 1 begun.
void hand_over_first(Fixture& f) {
  f.train_first_round();
  f.begin_round(1);
}

}  // namespace

class OverlapTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void it_is_diloco_to_the_bit_data() {
    QTest::addColumn<std::uint32_t>("fragments");
    for (const std::uint32_t fragments : {1u, 2u, 3u}) {
      QTest::addRow("%u fragments", fragments) << fragments;
    }
  }
  void it_is_diloco_to_the_bit() {
    QFETCH(const std::uint32_t, fragments);
    constexpr std::uint32_t kRounds = 7;
    Fixture f(Fixture::run_of(fragments));
    PlainDiloco plain(fragments, f.network.initial);
    plain.run(kRounds);

    f.must(f.loop.handle(HubInitialise{}));
    const auto average = [&](std::uint32_t round) {
      f.must(f.loop.handle(f.attempt(round, 1)));
      f.must(f.loop.handle(f.commit(round, 1, f.said<IslandHave>().digest)));
    };
    for (std::uint32_t round = 0; round < kRounds; ++round) {
      f.begin_round(round);
      f.must(f.loop.work());
      if (fragments > 1 && round > 0) average(round - 1);
      f.train();
      if (fragments == 1) average(round);
    }
    if (fragments > 1) average(kRounds - 1);

    QCOMPARE(f.outer.version().value, kRounds);
    QVERIFY(f.theta() == plain.theta);
    QVERIFY(f.inner() == plain.local());
    QVERIFY(f.theta() != f.network.initial);
    const StateManifest whole = make_state_manifest(OuterStep{kRounds}, plain.theta, plain.velocity);
    QCOMPARE(f.outer.tree_hash(), to_hex(whole.tree_hash()));
  }

  void attempts_of_two_rounds_each_average_their_fragment_and_commits_keep_their_order() {
    Fixture f(Fixture::run_of(2));
    hand_over_first(f);
    const std::vector<float> at_first = f.theta();
    f.train();
    const std::vector<float> local = f.inner();
    f.loop.holds = true;
    f.must(f.loop.handle(f.attempt(0, 1)));
    f.must(f.loop.handle(f.attempt(1, 1)));
    f.loop.release(1);  // the later one is done first
    const auto second = f.said<IslandHave>();
    f.loop.release(0);
    const auto first = f.said<IslandHave>();

    QCOMPARE(first.round.value, 0u);
    QCOMPARE(first.fragment.value, 0u);
    QCOMPARE(second.round.value, 1u);
    QCOMPARE(second.fragment.value, 1u);
    QCOMPARE(f.network.specs[0].fragment.value, 1u);
    QCOMPARE(f.network.specs[1].fragment.value, 0u);
    const std::vector<float> theta = values_of(at_first, f.loop.ranges(1)), was = values_of(local, f.loop.ranges(1));
    QCOMPARE(f.network.inputs[0].size(), theta.size());
    for (std::size_t i = 0; i < theta.size(); ++i) QCOMPARE(f.network.inputs[0][i], theta[i] - was[i]);
    QCOMPARE(f.network.inputs[1].size(), values_of(at_first, f.loop.ranges(0)).size());

    f.must(f.loop.handle(f.commit(0, 1, first.digest)));
    f.must(f.loop.handle(f.commit(1, 1, second.digest)));
    f.loop.release(1);  // it was told nothing yet: the round before is not taken
    QCOMPARE(f.outer.version().value, 0u);
    f.loop.release(0);
    f.must(f.loop.take_news());
    QCOMPARE(f.outer.version().value, 1u);
    QVERIFY(values_of(f.theta(), f.loop.ranges(1)) == values_of(at_first, f.loop.ranges(1)));
    f.loop.release(1);
    f.must(f.loop.take_news());
    QCOMPARE(f.outer.version().value, 2u);
    QVERIFY(f.inner() == f.theta());
    QVERIFY(f.loop.inner().between_rounds());
  }

  void an_update_is_taken_between_two_steps_and_leaves_the_rest_alone() {
    Fixture f(Fixture::run_of(2));
    hand_over_first(f);
    f.must(f.loop.handle(f.attempt(0, 1)));
    f.must(f.loop.work());
    const std::vector<float> before = f.inner();

    f.must(f.loop.handle(f.commit(0, 1, f.said<IslandHave>().digest)));

    QVERIFY(f.loop.has_work());
    QCOMPARE(f.status.snapshot().inner_step, 1u);
    QCOMPARE(f.status.snapshot().state, IslandPhase::kTraining);
    QVERIFY(values_of(f.inner(), f.loop.ranges(0)) == values_of(f.theta(), f.loop.ranges(0)));
    QVERIFY(values_of(f.inner(), f.loop.ranges(0)) != values_of(before, f.loop.ranges(0)));
    QVERIFY(values_of(f.inner(), f.loop.ranges(1)) == values_of(before, f.loop.ranges(1)));
    QCOMPARE(f.loop.told.back(), StateNews::kSyncDone);
    QCOMPARE(f.status.snapshot().accepted_round, std::optional<std::uint32_t>(0));
  }

  void a_round_whose_fragment_is_not_committed_is_refused_and_one_whose_commit_is_under_way_waits() {
    Fixture f(Fixture::run_of(2));
    hand_over_first(f);
    f.must(f.loop.handle(f.attempt(0, 1)));
    const std::string digest = f.said<IslandHave>().digest;
    f.train();
    const HubRoundBegin next{OuterStep{2}, kInnerSteps, 8, 4, false, FragmentId{0}};
    QCOMPARE(f.loop.handle(next).error().code, ErrorCode::kProtocol);

    f.loop.holds = true;
    f.must(f.loop.handle(f.commit(0, 1, digest)));
    f.must(f.loop.handle(next));
    QVERIFY(!f.loop.has_work());
    f.loop.release(0);
    f.must(f.loop.take_news());

    QVERIFY(f.loop.has_work());
    QCOMPARE(f.status.snapshot().round, 2u);
  }

  // The hub may take a word of before for what it has since asked for anew.
  void a_round_that_is_begun_while_another_is_trained_comes_after_it() {
    Fixture f(Fixture::run_of(2));
    f.must(f.loop.handle(HubInitialise{}));
    f.begin_round(0);
    f.must(f.loop.work());

    f.begin_round(1);
    f.must(f.loop.handle(f.attempt(0, 1)));

    QCOMPARE(f.status.snapshot().round, 0u);
    QCOMPARE(f.said<IslandAttemptFailed>().round, OuterStep{0});
    QVERIFY(f.network.specs.empty());
    f.must(f.loop.work());
    QCOMPARE(f.said<IslandReady>().round, OuterStep{0});
    QVERIFY(f.loop.has_work());
    QCOMPARE(f.status.snapshot().round, 1u);
  }

  void who_is_to_leave_goes_through_with_a_round_that_is_begun_anew() {
    for (const std::uint32_t fragments : {1u, 2u}) {
      Fixture f(Fixture::run_of(fragments));
      f.must(f.loop.handle(HubInitialise{}));
      f.begin_round(0, /*inner_steps=*/0);  // it only receives
      QVERIFY(f.loop.inner().averages());
      f.loop.inner().begin_no_more();

      f.begin_round(0);  // its trainers are gone
      QVERIFY(f.loop.has_work());
      f.train();

      QVERIFY(f.said<IslandReady>().tokens > 0);
      f.must(f.loop.handle(f.attempt(0, 1)));
      f.must(f.loop.handle(f.commit(0, 1, f.said<IslandHave>().digest)));
      f.begin_round(1);
      QVERIFY(f.loop.inner().between_rounds());
    }
  }

  void commits_that_are_sent_again_are_no_trouble() {
    Fixture f(Fixture::run_of(2));
    hand_over_first(f);
    f.must(f.loop.handle(f.attempt(0, 1)));
    const HubCommit first = f.commit(0, 1, f.said<IslandHave>().digest);
    f.must(f.loop.handle(first));
    f.train();
    f.must(f.loop.handle(f.attempt(1, 1)));
    const HubCommit second = f.commit(1, 1, f.said<IslandHave>().digest);
    f.must(f.loop.handle(second));
    QCOMPARE(f.outer.version().value, 2u);
    f.network.sent.clear();

    f.must(f.loop.handle(first));
    f.must(f.loop.handle(second));

    QCOMPARE(f.network.sent.size(), std::size_t{1});
    QCOMPARE(f.network.last<IslandApplied>().outer_step, OuterStep{2});
  }

  void what_names_another_fragment_than_its_round_is_refused() {
    Fixture f(Fixture::run_of(2));
    f.must(f.loop.handle(HubInitialise{}));
    QCOMPARE(f.loop.handle(HubRoundBegin{OuterStep{0}, kInnerSteps, 0, 4, false, FragmentId{1}}).error().code,
             ErrorCode::kProtocol);
    f.begin_round(0);
    f.train();
    HubAttempt attempt = f.attempt(0, 1);
    attempt.fragment = FragmentId{1};
    f.must(f.loop.handle(attempt));
    QCOMPARE(f.network.last<IslandAttemptFailed>().attempt.value, 1u);
    QVERIFY(f.network.specs.empty());
    f.must(f.loop.handle(f.attempt(0, 2)));
    HubCommit commit = f.commit(0, 2, f.network.last<IslandHave>().digest);
    commit.fragment = FragmentId{1};

    f.must(f.loop.handle(commit));

    QCOMPARE(f.network.last<IslandAttemptFailed>().attempt.value, 2u);
    QCOMPARE(f.outer.version().value, 0u);
  }

  void another_state_is_taken_only_when_no_lane_works_on_the_old_one() {
    Fixture f(Fixture::run_of(2));
    hand_over_first(f);
    f.loop.holds = true;
    f.must(f.loop.handle(f.attempt(0, 1)));
    f.network.fetched = FetchedState{OuterStep{5}, f.network.initial, std::vector<float>(f.network.initial.size())};
    f.network.sent.clear();

    f.must(f.loop.handle(HubRecover{OuterStep{5}, "hash", {}}));
    f.loop.release(1);
    f.must(f.loop.take_news());
    QVERIFY(!f.loop.has_work());
    QVERIFY(f.network.sent.empty());
    QCOMPARE(f.outer.version().value, 0u);
    f.loop.release(0);  // its attempt ends, then it drops the round
    f.must(f.loop.take_news());

    QCOMPARE(f.said<IslandRecovered>().outer_step.value, 5u);
    QCOMPARE(f.outer.version().value, 5u);
    f.loop.holds = false;
    f.loop.release(0);
    f.loop.release(1);
    f.network.sent.clear();
    f.must(f.loop.handle(f.attempt(0, 2)));  // of a round that was given up
    QVERIFY(f.network.sent.empty());
    f.begin_round(5);
    QVERIFY(f.loop.has_work());
  }

  void a_commit_under_way_when_another_state_is_to_be_taken_is_taken_first() {
    Fixture f(Fixture::run_of(2));
    hand_over_first(f);
    f.must(f.loop.handle(f.attempt(0, 1)));
    f.loop.holds = true;
    f.must(f.loop.handle(f.commit(0, 1, f.said<IslandHave>().digest)));
    f.network.fetched = FetchedState{OuterStep{0}, f.network.initial, std::vector<float>(f.network.initial.size())};

    f.must(f.loop.handle(HubRecover{OuterStep{0}, "rolled back", {}}));
    f.loop.release(0);
    f.loop.release(1);
    f.must(f.loop.take_news());

    QCOMPARE(f.said<IslandApplied>().outer_step.value, 1u);
    QCOMPARE(f.said<IslandRecovered>().outer_step.value, 0u);
    QCOMPARE(f.outer.version().value, 0u);
    QVERIFY(f.inner() == f.network.initial);
  }

  void averages_that_another_process_held_are_taken_one_after_the_other() {
    Fixture before(Fixture::run_of(2)), after(Fixture::run_of(2));
    hand_over_first(before);
    before.train();
    before.must(before.loop.handle(before.attempt(0, 1)));
    const std::string first = before.said<IslandHave>().digest;
    before.must(before.loop.handle(before.attempt(1, 1)));
    const std::string second = before.said<IslandHave>().digest;
    after.outer.initialise(before.network.initial);  // as it lay on the disk
    after.loop.begin();
    after.network.kept = before.network.kept;
    after.network.keeps = true;

    for (Fixture* f : {&before, &after}) {
      f->must(f->loop.handle(f->commit(0, 1, first)));
      f->must(f->loop.handle(f->commit(1, 1, second)));
    }

    QCOMPARE(after.outer.version().value, 2u);
    QCOMPARE(after.outer.tree_hash(), before.outer.tree_hash());
    QVERIFY(after.inner() == after.theta());
    QCOMPARE(after.status.snapshot().round, 1u);  // it began none of its own
  }

  void a_commit_that_cannot_be_taken_takes_those_after_it_along() {
    Fixture f(Fixture::run_of(2));
    hand_over_first(f);
    f.train();
    f.must(f.loop.handle(f.attempt(1, 1)));
    const std::string second = f.said<IslandHave>().digest;
    f.loop.holds = true;
    f.must(f.loop.handle(f.commit(0, 1, std::string(64, '0'))));
    f.must(f.loop.handle(f.commit(1, 1, second)));
    f.network.sent.clear();
    f.loop.release(0);
    f.must(f.loop.take_news());
    f.loop.release(1);

    QCOMPARE(f.network.sent.size(), std::size_t{2});
    for (const IslandMessage& said : f.network.sent) QVERIFY(std::holds_alternative<IslandAttemptFailed>(said));
    QCOMPARE(f.network.last<IslandAttemptFailed>().round.value, 1u);
    QCOMPARE(f.outer.version().value, 0u);
  }

  void a_newcomer_takes_part_with_no_weight_in_all_rounds_that_are_open() {
    Fixture f(Fixture::run_of(2));
    f.network.fetched = FetchedState{OuterStep{5}, f.network.initial, std::vector<float>(f.network.initial.size())};
    f.must(f.loop.handle(HubRecover{OuterStep{5}, "hash", {}}));
    for (const std::uint32_t round : {5u, 6u}) {
      f.begin_round(round, 0);
      QCOMPARE(f.network.last<IslandReady>().round.value, round);
      QCOMPARE(f.network.last<IslandReady>().tokens, std::uint64_t{0});
      QCOMPARE(f.network.last<IslandReady>().norm_over_steps, 0.0);
    }
    for (const std::uint32_t round : {5u, 6u}) {
      f.must(f.loop.handle(f.attempt(round, 1)));
      f.must(f.loop.handle(f.commit(round, 1, f.network.last<IslandHave>().digest)));
    }

    QCOMPARE(f.outer.version().value, 7u);
    QVERIFY(!f.status.snapshot().accepted_round);
  }

  void work_is_kept_when_nothing_is_averaged_and_goes_on_to_the_same_bits() {
    Fixture whole(Fixture::run_of(2)), interrupted(Fixture::run_of(2)), resumed(Fixture::run_of(2));
    for (Fixture* f : {&whole, &interrupted}) {
      hand_over_first(*f);
      f->must(f->loop.work());
      f->must(f->loop.handle(f->attempt(0, 1)));
    }
    QVERIFY(!interrupted.loop.interrupted_work());  // others count on it
    for (Fixture* f : {&whole, &interrupted}) {
      f->must(f->loop.handle(f->commit(0, 1, f->said<IslandHave>().digest)));
    }
    const auto work = interrupted.loop.interrupted_work();
    QVERIFY(work);
    resumed.outer.replace(
        {interrupted.outer.version(), interrupted.theta(), std::vector<float>(work->parameters.size())});
    // The momentum is the file's; of the hash alone the test needs that it is the same.
    InnerState kept = *work;
    kept.outer_hash = resumed.outer.tree_hash();
    resumed.loop.begin();
    resumed.loop.resume_from(kept);
    resumed.begin_round(1);

    whole.train();
    resumed.train();

    QCOMPARE(resumed.said<IslandReady>().tokens, whole.said<IslandReady>().tokens);
    QCOMPARE(resumed.said<IslandReady>().norm_over_steps, whole.said<IslandReady>().norm_over_steps);
    QVERIFY(resumed.inner() == whole.inner());
  }

  void what_each_fragment_owes_is_kept_with_the_work() {
    RunConfig run = Fixture::run_of(2);
    run.wire = WireFormat::kInt4E3m0;
    Fixture f(run), resumed(run);
    f.must(f.loop.handle(HubInitialise{}));
    f.network.loses = 0.5f;
    f.commit_round(0);
    f.begin_round(1);
    const auto work = f.loop.interrupted_work();
    QVERIFY(work);
    QCOMPARE(work->residual.size(), static_cast<std::size_t>(f.engine->numel()));
    for (const float value : values_of(work->residual, f.loop.ranges(0))) QCOMPARE(value, 0.5f);
    for (const float value : values_of(work->residual, f.loop.ranges(1))) QCOMPARE(value, 0.0f);

    resumed.outer.replace({f.outer.version(), f.theta(), std::vector<float>(f.network.initial.size())});
    resumed.loop.begin();
    InnerState kept = *work;
    kept.outer_hash = resumed.outer.tree_hash();
    resumed.loop.resume_from(kept);
    resumed.begin_round(1);
    resumed.train();
    resumed.begin_round(2);
    resumed.must(resumed.loop.handle(resumed.attempt(1, 1)));
    resumed.must(resumed.loop.handle(resumed.commit(1, 1, resumed.said<IslandHave>().digest)));
    resumed.train();
    resumed.must(resumed.loop.handle(resumed.attempt(2, 1)));
    QVERIFY(std::ranges::all_of(resumed.network.residual, [](float value) { return value == 0.5f; }));
  }

  void a_round_begun_anew_starts_from_the_outer_parameters_when_its_lane_let_go() {
    Fixture f(Fixture::run_of(2));
    hand_over_first(f);
    f.must(f.loop.work());
    f.loop.holds = true;
    f.must(f.loop.handle(HubRoundBegin{OuterStep{0}, kInnerSteps, 400, 4, false, FragmentId{0}}));
    QVERIFY(!f.loop.has_work());
    f.loop.release(0);
    f.loop.holds = false;
    f.must(f.loop.take_news());

    QVERIFY(f.loop.has_work());
    QCOMPARE(f.status.snapshot().round, 0u);
    QCOMPARE(f.status.snapshot().inner_step, 0u);
    QVERIFY(f.inner() == f.network.initial);
    f.train();
    QCOMPARE(f.network.last<IslandReady>().round.value, 0u);
  }

  void a_validation_is_of_the_outer_parameters_and_leaves_what_was_trained() {
    Fixture f(Fixture::run_of(2)), plain;
    f.train_first_round();
    const std::vector<float> local = f.inner();
    plain.must(plain.loop.handle(HubInitialise{}));
    plain.begin_round(0, kInnerSteps, true);

    f.begin_round(1, kInnerSteps, true);

    QCOMPARE(f.network.last<IslandValidation>().outer_step.value, 0u);
    QCOMPARE(f.network.last<IslandValidation>().loss_nats, plain.network.last<IslandValidation>().loss_nats);
    QVERIFY(f.inner() == local);
  }

  void after_a_goodbye_the_last_commits_are_taken() {
    Fixture f(Fixture::run_of(2));
    f.train_first_round();
    f.must(f.loop.handle(f.attempt(0, 1)));
    f.loop.holds = true;
    f.must(f.loop.handle(f.commit(0, 1, f.said<IslandHave>().digest)));
    f.must(f.loop.handle(HubGoodbye{ErrorCode::kAborted, "", true}));
    QVERIFY(!f.loop.finished());
    QVERIFY(f.loop.inner().takes_last_commits());
    f.loop.release(0);
    f.must(f.loop.take_news());

    QVERIFY(f.loop.finished());
    QCOMPARE(f.outer.version().value, 1u);
  }

  void who_is_to_leave_begins_no_other_round() {
    Fixture f(Fixture::run_of(2));
    f.train_first_round();
    f.loop.inner().begin_no_more();
    f.begin_round(1);
    QVERIFY(!f.loop.has_work());
    QVERIFY(!f.loop.inner().between_rounds());
    f.must(f.loop.handle(f.attempt(0, 1)));
    f.must(f.loop.handle(f.commit(0, 1, f.said<IslandHave>().digest)));

    QVERIFY(f.loop.inner().between_rounds());
  }
};

QTEST_GUILESS_MAIN(OverlapTest)
#include "overlap_test.moc"
