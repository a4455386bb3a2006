// How an island goes through rounds: from joining to a goodbye, with what interrupts it.
#include <QtCore/QTemporaryDir>

#include "net/base/encoding.h"
#include "net/step/flops.h"
#include "tests/trainer/island/round_loop_fixture.h"

using namespace atl;
using namespace atl::test;
using Fixture = RoundLoopFixture;

class RoundLoopTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void a_step_that_is_given_up_costs_the_round_nothing();
  void a_step_that_is_not_finite_is_told_to_the_hub_and_the_island_recovers() {
    Fixture f;
    f.must(f.loop.handle(HubInitialise{}));
    const std::vector<float> good = f.network.initial;
    std::vector<float> broken = good;
    broken[3] = std::numeric_limits<float>::quiet_NaN();
    f.begin_round(0);
    f.engine->write_parameters(broken);

    f.train();

    QVERIFY(std::isnan(f.network.last<IslandReady>().norm_over_steps));
    QVERIFY(!f.loop.has_work());
    f.must(f.loop.handle(HubRecover{OuterStep{0}, f.outer.tree_hash(), {}}));
    std::vector<float> parameters(good.size());
    f.engine->read_parameters(parameters);
    QVERIFY(parameters == good);
  }

  void a_round_goes_from_initialise_to_the_outer_step() {
    Fixture f;
    f.must(f.loop.handle(HubInitialise{}));
    QCOMPARE(f.network.last<IslandRecovered>().outer_step.value, 0u);

    f.begin_round(0);
    f.train();
    QCOMPARE(f.network.last<IslandReady>().tokens, std::uint64_t{kInnerSteps * 2 * kLength});
    QVERIFY(f.network.last<IslandReady>().norm_over_steps > 0);
    f.must(f.loop.handle(f.attempt(0, 1)));
    const std::string digest = f.network.last<IslandHave>().digest;
    f.must(f.loop.handle(f.commit(0, 1, digest)));

    QCOMPARE(f.network.last<IslandApplied>().outer_step.value, 1u);
    QCOMPARE(f.network.last<IslandApplied>().state_hash, f.outer.tree_hash());
    std::vector<float> inner(static_cast<std::size_t>(f.engine->numel()));
    f.engine->read_parameters(inner);
    QVERIFY(std::equal(inner.begin(), inner.end(), f.outer.parameters().begin()));
    QCOMPARE(f.status.snapshot().accepted_round, std::optional<std::uint32_t>(0));
  }

  void each_step_says_its_learning_rate_and_gradient_norm() {
    Fixture f;
    f.must(f.loop.handle(HubInitialise{}));
    QVERIFY(!f.status.snapshot().learning_rate && !f.status.snapshot().gradient_norm);

    f.begin_round(0);
    f.must(f.loop.work());

    const IslandState state = f.status.snapshot();
    QVERIFY(state.learning_rate && *state.learning_rate >= 0 && *state.learning_rate <= 3e-3);
    QVERIFY(state.gradient_norm && *state.gradient_norm > 0 && std::isfinite(*state.gradient_norm));
    QVERIFY(!state.mfu);  // what a processor could do at best is not known
  }

  // The preset's beta2 is 0.95: 40 steps. The run's own warm-up, 40 steps, is over in round 500.
  void one_that_joins_late_warms_up_and_then_trains_at_everybodys_rate() {
    constexpr std::uint32_t kRound = 500;
    Fixture f;
    f.network.fetched = FetchedState{OuterStep{kRound}, f.network.initial, f.network.initial};
    const std::string hash =
        to_hex(make_state_manifest(OuterStep{kRound}, f.network.initial, f.network.initial).tree_hash());
    f.must(f.loop.handle(HubRecover{OuterStep{kRound}, hash, {}}));
    f.begin_round(kRound, /*inner_steps=*/50);
    std::vector<double> rates;
    while (f.loop.has_work()) {
      f.must(f.loop.work());
      rates.push_back(f.status.snapshot().learning_rate.value_or(-1));
    }
    QCOMPARE(rates.size(), std::size_t{50});
    const double peak = Fixture::run_config().inner.learning_rate;
    for (std::size_t i = 0; i < rates.size(); ++i) {
      const double expected = peak * std::min(1.0, static_cast<double>(i + 1) / 40);
      QVERIFY2(std::abs(rates[i] - expected) < 1e-6 * peak, qPrintable(QString::number(i)));
    }
  }

  void a_lease_whose_data_cannot_be_had_goes_back() {
    Fixture f;
    f.batches.lacks_step = 1;
    f.must(f.loop.handle(HubInitialise{}));
    f.begin_round(0);
    f.train();
    const auto returned = f.said<IslandLeaseReturned>();
    QCOMPARE(returned.round, OuterStep{0});
    QCOMPARE(returned.lease_first_sequence, std::uint64_t{0});
    QCOMPARE(returned.reason, std::string("the mirror is away"));
    QVERIFY(!f.loop.has_work());
    QCOMPARE(f.status.snapshot().state, IslandPhase::kWaiting);
    QVERIFY(f.inner() != f.theta());  // a step of it was taken

    f.batches.lacks_step.reset();
    f.must(f.loop.handle(HubRoundBegin{OuterStep{0}, kInnerSteps, 400, 4}));
    QVERIFY(f.inner() == f.theta());  // which nobody hears of
    f.train();
    QCOMPARE(f.network.last<IslandReady>().lease_first_sequence, std::optional<std::uint64_t>(400));
    QCOMPARE(f.network.last<IslandReady>().tokens, std::uint64_t{kInnerSteps * 2 * kLength});
  }

  void who_gets_no_other_lease_takes_part_with_weight_0() {
    Fixture f;
    f.batches.lacks_step = 0;
    f.train_first_round();
    f.must(f.loop.handle(HubRoundBegin{OuterStep{0}, 0, 0, 0}));
    QCOMPARE(f.network.last<IslandReady>().tokens, std::uint64_t{0});
    f.must(f.loop.handle(f.attempt(0, 1)));
    f.must(f.loop.handle(f.commit(0, 1, f.network.last<IslandHave>().digest)));
    QCOMPARE(f.outer.version(), OuterStep{1});
    QVERIFY(f.inner() == f.theta());
  }

  // Nor does one whose owner ends it while it waits.
  void a_validation_without_data_costs_no_round() {
    for (const ErrorCode lacks : {ErrorCode::kUnreachable, ErrorCode::kAborted}) {
      Fixture f;
      f.batches.lacks_validation = lacks;
      f.must(f.loop.handle(HubInitialise{}));
      f.begin_round(0, kInnerSteps, /*validate=*/true);
      f.train();
      const auto validates = [](const IslandMessage& message) {
        return std::holds_alternative<IslandValidation>(message);
      };
      QVERIFY(std::ranges::none_of(f.network.sent, validates));
      QCOMPARE(f.network.last<IslandReady>().tokens, std::uint64_t{kInnerSteps * 2 * kLength});
    }
  }

  void what_the_hub_says_is_safe_is_told() {
    Fixture f;
    QVERIFY(!f.status.snapshot().safe_outer_step);
    f.must(f.loop.handle(HubSafe{OuterStep{7}}));
    QCOMPARE(f.status.snapshot().safe_outer_step, std::optional<std::uint32_t>(7));
    QCOMPARE(f.loop.told.back(), StateNews::kChanged);
  }

  void each_step_says_where_its_time_went() {
    Fixture f;
    f.must(f.loop.handle(HubInitialise{}));
    f.begin_round(0);
    QVERIFY(!f.status.snapshot().step_seconds);

    f.must(f.loop.work());

    const IslandState state = f.status.snapshot();
    QVERIFY(state.step_seconds);
    const StepTimes& times = *state.step_seconds;
    double sum = times.data;
    for (const auto part : {times.matmul, times.attention, times.elementwise, times.loss, times.optimiser}) {
      QVERIFY(part && *part > 0);
      sum += *part;
    }
    sum += times.communication.value();
    QVERIFY2(sum <= times.total, qPrintable(QString("%1 of %2 s").arg(sum).arg(times.total)));
    // One step was taken: its time is the round's.
    QCOMPARE(
        *state.flops_per_second,
        flops_per_token(f.engine->config(), canonical_layout(f.engine->config()), kLength) * state.tokens_per_second);
  }

  void mfu_is_told_where_the_peak_is_known() {
    Fixture f;
    f.loop.inner().set_peak_flops(4e12);
    f.must(f.loop.handle(HubInitialise{}));
    f.begin_round(0);

    f.must(f.loop.work());

    const IslandState state = f.status.snapshot();
    const double flops = torchtitan_flops_per_token(f.engine->config(), canonical_layout(f.engine->config()), kLength);
    QCOMPARE(*state.mfu, flops * state.tokens_per_second / 4e12);
  }

  void interrupted_work_goes_on_to_the_same_bits() {
    Fixture whole, interrupted, resumed;
    for (Fixture* f : {&whole, &interrupted, &resumed}) f->must(f->loop.handle(HubInitialise{}));
    whole.begin_round(0);
    whole.train();
    interrupted.begin_round(0);
    QVERIFY(!interrupted.loop.interrupted_work());  // nothing was done yet
    interrupted.must(interrupted.loop.work());

    resumed.loop.resume_from(*interrupted.loop.interrupted_work());
    resumed.begin_round(0);
    QCOMPARE(resumed.status.snapshot().inner_step, 1u);
    resumed.train();

    const auto& expected = whole.network.last<IslandReady>();
    const auto& ready = resumed.network.last<IslandReady>();
    QCOMPARE(ready.tokens, expected.tokens);
    QCOMPARE(ready.norm_over_steps, expected.norm_over_steps);
    QCOMPARE(ready.mean_loss_nats, expected.mean_loss_nats);
    std::vector<float> a(whole.network.initial.size()), b(a.size());
    whole.engine->read_parameters(a);
    resumed.engine->read_parameters(b);
    QVERIFY(a == b);
  }

  // What lies on the disk of it is of what is trained alone.
  void interrupted_work_of_what_is_trained_goes_on_to_the_same_bits_data() {
    QTest::addColumn<std::uint32_t>("fragments");
    QTest::newRow("the whole at once") << 1u;
    QTest::newRow("two fragments in turn") << 2u;
  }
  void interrupted_work_of_what_is_trained_goes_on_to_the_same_bits() {
    QFETCH(const std::uint32_t, fragments);
    RunConfig run = Fixture::run_config();
    run.train_only = {"*.v_proj.weight", "*.down_proj.weight", "model.norm.weight"};
    run.fragments = fragments;
    const EngineOptions options{.train_only = run.train_only};
    Fixture whole(run, options), interrupted(run, options), another(run, options);
    for (Fixture* f : {&whole, &interrupted}) {
      f->must(f->loop.handle(HubInitialise{}));
      f->begin_round(0);
    }
    whole.train();
    interrupted.must(interrupted.loop.work());
    const ParameterLayout layout = layout_of_training(tiny_model(), run.train_only);
    const std::vector<Fragment> all = fragments_of(layout, fragments).value();
    const QTemporaryDir directory;
    const std::filesystem::path file = std::filesystem::path(directory.path().toStdString()) / "inner.state";

    QVERIFY(save_inner_state(file, *interrupted.loop.interrupted_work()).ok());
    QVERIFY(std::filesystem::file_size(file) < 200 + 12 * static_cast<std::uint64_t>(trained_numel(layout)));
    another.loop.resume_from(load_inner_state(file, static_cast<std::uint64_t>(layout.numel), ranges_of(all)).value());
    another.must(another.loop.handle(HubInitialise{}));
    another.begin_round(0);
    QCOMPARE(another.status.snapshot().inner_step, 1u);
    another.train();

    QCOMPARE(another.said<IslandReady>().norm_over_steps, whole.said<IslandReady>().norm_over_steps);
    QVERIFY(another.inner() == whole.inner());
  }

  void interrupted_work_of_another_lease_is_dropped() {
    Fixture interrupted, resumed;
    for (Fixture* f : {&interrupted, &resumed}) f->must(f->loop.handle(HubInitialise{}));
    interrupted.begin_round(0);
    interrupted.must(interrupted.loop.work());

    resumed.loop.resume_from(*interrupted.loop.interrupted_work());
    resumed.must(resumed.loop.handle(HubRoundBegin{OuterStep{0}, kInnerSteps, 400, 4, false}));

    QCOMPARE(resumed.status.snapshot().inner_step, 0u);
    std::vector<float> parameters(resumed.network.initial.size());
    resumed.engine->read_parameters(parameters);
    QVERIFY(parameters == resumed.network.initial);
  }

  void a_joiner_takes_part_with_no_weight_in_the_round_that_is_open() {
    Fixture f;
    FetchedState state;
    state.version = OuterStep{5};
    state.parameters = f.network.initial;
    state.momentum.assign(state.parameters.size(), 0.25f);
    f.network.fetched = state;

    f.must(f.loop.handle(HubRecover{OuterStep{5}, "hash", {}}));
    QCOMPARE(f.network.last<IslandRecovered>().outer_step.value, 5u);
    f.begin_round(5, 0);

    QCOMPARE(f.network.last<IslandReady>().tokens, std::uint64_t{0});
    QCOMPARE(f.network.last<IslandReady>().norm_over_steps, 0.0);
    f.must(f.loop.handle(f.attempt(5, 1)));
    f.must(f.loop.handle(f.commit(5, 1, f.network.last<IslandHave>().digest)));
    QCOMPARE(f.outer.version().value, 6u);
    QVERIFY(!f.status.snapshot().accepted_round.has_value());
  }

  void a_recovery_without_a_source_is_tried_again() {
    Fixture f;
    f.must(f.loop.handle(HubRecover{OuterStep{5}, "hash", {}}));
    QVERIFY(f.network.sent.empty());
    QVERIFY(!f.outer.holds_state());

    f.network.fetched = FetchedState{OuterStep{5}, f.network.initial, std::vector<float>(f.network.initial.size())};
    f.must(f.loop.handle(HubRecover{OuterStep{5}, "hash", {}}));

    QCOMPARE(f.network.last<IslandRecovered>().outer_step.value, 5u);
  }

  void a_round_that_does_not_fit_the_state_is_refused() {
    Fixture f;
    f.must(f.loop.handle(HubInitialise{}));

    const Status status = f.loop.handle(HubRoundBegin{OuterStep{7}, kInnerSteps, 0, 4, false});

    QCOMPARE(status.error().code, ErrorCode::kProtocol);
  }

  void validation_is_of_the_outer_parameters_before_the_first_inner_step() {
    Fixture f;
    f.must(f.loop.handle(HubInitialise{}));
    f.begin_round(0, kInnerSteps, true);

    const auto& validation = f.network.last<IslandValidation>();
    QCOMPARE(validation.outer_step.value, 0u);
    QVERIFY(validation.loss_nats > 0);
    QVERIFY(f.loop.has_work());
  }

  void what_was_said_before_a_reconnection_is_said_again_when_asked() {
    Fixture f;
    f.train_first_round();
    f.network.sent.clear();

    f.begin_round(0);  // the same lease
    QCOMPARE(f.network.last<IslandReady>().round.value, 0u);
    f.must(f.loop.handle(f.attempt(0, 1)));
    const std::string digest = f.network.last<IslandHave>().digest;
    f.must(f.loop.handle(f.attempt(0, 1)));
    QCOMPARE(f.network.last<IslandHave>().digest, digest);
    f.must(f.loop.handle(f.commit(0, 1, digest)));
    f.must(f.loop.handle(f.commit(0, 1, digest)));

    QCOMPARE(f.outer.version().value, 1u);
    QCOMPARE(f.network.last<IslandApplied>().outer_step.value, 1u);
  }

  void a_goodbye_ends_the_loop_with_the_hubs_words() {
    Fixture f;
    QVERIFY(!f.loop.finished());

    const Status refused = f.loop.handle(HubGoodbye{ErrorCode::kVersionUnsupported, "update Atoll", false});

    QVERIFY(f.loop.finished());
    QCOMPARE(refused.error().message, std::string("update Atoll"));
    QVERIFY(Fixture().loop.handle(HubGoodbye{ErrorCode::kAborted, "", true}).ok());
  }
};

