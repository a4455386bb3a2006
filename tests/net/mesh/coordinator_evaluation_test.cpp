// Who is asked what the run's tasks come to, and whose word counts.
#include <QtTest>

#include "tests/net/mesh/coordinator_script.h"

namespace atl {
namespace {

const std::string kSha(64, 'f');

RunConfig run_with_tasks(std::uint32_t islands, std::uint32_t every) {
  RunConfig run = run_for(islands);
  run.evaluation = {every,
                    {{"choices", TaskKind::kMultipleChoice, 4, 9, kSha}, {"texts", TaskKind::kRolling, 1, 9, kSha}}};
  return run;
}

// Of a mesh in which nobody averages by itself: whether that island was asked in the newest round.
bool is_asked(SimulatedMesh& mesh, int island) { return received<HubRoundBegin>(mesh.island(island)).back().evaluate; }

std::vector<EvaluatedState> evaluated(const SimulatedMesh& mesh) {
  std::vector<EvaluatedState> found;
  for (const CoordinatorNews& news : mesh.news()) {
    if (const auto* told = std::get_if<StateEvaluated>(&news)) found.push_back(told->found);
  }
  return found;
}

IslandEvaluation answer(std::uint32_t outer_step, double accuracy) {
  return {OuterStep{outer_step}, 0, {accuracy, accuracy, accuracy}};
}

void commit_round(SimulatedMesh& mesh, int islands) {
  all_ready(mesh, islands);
  const std::uint32_t attempt = received<HubAttempt>(mesh.island(1)).back().attempt.value;
  for (int i = 1; i <= islands; ++i) have(mesh, i, attempt);
  deliver(mesh);
}

}  // namespace

class CoordinatorEvaluationTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void a_run_without_tasks_asks_nobody();
  void every_so_many_rounds_one_island_in_turn_is_asked();
  void who_validates_a_state_evaluates_it();
  void what_a_liar_says_moves_one_point_and_nothing_else_data();
  void what_a_liar_says_moves_one_point_and_nothing_else();
  void of_several_answers_the_one_in_the_middle_counts();
  void an_answer_that_comes_rounds_later_counts();
  void after_a_rollback_answers_to_what_was_undone_are_void();
  void the_last_state_is_evaluated_before_all_are_sent_home();
  void an_island_that_never_answers_holds_up_the_end_for_a_minute();
};

void CoordinatorEvaluationTest::a_run_without_tasks_asks_nobody() {
  SimulatedMesh mesh(run_for(2));
  begin_first_round(mesh, 2);
  for (int i = 1; i <= 2; ++i) QVERIFY(!is_asked(mesh, i));
  mesh.say(1, answer(0, 0.5));
  QVERIFY(evaluated(mesh).empty());
}

void CoordinatorEvaluationTest::every_so_many_rounds_one_island_in_turn_is_asked() {
  SimulatedMesh mesh(run_with_tasks(2, 2));
  begin_first_round(mesh, 2);
  std::vector<std::vector<bool>> asked;
  for (int round = 0; round < 4; ++round) {
    asked.push_back({is_asked(mesh, 1), is_asked(mesh, 2)});
    commit_round(mesh, 2);
  }
  QVERIFY(asked == (std::vector<std::vector<bool>>{{true, false}, {false, false}, {false, true}, {false, false}}));
}

void CoordinatorEvaluationTest::who_validates_a_state_evaluates_it() {
  RunConfig run = run_with_tasks(3, 1);
  run.validate_every = 1;
  SimulatedMesh mesh(run);
  begin_first_round(mesh, 3);
  // The first loss of all is asked of all.
  for (int i = 1; i <= 3; ++i) QVERIFY(received<HubRoundBegin>(mesh.island(i)).back().validate && is_asked(mesh, i));
}

void CoordinatorEvaluationTest::what_a_liar_says_moves_one_point_and_nothing_else_data() {
  QTest::addColumn<int>("island");
  QTest::addColumn<quint32>("outer_step");
  QTest::addColumn<quint32>("task");
  QTest::addColumn<QList<double>>("figures");
  QTest::newRow("not asked") << 2 << 0u << 0u << QList<double>{0.5, 0.5, 0.5};
  QTest::newRow("of another state") << 1 << 7u << 0u << QList<double>{0.5, 0.5, 0.5};
  QTest::newRow("no such task") << 1 << 0u << 4'000'000'000u << QList<double>{0.5, 0.5, 0.5};
  QTest::newRow("better than all") << 1 << 0u << 0u << QList<double>{1.5, 0.5, 0.5};
  QTest::newRow("worse than nothing") << 1 << 0u << 0u << QList<double>{-0.1, 0.5, 0.5};
  QTest::newRow("no number") << 1 << 0u << 0u << QList<double>{std::nan(""), 0.5, 0.5};
  QTest::newRow("without end") << 1 << 0u << 1u << QList<double>{HUGE_VAL, 0.5, 0.5};
  QTest::newRow("too few") << 1 << 0u << 0u << QList<double>{0.5};
  QTest::newRow("too many") << 1 << 0u << 0u << QList<double>{0.5, 0.5, 0.5, 0.5};
  QTest::newRow("none") << 1 << 0u << 0u << QList<double>{};
}

