// Joining, stage by stage to the first step, with every way in which it fails, over an agent in memory.
#include "app/core/join_model.h"

#include <QtTest>

#include "tests/app/core/join_fixture.h"
#include "tests/fakes/patience.h"

using namespace atl;
using namespace atl::test;

namespace {

// The agent's own words while no trainer runs.
nlohmann::json without_trainer(const char* state, const char* wish, const char* error = "") {
  nlohmann::json agent = unjoined_state()["agent"];
  agent["wish"] = agent["followed"] = wish;
  return {{"state", state}, {"run_id", "run-1"}, {"pid", 0}, {"error", error}, {"agent", agent}};
}

nlohmann::json waiting_for_restart(double seconds) {
  nlohmann::json state = without_trainer("error", "run", "it was killed; starts again soon");
  state["agent"]["restart_in_seconds"] = seconds;
  state["agent"]["last_exit"] = {{"cause", "crashed"}, {"text", "it was killed"}, {"unix_seconds", 1.0}};
  return state;
}

using ViewStatus = StageView::Status;

}  // namespace

class JoinModelTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void stages_are_followed_to_the_first_step();
  void without_word_of_stages_the_state_tells();
  void before_the_enrolment_a_retry_uses_the_invite_again();
  void after_the_enrolment_a_retry_comes_back_without_the_invite();
  void a_trainer_that_fails_on_the_way_fails_its_stage();
  void a_trainer_that_is_started_again_is_followed();
  void until_then_its_stage_says_why_and_when();
  void without_word_of_stages_a_restart_is_told_by_the_agents_state();
  void it_is_final_once_the_agent_gives_up();
  void it_is_final_once_the_wish_is_gone_data();
  void it_is_final_once_the_wish_is_gone();
  void the_last_words_of_a_trainer_are_not_the_end();
  void a_machine_that_is_not_fit_fails_the_check_and_nothing_else();
  void to_cancel_is_safe_at_every_stage_data();
  void to_cancel_is_safe_at_every_stage();
  void an_agent_that_is_busy_says_so();
  void an_agent_that_is_restarted_meanwhile_ends_it();
};

void JoinModelTest::stages_are_followed_to_the_first_step() {
  JoinFixture f;
  QVERIFY(f.begin());
  QVERIFY(f.join.joining());
  const nlohmann::json params = f.agent.last_params("join");
  QCOMPARE(params["invite"], text_of(good_invite()));
  QCOMPARE(params["name"], "laptop");
  QCOMPARE(params["gpus"], "all");
  QVERIFY(!params.contains("listen"));

  f.progress("key", "running");
  f.progress("key", "done");
  f.progress("enrol", "running");
  f.progress("enrol", "done");
  f.progress("check", "done");
  QVERIFY(f.reaches(JoinStage::kCheck, ViewStatus::kDone));
  QCOMPARE(f.join.stage(JoinStage::kTrainer).status, ViewStatus::kWaiting);
  f.agent.tell("join.done", {{"ok", true}, {"text", "joined gcide-demo"}});
  f.progress("trainer", "done");
  f.progress("state", "running",
             {{"done_bytes", 250u}, {"total_bytes", 1000u}, {"bytes_per_second", 50.0}, {"seconds_left", 15.0}});
  QVERIFY(f.reaches(JoinStage::kState, ViewStatus::kRunning));
  QCOMPARE(f.join.stage(JoinStage::kData).status, ViewStatus::kDone);
  QCOMPARE(f.join.stage(JoinStage::kState).done_bytes, 250u);
  QCOMPARE(*f.join.stage(JoinStage::kState).seconds_left, 15.0);
  QVERIFY(!f.join.joined());
  f.progress("first_step", "done");

  QVERIFY(QTest::qWaitFor([&] { return f.join.joined(); }));
  QVERIFY(!f.join.joining() && !f.join.problem());
  for (int i = 0; i < kJoinStages; ++i) QCOMPARE(f.join.stage(static_cast<JoinStage>(i)).status, ViewStatus::kDone);
}

