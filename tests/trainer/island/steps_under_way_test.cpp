// The inner loop on a device that is a step behind it: what it tells, averages and keeps is what it is where every step
// is over when it was begun.
#include "tests/fakes/stream_device.h"
#include "tests/trainer/island/round_loop_fixture.h"

using namespace atl;
using namespace atl::test;
using Fixture = RoundLoopFixture;

namespace {

std::unique_ptr<DeviceGroup> late_device() { return std::make_unique<StreamDeviceGroup>(StreamDevices{.seed = 3}); }

struct Pair {
  explicit Pair(std::uint32_t fragments = 1)
      : at_once(Fixture::run_of(fragments)), late(Fixture::run_of(fragments), {}, late_device()) {
    for (Fixture* f : {&at_once, &late}) f->must(f->loop.handle(HubInitialise{}));
  }
  // The same of both.
  template <class Do>
  void both(const Do& act) {
    for (Fixture* f : {&at_once, &late}) act(*f);
  }
  Fixture at_once, late;
};

void average(Fixture& f, std::uint32_t round) {
  f.must(f.loop.handle(f.attempt(round, 1)));
  f.must(f.loop.handle(f.commit(round, 1, f.said<IslandHave>().digest)));
}

// A token of the second step, whose embedding is no number.
void spoil_second_step(Fixture& f) {
  std::vector<float> values = f.inner();
  values[static_cast<std::size_t>(tiny_model().hidden_size)] = std::numeric_limits<float>::quiet_NaN();
  f.engine->write_parameters(values);
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

}  // namespace

class StepsUnderWayTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void a_steps_result_is_told_when_the_next_is_begun();
  void rounds_come_to_the_same_bits_data();
  void rounds_come_to_the_same_bits();
  void a_step_that_is_not_finite_ends_its_phase_and_nothing_after_it_is_taken();
  void work_that_is_interrupted_has_all_steps_that_were_begun();
  void a_recovery_takes_the_place_of_steps_under_way();
  void a_round_that_is_begun_anew_is_told_nothing_of_steps_before();
};

void StepsUnderWayTest::a_steps_result_is_told_when_the_next_is_begun() {
  Pair p;
  p.both([](Fixture& f) { f.begin_round(0, 4); });
  std::vector<double> losses, late;
  for (int step = 0; step < 4; ++step) {
    p.at_once.must(p.at_once.loop.work());
    losses.push_back(p.at_once.status.snapshot().loss_nats);
    QVERIFY(p.late.loop.has_work());
    p.late.must(p.late.loop.work());
    QCOMPARE(p.late.status.snapshot().inner_step, static_cast<std::uint32_t>(step == 3 ? 4 : step));
    if (step > 0) late.push_back(p.late.status.snapshot().loss_nats);
  }

  QCOMPARE(late[0], losses[0]);
  QCOMPARE(late[1], losses[1]);
  QCOMPARE(late[2], losses[3]);  // the last two at the end of the phase
  QVERIFY(!p.late.loop.has_work());
  QCOMPARE(std::ranges::count(p.late.loop.told, StateNews::kStep), 4);
  const auto& expected = p.at_once.network.last<IslandReady>();
  const auto& ready = p.late.network.last<IslandReady>();
  QCOMPARE(ready.mean_loss_nats, expected.mean_loss_nats);
  QCOMPARE(ready.norm_over_steps, expected.norm_over_steps);
  QCOMPARE(ready.tokens, expected.tokens);
}

void StepsUnderWayTest::rounds_come_to_the_same_bits_data() {
  QTest::addColumn<std::uint32_t>("fragments");
  for (const std::uint32_t fragments : {1u, 2u, 3u}) QTest::addRow("%u fragments", fragments) << fragments;
}