void CoordinatorEvaluationTest::what_a_liar_says_moves_one_point_and_nothing_else() {
  QFETCH(const int, island);
  QFETCH(const quint32, outer_step);
  QFETCH(const quint32, task);
  QFETCH(const QList<double>, figures);
  SimulatedMesh mesh(run_with_tasks(2, 1));
  begin_first_round(mesh, 2);

  mesh.say(island, IslandEvaluation{OuterStep{outer_step}, task, {figures.begin(), figures.end()}});

  QVERIFY(evaluated(mesh).empty());
  QVERIFY(!mesh.island(island).goodbye.has_value());
  mesh.say(1, answer(0, 1.0));  // a lie that nobody can see: it is the point that was asked for
  mesh.say(1, answer(0, 0.5));  // and counts once
  QCOMPARE(evaluated(mesh).size(), std::size_t{1});
  QCOMPARE(evaluated(mesh)[0].figures, (std::vector<double>{1.0, 1.0, 1.0}));
  commit_round(mesh, 2);
  QCOMPARE(mesh.hub().committed(), OuterStep{1});
  QVERIFY(!mesh.hub().standstill());
}

void CoordinatorEvaluationTest::of_several_answers_the_one_in_the_middle_counts() {
  const RunConfig run = run_with_tasks(1, 1);
  EvaluationBook book(run.evaluation);
  const IslandId a{"a"}, b{"b"}, c{"c"};
  book.ask(OuterStep{4}, {a, b, c});
  QCOMPARE(book.report(a, {OuterStep{4}, 0, {1, 0.25, 0}})->figures, (std::vector<double>{1, 0.25, 0}));
  QCOMPARE(book.report(b, {OuterStep{4}, 0, {0.5, 0.5, 0.5}})->figures, (std::vector<double>{0.5, 0.25, 0}));
  const auto all = book.report(c, {OuterStep{4}, 0, {0.25, 1, 1}});
  QCOMPARE(all->figures, (std::vector<double>{0.5, 0.5, 0.5}));
  QCOMPARE(all->islands, 3u);
  QCOMPARE(all->task, std::string("choices"));
  QCOMPARE(book.report(c, {OuterStep{4}, 1, {8, 2, 1}})->figures, (std::vector<double>{8, 2, 1}));  // another task
}

void CoordinatorEvaluationTest::an_answer_that_comes_rounds_later_counts() {
  SimulatedMesh mesh(run_with_tasks(2, 1));
  begin_first_round(mesh, 2);
  commit_round(mesh, 2);
  commit_round(mesh, 2);
  mesh.say(1, answer(0, 0.25));
  QCOMPARE(evaluated(mesh).size(), std::size_t{1});
  QCOMPARE(evaluated(mesh)[0].outer_step, OuterStep{0});
  // But not for ever: of a run without end no more is remembered than the newest states.
  EvaluationBook book(run_with_tasks(1, 1).evaluation);
  for (std::uint32_t step = 0; step < 100; ++step) book.ask(OuterStep{step}, {IslandId{"a"}});
  QVERIFY(!book.report(IslandId{"a"}, answer(0, 0.25)));
  QVERIFY(book.report(IslandId{"a"}, answer(99, 0.25)));
}

void CoordinatorEvaluationTest::after_a_rollback_answers_to_what_was_undone_are_void() {
  SimulatedMesh mesh(run_with_tasks(2, 1));
  mesh.keeps_states = true;
  begin_first_round(mesh, 2);
  commit_round(mesh, 2);
  QVERIFY(is_asked(mesh, 2));

  mesh.roll_back(OuterStep{0});
  deliver(mesh);
  mesh.say(2, answer(1, 0.75));

  QVERIFY(evaluated(mesh).empty());
}

void CoordinatorEvaluationTest::the_last_state_is_evaluated_before_all_are_sent_home() {
  for (const std::uint32_t validate_every : {0u, 1u}) {
    RunConfig run = run_with_tasks(2, 5);
    run.max_rounds = 1;
    run.validate_every = validate_every;
    run.validation_rise = 0;
    SimulatedMesh mesh(run);
    begin_first_round(mesh, 2);
    commit_round(mesh, 2);
    const HubRoundBegin last = received<HubRoundBegin>(mesh.island(1)).back();
    QVERIFY(last.evaluate && last.inner_steps == 0 && last.validate == (validate_every > 0));
    if (last.validate) mesh.say(1, IslandValidation{OuterStep{1}, 1.5});
    mesh.say(1, answer(1, 0.5));
    QVERIFY(!mesh.island(2).goodbye.has_value());  // it has another task to tell of

    mesh.say(1, IslandReady{OuterStep{1}, 0, 0, 0});

    for (int i = 1; i <= 2; ++i) QVERIFY(mesh.island(i).goodbye && mesh.island(i).goodbye->finished);
    QCOMPARE(evaluated(mesh).back().outer_step, OuterStep{1});
  }
}

void CoordinatorEvaluationTest::an_island_that_never_answers_holds_up_the_end_for_a_minute() {
  RunConfig run = run_with_tasks(2, 5);
  run.max_rounds = 1;
  SimulatedMesh mesh(run);
  begin_first_round(mesh, 2);
  commit_round(mesh, 2);
  for (int i = 0; i < 30; ++i) mesh.pass(2s);
  QCOMPARE(mesh.hub().phase(), RoundCoordinator::Phase::kFinished);
}

}  // namespace atl

QTEST_GUILESS_MAIN(atl::CoordinatorEvaluationTest)
#include "coordinator_evaluation_test.moc"