void JoinModelTest::without_word_of_stages_the_state_tells() {
  JoinFixture f;
  QVERIFY(f.begin());
  f.agent.tell("join.done", {{"ok", true}, {"text", "joined"}});
  QVERIFY(f.reaches(JoinStage::kTrainer, ViewStatus::kRunning));
  f.agent.become(test::training_state());
  f.agent.tell_state("state.changed", {{"state", "recovering"}, {"tokens", 0u}, {"inner_step", 0u}});
  QVERIFY(f.reaches(JoinStage::kState, ViewStatus::kRunning));
  f.agent.tell_state("state.changed", {{"state", "waiting"}});
  QVERIFY(f.reaches(JoinStage::kFirstStep, ViewStatus::kRunning));
  QVERIFY(!f.join.joined());

  f.agent.tell_state("step", {{"state", "training"}, {"tokens", 4096u}, {"inner_step", 1u}});

  QVERIFY(QTest::qWaitFor([&] { return f.join.joined(); }));
}

void JoinModelTest::before_the_enrolment_a_retry_uses_the_invite_again() {
  JoinFixture f;
  QVERIFY(f.begin());
  f.progress("key", "done");
  f.agent.tell("join.done", {{"ok", false}, {"code", "unreachable"}, {"message", "no route"}});
  QVERIFY(QTest::qWaitFor([&] { return f.join.problem().has_value(); }));

  f.join.retry();

  QVERIFY(f.join.joining() && !f.join.problem());
  QTRY_COMPARE(f.agent.count("join"), 2u);
  QCOMPARE(f.agent.last_params("join")["invite"], text_of(good_invite()));
  QCOMPARE(f.join.stage(JoinStage::kKey).status, ViewStatus::kDone);
}

void JoinModelTest::after_the_enrolment_a_retry_comes_back_without_the_invite() {
  JoinFixture f;
  QVERIFY(f.begin());
  f.progress("enrol", "done");
  f.progress("check", "failed", {{"text", "disk.free 1 GB"}});
  f.agent.tell("join.done",
               {{"ok", false}, {"code", "permission_denied"}, {"message", "this machine fails the node check"}});
  QVERIFY(QTest::qWaitFor([&] { return f.join.problem().has_value(); }));
  QCOMPARE(f.join.stage(JoinStage::kCheck).status, ViewStatus::kFailed);

  f.join.retry();

  QTRY_COMPARE(f.agent.count("join"), 2u);
  QVERIFY(!f.agent.last_params("join").contains("invite"));
  QCOMPARE(f.agent.last_params("join")["name"], "laptop");
}

void JoinModelTest::a_trainer_that_fails_on_the_way_fails_its_stage() {
  JoinFixture f;
  QVERIFY(f.begin());
  f.agent.tell("join.done", {{"ok", true}, {"text", "joined"}});
  QVERIFY(f.reaches(JoinStage::kTrainer, ViewStatus::kRunning));

  f.agent.tell_state("state.changed",
                     {{"state", "error"}, {"run_id", "run-1"}, {"error", "out of GPU memory; lower the batch"}});

  QVERIFY(f.reaches(JoinStage::kTrainer, ViewStatus::kFailed));
  QCOMPARE(f.join.problem()->code, ErrorCode::kTrainerFailed);
  QCOMPARE(f.join.problem()->message, std::string("out of GPU memory; lower the batch"));
}

void JoinModelTest::a_trainer_that_is_started_again_is_followed() {
  JoinFixture f;
  QVERIFY(f.begin_training());
  f.progress("state", "failed", {{"text", "nobody has the state"}});
  QVERIFY(f.reaches(JoinStage::kState, ViewStatus::kRetrying));
  QVERIFY(f.join.joining() && !f.join.problem());

  f.progress("trainer", "running");

  QVERIFY(f.reaches(JoinStage::kTrainer, ViewStatus::kRunning));
  QVERIFY(f.join.joining() && !f.join.problem() && f.join.retrying() == nullptr);
  QCOMPARE(f.join.stage(JoinStage::kState).status, ViewStatus::kWaiting);
  f.progress("first_step", "done");
  QVERIFY(QTest::qWaitFor([&] { return f.join.joined(); }));
}

