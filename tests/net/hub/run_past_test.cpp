// What a hub keeps of a run's rounds: all of them count, within a bound.
#include "net/hub/run_past.h"

#include <QtTest>
#include <cmath>

using namespace atl;

namespace {

HubState::Past round_of(std::uint32_t round) {
  return {.round = round, .tokens = 1000, .seconds = 2, .mean_loss_nats = round % 2 == 0 ? 4.0 : 2.0};
}

}  // namespace

class RunPastTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void few_rounds_are_told_one_by_one();
  void of_many_rounds_those_that_follow_each_other_are_one();
  void a_loss_that_is_not_known_counts_for_nothing();
  void a_loss_that_is_no_figure_is_not_known();
  void of_many_validations_a_part_is_told_with_the_first_and_the_last();
};

void RunPastTest::few_rounds_are_told_one_by_one() {
  RunPast past;
  for (std::uint32_t round = 0; round < HubState::kMaxPast; ++round) past.add(round_of(round));

  QCOMPARE(past.rounds().size(), HubState::kMaxPast);
  QCOMPARE(past.rounds().back().round, static_cast<std::uint32_t>(HubState::kMaxPast - 1));
  QCOMPARE(past.rounds().back().rounds, 1u);
}

void RunPastTest::of_many_rounds_those_that_follow_each_other_are_one() {
  constexpr std::uint32_t kRounds = 100'001;
  RunPast past;
  for (std::uint32_t round = 0; round < kRounds; ++round) past.add(round_of(round));

  QVERIFY(past.rounds().size() > HubState::kMaxPast / 2 && past.rounds().size() <= HubState::kMaxPast);
  QCOMPARE(past.rounds().front().round, 0u);
  QCOMPARE(past.rounds().front().mean_loss_nats, 3.0);
  std::uint32_t next = 0;
  std::uint64_t tokens = 0;
  for (const HubState::Past& piece : past.rounds()) {
    QCOMPARE(piece.round, next);
    QCOMPARE(piece.seconds, 2.0 * piece.rounds);
    next += piece.rounds;
    tokens += piece.tokens;
  }
  QCOMPARE(next, kRounds);
  QCOMPARE(tokens, std::uint64_t{1000} * kRounds);
}

void RunPastTest::a_loss_that_is_not_known_counts_for_nothing() {
  RunPast past;
  for (std::uint32_t round = 0; round < 2 * HubState::kMaxPast; ++round) {
    HubState::Past one = round_of(0);
    one.round = round;
    if (round % 2 == 1) one.mean_loss_nats = 0;
    past.add(one);
  }
  QCOMPARE(past.rounds().front().rounds, 2u);
  QCOMPARE(past.rounds().front().mean_loss_nats, 4.0);
}

void RunPastTest::a_loss_that_is_no_figure_is_not_known() {
  RunPast past;
  for (const double loss : {std::nan(""), HUGE_VAL, -1.0, 2.0}) {
    HubState::Past round = round_of(static_cast<std::uint32_t>(past.rounds().size()));
    round.mean_loss_nats = loss;
    past.add(round);
    past.add(HubState::Validation{round.round, loss});
  }

  QCOMPARE(past.rounds()[0].mean_loss_nats, 0.0);
  QCOMPARE(past.rounds()[2].mean_loss_nats, 0.0);
  QCOMPARE(past.rounds()[3].mean_loss_nats, 2.0);
  QCOMPARE(past.validations().size(), std::size_t{1});
  QVERIFY(validate(past.told()).ok());
}

void RunPastTest::of_many_validations_a_part_is_told_with_the_first_and_the_last() {
  RunPast past;
  for (std::uint32_t step = 0; step <= 5000; step += 5) past.add(HubState::Validation{step, 3.0});

  const auto shown = past.validations();

  QCOMPARE(shown.size(), HubState::kMaxPoints);
  QCOMPARE(shown.front().outer_step, 0u);
  QCOMPARE(shown.back().outer_step, 5000u);
}

QTEST_APPLESS_MAIN(RunPastTest)
#include "run_past_test.moc"