// Of several fragments one is replaced while a step is under way.
void StepsUnderWayTest::rounds_come_to_the_same_bits() {
  QFETCH(const std::uint32_t, fragments);
  Pair p(fragments);

  p.both([&](Fixture& f) {
    for (std::uint32_t round = 0; round < 4; ++round) {
      f.begin_round(round, kInnerSteps, /*validate=*/round == 2);
      f.must(f.loop.work());
      if (fragments > 1 && round > 0) average(f, round - 1);
      f.train();
      if (fragments == 1) average(f, round);
    }
  });

  QVERIFY(p.late.theta() != p.late.network.initial);
  QVERIFY(p.late.theta() == p.at_once.theta());
  QVERIFY(p.late.inner() == p.at_once.inner());
  QCOMPARE(p.late.said<IslandValidation>().loss_nats, p.at_once.said<IslandValidation>().loss_nats);
  QCOMPARE(p.late.status.snapshot().tokens, p.at_once.status.snapshot().tokens);
}

void StepsUnderWayTest::a_step_that_is_not_finite_ends_its_phase_and_nothing_after_it_is_taken() {
  Pair p;
  p.both([](Fixture& f) {
    f.begin_round(0, 4);
    spoil_second_step(f);
    f.train();
  });

  const auto& ready = p.late.network.last<IslandReady>();
  QVERIFY(std::isnan(ready.norm_over_steps));
  QCOMPARE(p.late.status.snapshot().inner_step, 1u);
  QCOMPARE(ready.tokens, p.at_once.network.last<IslandReady>().tokens);
  QCOMPARE(ready.mean_loss_nats, p.at_once.network.last<IslandReady>().mean_loss_nats);
  QVERIFY(same_bits(p.late.inner(), p.at_once.inner()));
  QCOMPARE(p.late.engine->steps_under_way(), 0);
}

void StepsUnderWayTest::work_that_is_interrupted_has_all_steps_that_were_begun() {
  Pair p;
  p.both([](Fixture& f) {
    f.begin_round(0, 4);
    f.must(f.loop.work());
    f.must(f.loop.work());
  });
  QCOMPARE(p.late.status.snapshot().inner_step, 1u);

  const auto work = p.late.loop.interrupted_work().value(), expected = p.at_once.loop.interrupted_work().value();

  QCOMPARE(work.inner_step, 2u);
  QCOMPARE(work.loss_sum, expected.loss_sum);
  QCOMPARE(work.optimizer_steps, expected.optimizer_steps);
  QVERIFY(work.parameters == expected.parameters);
  QVERIFY(work.second_moment == expected.second_moment);
  QCOMPARE(p.late.status.snapshot().inner_step, 2u);
}

void StepsUnderWayTest::a_recovery_takes_the_place_of_steps_under_way() {
  Pair p;
  Fixture& f = p.late;
  f.begin_round(0, 4);
  f.must(f.loop.work());
  QCOMPARE(f.engine->steps_under_way(), 1);

  f.must(f.loop.handle(HubRecover{OuterStep{0}, f.outer.tree_hash(), {}}));

  QCOMPARE(f.engine->steps_under_way(), 0);
  QVERIFY(f.inner() == f.network.initial);
  QVERIFY(!f.loop.has_work());
}

void StepsUnderWayTest::a_round_that_is_begun_anew_is_told_nothing_of_steps_before() {
  Pair p;
  p.both([](Fixture& f) {
    f.begin_round(0, 4);
    f.must(f.loop.work());
    f.must(f.loop.handle(HubRoundBegin{OuterStep{0}, 4, 400, 4, false}));
    f.train();
  });

  const auto& ready = p.late.network.last<IslandReady>();
  QCOMPARE(ready.tokens, std::uint64_t{4 * 2 * kLength});
  QCOMPARE(ready.mean_loss_nats, p.at_once.network.last<IslandReady>().mean_loss_nats);
  QVERIFY(p.late.inner() == p.at_once.inner());
}

QTEST_GUILESS_MAIN(StepsUnderWayTest)
#include "steps_under_way_test.moc"