void JoinModelTest::until_then_its_stage_says_why_and_when() {
  JoinFixture f;
  QVERIFY(f.begin_training());
  f.progress("data", "failed", {{"text", "the disk is full"}});
  QVERIFY(f.reaches(JoinStage::kData, ViewStatus::kRetrying));
  QCOMPARE(f.join.retrying(), &f.join.stage(JoinStage::kData));
  QCOMPARE(f.join.retrying()->text, std::string("the disk is full"));
  QVERIFY(!f.join.retrying()->retry_in_seconds);

  f.agent_says(waiting_for_restart(8));
  QVERIFY(QTest::qWaitFor([&] { return f.join.retrying()->retry_in_seconds == 8; }));
  f.agent_says(waiting_for_restart(7));

  QVERIFY(QTest::qWaitFor([&] { return f.join.retrying()->retry_in_seconds == 7; }));
  QCOMPARE(f.join.retrying()->text, std::string("the disk is full"));
  QCOMPARE(f.join.stage(JoinStage::kTrainer).status, ViewStatus::kDone);
  QVERIFY(f.join.joining() && !f.join.problem());
}

void JoinModelTest::without_word_of_stages_a_restart_is_told_by_the_agents_state() {
  JoinFixture f;
  QVERIFY(f.begin_training());

  f.agent_says(waiting_for_restart(4));

  QVERIFY(f.reaches(JoinStage::kTrainer, ViewStatus::kRetrying));
  QCOMPARE(f.join.retrying()->text, std::string("it was killed"));
  f.agent.tell_state("state.changed", {{"state", "recovering"}, {"pid", 4712}, {"tokens", 0u}});
  QVERIFY(f.reaches(JoinStage::kState, ViewStatus::kRunning));
  QVERIFY(f.join.retrying() == nullptr && f.join.joining());
}

void JoinModelTest::it_is_final_once_the_agent_gives_up() {
  JoinFixture f;
  QVERIFY(f.begin_training());
  f.progress("state", "failed", {{"text", "nobody has the state"}});
  f.agent_says(waiting_for_restart(300));
  QVERIFY(QTest::qWaitFor([&] { return f.join.retrying() && f.join.retrying()->retry_in_seconds; }));

  f.agent_says(without_trainer("error", "run", "nobody has the state; when put right: resume"));

  QVERIFY(f.reaches(JoinStage::kState, ViewStatus::kFailed));
  QCOMPARE(f.join.problem()->code, ErrorCode::kTrainerFailed);
  QCOMPARE(f.join.problem()->message, std::string("nobody has the state; when put right: resume"));
  QVERIFY(!f.join.joining() && !f.join.joined() && f.join.retrying() == nullptr);
  f.progress("trainer", "running");  // somebody put it right
  QVERIFY(f.reaches(JoinStage::kTrainer, ViewStatus::kRunning));
  QVERIFY(f.join.joining());
}

void JoinModelTest::it_is_final_once_the_wish_is_gone_data() {
  QTest::addColumn<QString>("state");
  QTest::addColumn<QString>("wish");
  QTest::newRow("stopped") << "stopped"
                           << "stop";
  QTest::newRow("paused") << "paused"
                          << "pause";
  QTest::newRow("left") << "unjoined"
                        << "run";
}

void JoinModelTest::it_is_final_once_the_wish_is_gone() {
  QFETCH(const QString, state);
  QFETCH(const QString, wish);
  JoinFixture f;
  QVERIFY(f.begin_training());
  f.progress("first_step", "failed", {{"text", "it was asked to end"}});
  QVERIFY(f.reaches(JoinStage::kFirstStep, ViewStatus::kRetrying));

  f.agent_says(without_trainer(state.toUtf8(), wish.toUtf8()));

  QVERIFY(f.reaches(JoinStage::kFirstStep, ViewStatus::kFailed));
  QCOMPARE(f.join.problem()->code, ErrorCode::kAborted);
  QVERIFY(!f.join.joining() && !f.join.joined());
}