void RoundLoopTest::a_step_that_is_given_up_costs_the_round_nothing() {
  bool goes_on = false;
  EngineOptions one_at_a_time;
  one_at_a_time.micro_batch_sequences = 1;
  EngineOptions may_be_given_up = one_at_a_time;
  may_be_given_up.on_micro_batch = [&goes_on] { return goes_on; };
  RoundLoopFixture given_up(RoundLoopFixture::run_config(), may_be_given_up);
  RoundLoopFixture never(RoundLoopFixture::run_config(), one_at_a_time);
  given_up.must(given_up.loop.handle(HubInitialise{}));
  given_up.begin_round(0, kInnerSteps, /*validate=*/true);
  given_up.must(given_up.loop.work());
  QVERIFY(!std::holds_alternative<IslandValidation>(given_up.network.sent.back()));
  QCOMPARE(given_up.status.snapshot().inner_step, 0u);

  goes_on = true;
  given_up.train();
  never.train_first_round();

  QCOMPARE(given_up.network.last<IslandReady>().tokens, never.network.last<IslandReady>().tokens);
  QCOMPARE(given_up.network.last<IslandReady>().mean_loss_nats, never.network.last<IslandReady>().mean_loss_nats);
}

QTEST_GUILESS_MAIN(RoundLoopTest)
#include "round_loop_test.moc"
