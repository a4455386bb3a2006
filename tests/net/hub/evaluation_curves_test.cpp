// What a hub shows of its run's tasks.
#include <QtTest>

#include "net/hub/evaluation_curves.h"

using namespace atl;

class EvaluationCurvesTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void a_task_that_was_not_asked_has_no_points();
  void the_main_metric_is_drawn_and_the_newest_state_has_all();
  void of_many_points_a_part_is_shown_evenly_with_the_first_and_the_last();
  void what_a_rollback_undid_is_not_shown();
};

namespace {

const EvaluationTask kChoices{"choices", TaskKind::kMultipleChoice, 4, 9, std::string(64, 'a')};
const EvaluationTask kTexts{"texts", TaskKind::kRolling, 1, 9, std::string(64, 'b')};

EvaluatedState choices_at(std::uint32_t outer_step, double accuracy) {
  return {OuterStep{outer_step}, "choices", TaskKind::kMultipleChoice, {accuracy, accuracy / 2, accuracy / 4}, 1};
}

EvaluationCurves both(EvaluationCurves::Figures known = {}) {
  EvaluationCurves curves;
  curves.add(kChoices, std::move(known));
  curves.add(kTexts, {});
  return curves;
}

}  // namespace

void EvaluationCurvesTest::a_task_that_was_not_asked_has_no_points() {
  const auto shown = both().shown();
  QCOMPARE(shown.size(), std::size_t{2});
  QCOMPARE(shown[0].task, std::string("choices"));
  QVERIFY(shown[0].points.empty() && shown[0].newest.empty());
}

void EvaluationCurvesTest::the_main_metric_is_drawn_and_the_newest_state_has_all() {
  EvaluationCurves curves = both({{OuterStep{0}, {0.25, 0.2, 0.1}}});
  curves.learn(choices_at(10, 0.5));
  curves.learn({OuterStep{10}, "texts", TaskKind::kRolling, {20, 3, 1.5}, 1});
  curves.learn({OuterStep{10}, "of another run", TaskKind::kRolling, {20, 3, 1.5}, 1});

  const auto shown = curves.shown();

  QCOMPARE(shown.size(), std::size_t{2});
  QCOMPARE(shown[0].metric, std::string("acc"));
  QCOMPARE(shown[0].points.size(), std::size_t{2});
  QCOMPARE(shown[0].points[0].value, 0.25);
  QCOMPARE(shown[0].points[1].outer_step, 10u);
  QCOMPARE(shown[0].newest.size(), std::size_t{3});
  QCOMPARE(shown[0].newest[1].metric, std::string("acc_norm"));
  QCOMPARE(shown[0].newest[1].value, 0.25);
  QCOMPARE(shown[1].metric, std::string("bits_per_byte"));
  QCOMPARE(shown[1].points[0].value, 1.5);
}

void EvaluationCurvesTest::of_many_points_a_part_is_shown_evenly_with_the_first_and_the_last() {
  for (const std::size_t all : {std::size_t{1}, HubState::kMaxPoints, HubState::kMaxPoints + 1, std::size_t{12'345}}) {
    EvaluationCurves curves = both();
    for (std::size_t i = 0; i < all; ++i) curves.learn(choices_at(static_cast<std::uint32_t>(3 * i), 0.5));

    const auto points = curves.shown()[0].points;

    QCOMPARE(points.size(), std::min(all, HubState::kMaxPoints));
    QCOMPARE(points.front().outer_step, 0u);
    QCOMPARE(points.back().outer_step, static_cast<std::uint32_t>(3 * (all - 1)));
    for (std::size_t i = 1; i < points.size(); ++i) {
      const double step = points[i].outer_step - points[i - 1].outer_step;
      QVERIFY(step >= 3 && step <= 3 * (static_cast<double>(all) / HubState::kMaxPoints + 2));
    }
  }
}

void EvaluationCurvesTest::what_a_rollback_undid_is_not_shown() {
  EvaluationCurves curves = both();
  for (const std::uint32_t step : {0u, 5u, 10u}) curves.learn(choices_at(step, 0.5));
  curves.go_back_to(OuterStep{5});
  QCOMPARE(curves.shown()[0].points.back().outer_step, 5u);
}

QTEST_GUILESS_MAIN(EvaluationCurvesTest)
#include "evaluation_curves_test.moc"