// It says "error" while it ends; what becomes of it the agent says.
void JoinModelTest::the_last_words_of_a_trainer_are_not_the_end() {
  JoinFixture f;
  QVERIFY(f.begin_training());

  f.agent.tell_state("state.changed", {{"state", "error"}, {"pid", 4711}, {"error", "the loss is not finite"}});
  f.progress("state", "failed", {{"text", "the loss is not finite"}});

  QVERIFY(f.reaches(JoinStage::kState, ViewStatus::kRetrying));
  QVERIFY(f.join.joining() && !f.join.problem());
}

void JoinModelTest::a_machine_that_is_not_fit_fails_the_check_and_nothing_else() {
  JoinFixture f;
  QVERIFY(f.begin());
  f.progress("check", "running");  // before the invite is used
  QVERIFY(f.reaches(JoinStage::kCheck, ViewStatus::kRunning));
  QCOMPARE(f.join.stage(JoinStage::kKey).status, ViewStatus::kWaiting);
  f.progress("check", "failed", {{"text", "disk.free 1 GB"}});
  f.agent.tell("join.done", {{"ok", false}, {"code", "permission_denied"}, {"message", "it fails the node check"}});

  QVERIFY(QTest::qWaitFor([&] { return f.join.problem().has_value(); }));

  QCOMPARE(f.join.stage(JoinStage::kCheck).status, ViewStatus::kFailed);
  QCOMPARE(f.join.stage(JoinStage::kCheck).text, std::string("it fails the node check"));
  QCOMPARE(f.join.stage(JoinStage::kKey).status, ViewStatus::kWaiting);
  f.join.retry();
  QTRY_COMPARE(f.agent.count("join"), 2u);
  QVERIFY(f.agent.last_params("join").contains("invite"));
}

void JoinModelTest::to_cancel_is_safe_at_every_stage_data() {
  QTest::addColumn<QString>("stage");
  for (const char* stage : {"key", "enrol", "check", "trainer", "data", "state", "first_step"})
    QTest::newRow(stage) << stage;
}

void JoinModelTest::to_cancel_is_safe_at_every_stage() {
  QFETCH(const QString, stage);
  JoinFixture f;
  QVERIFY(f.begin());
  f.progress(stage.toUtf8().constData(), "running");
  QTest::qWait(10);

  f.join.cancel();

  QVERIFY(!f.join.joining() && !f.join.problem());
  QTRY_COMPARE(f.agent.count("join.cancel"), 1u);
  f.agent.tell("join.done", {{"ok", false}, {"code", "aborted"}, {"message", "cancelled"}});
  QTest::qWait(10);
  QVERIFY(!f.join.problem());
  f.join.join({.name = "again", .listen = "", .advertise = ""});
  QTRY_COMPARE(f.agent.count("join"), 2u);
}

void JoinModelTest::an_agent_that_is_busy_says_so() {
  JoinFixture f;
  f.agent.fail("join", ErrorCode::kPermissionDenied, "this agent is at such work already");

  QVERIFY(f.begin());

  QVERIFY(QTest::qWaitFor([&] { return f.join.problem().has_value(); }));
  QCOMPARE(f.join.problem()->message, std::string("this agent is at such work already"));
  QCOMPARE(f.join.stage(JoinStage::kKey).status, ViewStatus::kFailed);
}

void JoinModelTest::an_agent_that_is_restarted_meanwhile_ends_it() {
  JoinFixture f;
  QVERIFY(f.begin());
  f.progress("key", "done");
  QVERIFY(f.reaches(JoinStage::kKey, ViewStatus::kDone));

  f.agent.restart();

  QVERIFY(QTest::qWaitFor([&] { return f.join.problem().has_value(); }));
  QVERIFY(f.join.problem()->message.find("restarted") != std::string::npos);
  f.join.retry();
  QVERIFY(f.join.joining());
}

QTEST_GUILESS_MAIN(JoinModelTest)
#include "join_model_test.moc"
