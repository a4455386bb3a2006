// Joining, from a pasted invite to the first step, with every way in which it fails, over an agent in memory.
#include "app/core/join_model.h"

#include <QSignalSpy>
#include <QtTest>

#include "net/base/sha256.h"
#include "tests/app/core/fake_agent.h"

using namespace atl;
using namespace std::chrono_literals;
using atl::test::FakeAgent;

namespace {

constexpr LinkTiming kFast{.first_retry = 10ms, .longest_retry = 80ms, .answer_time = 5s, .hello_time = 5s};
constexpr std::chrono::sys_seconds kNow{1'763'725'000s};

Invite good_invite() {
  Invite invite;
  invite.hub = {{"hub.example.org", 47000}};
  invite.run_id = "run-1";
  invite.run_name = "gcide-demo";
  invite.authority_pin.fill(std::byte{0x5a});
  invite.id = "inv-1";
  invite.secret = Bytes(32, std::byte{7});
  invite.expires = kNow + 1h;
  return invite;
}

std::string text_of(const Invite& invite) { return *encode_invite(invite); }

nlohmann::json looked(const char* pin = nullptr, const char* run = "run-1") {
  return {{"ok", true},
          {"address", "hub.example.org:47000"},
          {"run_id", run},
          {"run_name", "gcide-demo"},
          {"operator", "Ada"},
          {"model", "150m"},
          {"parameters", 150'000'000u},
          {"pin", pin != nullptr ? std::string(pin) : to_hex(good_invite().authority_pin)}};
}

// The agent's own words while no trainer runs.
nlohmann::json without_trainer(const char* state, const char* wish, const char* error = "") {
  nlohmann::json agent = test::unjoined_state()["agent"];
  agent["wish"] = agent["followed"] = wish;
  return {{"state", state}, {"run_id", "run-1"}, {"pid", 0}, {"error", error}, {"agent", agent}};
}

nlohmann::json waiting_for_restart(double seconds) {
  nlohmann::json state = without_trainer("error", "run", "it was killed; starts again soon");
  state["agent"]["restart_in_seconds"] = seconds;
  state["agent"]["last_exit"] = {{"cause", "crashed"}, {"text", "it was killed"}, {"unix_seconds", 1.0}};
  return state;
}

class Fixture {
 public:
  Fixture() : link(agent.open(), kFast), join(link) {
    agent.become(test::unjoined_state());
    QObject::connect(&link, &AgentLink::event, &link, [this](const ControlEvent& event) {
      const auto state = node_state_from_json(event.data);
      join.take(event, state.ok() ? &*state : nullptr);
    });
    QObject::connect(&link, &AgentLink::eventsLost, &link, [this] { join.interrupted(); });
  }
  bool connect() {
    link.start();
    return QTest::qWaitFor([this] { return link.state() == LinkState::kConnected; });
  }
  bool begin() {
    if (!connect() || !join.setInvite(QString::fromStdString(text_of(good_invite())), kNow).ok()) return false;
    join.join({.name = "laptop", .listen = "", .advertise = ""});
    return QTest::qWaitFor([this] { return agent.count("join") == 1; });
  }
  bool begin_training() {
    if (!begin()) return false;
    agent.tell("join.done", {{"ok", true}, {"text", "joined"}});
    return reaches(JoinStage::kTrainer, StageView::Status::kRunning);
  }
  void progress(const char* stage, const char* status, nlohmann::json more = nlohmann::json::object()) {
    more["stage"] = stage;
    more["status"] = status;
    agent.tell("join.progress", more);
  }
  // As the agent itself tells a state, its own part included.
  void agent_says(const nlohmann::json& changes) {
    agent.say(changes);
    agent.tell("state.changed", agent.state());
  }
  bool reaches(JoinStage stage, StageView::Status status) {
    return QTest::qWaitFor([&] { return join.stage(stage).status == status; });
  }

  FakeAgent agent;
  AgentLink link;
  JoinModel join;
};

using StageStatus = StageView::Status;

}  // namespace

class JoinModelTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void a_pasted_invite_is_read_offline();
  void a_bad_invite_is_told_by_its_defect_data();
  void a_bad_invite_is_told_by_its_defect();
  void the_hub_says_who_it_is();
  void a_hub_with_another_key_has_no_way_around();
  void a_hub_that_cannot_be_asked_is_told_by_its_cause_data();
  void a_hub_that_cannot_be_asked_is_told_by_its_cause();
  void stages_are_followed_to_the_first_step();
  void without_word_of_stages_the_state_tells();
  void a_refused_invite_fails_with_its_code_data();
  void a_refused_invite_fails_with_its_code();
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
  void a_look_at_another_invite_is_not_this_ones();
  void to_cancel_is_safe_at_every_stage_data();
  void to_cancel_is_safe_at_every_stage();
  void an_agent_that_is_busy_says_so();
  void an_agent_that_is_restarted_meanwhile_ends_it();
  void an_invite_is_forgotten_once_it_is_used();
};

void JoinModelTest::a_pasted_invite_is_read_offline() {
  Fixture f;
  const QString text = QString::fromStdString(text_of(good_invite()));
  // As a link, and as a mail program breaks it.
  for (const QString& pasted : {text, "atoll:join?i=" + text, "  " + text.left(20) + "\n " + text.mid(20) + "\r\n"}) {
    QVERIFY(f.join.setInvite(pasted, kNow).ok());
    QCOMPARE(f.join.invite()->run_name, std::string("gcide-demo"));
  }
  QCOMPARE(f.agent.attempts(), 0u);
}

void JoinModelTest::a_bad_invite_is_told_by_its_defect_data() {
  QTest::addColumn<QString>("text");
  QTest::addColumn<int>("code");
  const QString good = QString::fromStdString(text_of(good_invite()));
  Invite old = good_invite();
  old.expires = kNow - 1h;
  QTest::newRow("nothing") << "" << static_cast<int>(ErrorCode::kInviteMalformed);
  QTest::newRow("something else") << "https://example.org" << static_cast<int>(ErrorCode::kInviteMalformed);
  QTest::newRow("a part") << good.left(good.size() - 3) << static_cast<int>(ErrorCode::kInviteMalformed);
  QTest::newRow("changed") << QString(good).replace(30, 1, good[30] == 'A' ? "B" : "A")
                           << static_cast<int>(ErrorCode::kInviteMalformed);
  QTest::newRow("expired") << QString::fromStdString(text_of(old)) << static_cast<int>(ErrorCode::kInviteExpired);
  QTest::newRow("newer") << QString(good).replace("atoll1.", "atoll2.")
                         << static_cast<int>(ErrorCode::kVersionUnsupported);
}

void JoinModelTest::a_bad_invite_is_told_by_its_defect() {
  QFETCH(const QString, text);
  QFETCH(const int, code);
  Fixture f;

  const Status status = f.join.setInvite(text, kNow);

  QVERIFY(!status.ok() && !f.join.invite());
  QCOMPARE(static_cast<int>(status.error().code), code);
}

void JoinModelTest::the_hub_says_who_it_is() {
  Fixture f;
  QVERIFY(f.connect());
  QVERIFY(f.join.setInvite(QString::fromStdString(text_of(good_invite())), kNow).ok());
  QSignalSpy changed(&f.join, &JoinModel::lookChanged);

  f.join.look();
  QVERIFY(f.join.looking());
  QTRY_COMPARE(f.agent.count("invite.look"), 1u);
  f.agent.tell("invite.looked", looked());

  QTRY_VERIFY(f.join.hub());
  QVERIFY(!f.join.looking() && !f.join.lookProblem());
  QCOMPARE(f.join.hub()->operator_name, std::string("Ada"));
  QCOMPARE(f.join.hub()->parameters, 150'000'000u);
  QCOMPARE(changed.size(), 2);
}

void JoinModelTest::a_hub_with_another_key_has_no_way_around() {
  Fixture f;
  QVERIFY(f.connect());
  QVERIFY(f.join.setInvite(QString::fromStdString(text_of(good_invite())), kNow).ok());
  f.join.look();
  f.agent.tell("invite.looked", looked("00ff"));
  QTRY_VERIFY(f.join.lookProblem());
  QCOMPARE(f.join.lookProblem()->code, ErrorCode::kPinMismatch);
  QVERIFY(!f.join.hub());

  f.join.look();
  f.agent.tell("invite.looked", looked(nullptr, "run-2"));
  QTRY_VERIFY(f.join.lookProblem());
  QCOMPARE(f.join.lookProblem()->code, ErrorCode::kInviteOtherRun);
}

void JoinModelTest::a_hub_that_cannot_be_asked_is_told_by_its_cause_data() {
  QTest::addColumn<QString>("code");
  QTest::addColumn<int>("expected");
  QTest::newRow("down") << "unreachable" << static_cast<int>(ErrorCode::kUnreachable);
  QTest::newRow("pin") << "pin_mismatch" << static_cast<int>(ErrorCode::kPinMismatch);
  QTest::newRow("version") << "version_unsupported" << static_cast<int>(ErrorCode::kVersionUnsupported);
  QTest::newRow("a newer cause") << "tired" << static_cast<int>(ErrorCode::kInternal);
}

void JoinModelTest::a_hub_that_cannot_be_asked_is_told_by_its_cause() {
  QFETCH(const QString, code);
  QFETCH(const int, expected);
  Fixture f;
  QVERIFY(f.connect());
  QVERIFY(f.join.setInvite(QString::fromStdString(text_of(good_invite())), kNow).ok());
  f.join.look();

  f.agent.tell("invite.looked", {{"ok", false}, {"code", code.toStdString()}, {"message", "why"}});

  QTRY_VERIFY(f.join.lookProblem());
  QCOMPARE(static_cast<int>(f.join.lookProblem()->code), expected);
  QCOMPARE(f.join.lookProblem()->message, std::string("why"));
}

void JoinModelTest::stages_are_followed_to_the_first_step() {
  Fixture f;
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
  QVERIFY(f.reaches(JoinStage::kCheck, StageStatus::kDone));
  QCOMPARE(f.join.stage(JoinStage::kTrainer).status, StageStatus::kWaiting);
  f.agent.tell("join.done", {{"ok", true}, {"text", "joined gcide-demo"}});
  f.progress("trainer", "done");
  f.progress("state", "running",
             {{"done_bytes", 250u}, {"total_bytes", 1000u}, {"bytes_per_second", 50.0}, {"seconds_left", 15.0}});
  QVERIFY(f.reaches(JoinStage::kState, StageStatus::kRunning));
  QCOMPARE(f.join.stage(JoinStage::kData).status, StageStatus::kDone);
  QCOMPARE(f.join.stage(JoinStage::kState).done_bytes, 250u);
  QCOMPARE(*f.join.stage(JoinStage::kState).seconds_left, 15.0);
  QVERIFY(!f.join.joined());
  f.progress("first_step", "done");

  QVERIFY(QTest::qWaitFor([&] { return f.join.joined(); }));
  QVERIFY(!f.join.joining() && !f.join.problem());
  for (int i = 0; i < kJoinStages; ++i) QCOMPARE(f.join.stage(static_cast<JoinStage>(i)).status, StageStatus::kDone);
}

void JoinModelTest::without_word_of_stages_the_state_tells() {
  Fixture f;
  QVERIFY(f.begin());
  f.agent.tell("join.done", {{"ok", true}, {"text", "joined"}});
  QVERIFY(f.reaches(JoinStage::kTrainer, StageStatus::kRunning));
  f.agent.become(test::training_state());
  f.agent.tell_state("state.changed", {{"state", "recovering"}, {"tokens", 0u}, {"inner_step", 0u}});
  QVERIFY(f.reaches(JoinStage::kState, StageStatus::kRunning));
  f.agent.tell_state("state.changed", {{"state", "waiting"}});
  QVERIFY(f.reaches(JoinStage::kFirstStep, StageStatus::kRunning));
  QVERIFY(!f.join.joined());

  f.agent.tell_state("step", {{"state", "training"}, {"tokens", 4096u}, {"inner_step", 1u}});

  QVERIFY(QTest::qWaitFor([&] { return f.join.joined(); }));
}

void JoinModelTest::a_refused_invite_fails_with_its_code_data() {
  QTest::addColumn<int>("code");
  for (const ErrorCode code :
       {ErrorCode::kInviteUsed, ErrorCode::kInviteUnknown, ErrorCode::kInviteExpired, ErrorCode::kPinMismatch,
        ErrorCode::kUnreachable, ErrorCode::kPermissionDenied, ErrorCode::kTimeout}) {
    QTest::newRow(std::string(to_string(code)).c_str()) << static_cast<int>(code);
  }
}

void JoinModelTest::a_refused_invite_fails_with_its_code() {
  QFETCH(const int, code);
  Fixture f;
  QVERIFY(f.begin());
  f.progress("key", "done");
  f.progress("enrol", "running");

  f.agent.tell("join.done", {{"ok", false}, {"code", to_string(static_cast<ErrorCode>(code))}, {"message", "why"}});

  QVERIFY(f.reaches(JoinStage::kEnrol, StageStatus::kFailed));
  QCOMPARE(static_cast<int>(f.join.problem()->code), code);
  QCOMPARE(f.join.stage(JoinStage::kEnrol).text, std::string("why"));
  QCOMPARE(f.join.stage(JoinStage::kKey).status, StageStatus::kDone);
  QVERIFY(!f.join.joining() && !f.join.joined());
}

void JoinModelTest::before_the_enrolment_a_retry_uses_the_invite_again() {
  Fixture f;
  QVERIFY(f.begin());
  f.progress("key", "done");
  f.agent.tell("join.done", {{"ok", false}, {"code", "unreachable"}, {"message", "no route"}});
  QVERIFY(QTest::qWaitFor([&] { return f.join.problem().has_value(); }));

  f.join.retry();

  QVERIFY(f.join.joining() && !f.join.problem());
  QTRY_COMPARE(f.agent.count("join"), 2u);
  QCOMPARE(f.agent.last_params("join")["invite"], text_of(good_invite()));
  QCOMPARE(f.join.stage(JoinStage::kKey).status, StageStatus::kDone);
}

void JoinModelTest::after_the_enrolment_a_retry_comes_back_without_the_invite() {
  Fixture f;
  QVERIFY(f.begin());
  f.progress("enrol", "done");
  f.progress("check", "failed", {{"text", "disk.free 1 GB"}});
  f.agent.tell("join.done",
               {{"ok", false}, {"code", "permission_denied"}, {"message", "this machine fails the node check"}});
  QVERIFY(QTest::qWaitFor([&] { return f.join.problem().has_value(); }));
  QCOMPARE(f.join.stage(JoinStage::kCheck).status, StageStatus::kFailed);

  f.join.retry();

  QTRY_COMPARE(f.agent.count("join"), 2u);
  QVERIFY(!f.agent.last_params("join").contains("invite"));
  QCOMPARE(f.agent.last_params("join")["name"], "laptop");
}

void JoinModelTest::a_trainer_that_fails_on_the_way_fails_its_stage() {
  Fixture f;
  QVERIFY(f.begin());
  f.agent.tell("join.done", {{"ok", true}, {"text", "joined"}});
  QVERIFY(f.reaches(JoinStage::kTrainer, StageStatus::kRunning));

  f.agent.tell_state("state.changed",
                     {{"state", "error"}, {"run_id", "run-1"}, {"error", "out of GPU memory; lower the batch"}});

  QVERIFY(f.reaches(JoinStage::kTrainer, StageStatus::kFailed));
  QCOMPARE(f.join.problem()->code, ErrorCode::kTrainerFailed);
  QCOMPARE(f.join.problem()->message, std::string("out of GPU memory; lower the batch"));
}

void JoinModelTest::a_trainer_that_is_started_again_is_followed() {
  Fixture f;
  QVERIFY(f.begin_training());
  f.progress("state", "failed", {{"text", "nobody has the state"}});
  QVERIFY(f.reaches(JoinStage::kState, StageStatus::kRetrying));
  QVERIFY(f.join.joining() && !f.join.problem());

  f.progress("trainer", "running");

  QVERIFY(f.reaches(JoinStage::kTrainer, StageStatus::kRunning));
  QVERIFY(f.join.joining() && !f.join.problem() && f.join.retrying() == nullptr);
  QCOMPARE(f.join.stage(JoinStage::kState).status, StageStatus::kWaiting);
  f.progress("first_step", "done");
  QVERIFY(QTest::qWaitFor([&] { return f.join.joined(); }));
}

void JoinModelTest::until_then_its_stage_says_why_and_when() {
  Fixture f;
  QVERIFY(f.begin_training());
  f.progress("data", "failed", {{"text", "the disk is full"}});
  QVERIFY(f.reaches(JoinStage::kData, StageStatus::kRetrying));
  QCOMPARE(f.join.retrying(), &f.join.stage(JoinStage::kData));
  QCOMPARE(f.join.retrying()->text, std::string("the disk is full"));
  QVERIFY(!f.join.retrying()->retry_in_seconds);

  f.agent_says(waiting_for_restart(8));
  QVERIFY(QTest::qWaitFor([&] { return f.join.retrying()->retry_in_seconds == 8; }));
  f.agent_says(waiting_for_restart(7));

  QVERIFY(QTest::qWaitFor([&] { return f.join.retrying()->retry_in_seconds == 7; }));
  QCOMPARE(f.join.retrying()->text, std::string("the disk is full"));
  QCOMPARE(f.join.stage(JoinStage::kTrainer).status, StageStatus::kDone);
  QVERIFY(f.join.joining() && !f.join.problem());
}

void JoinModelTest::without_word_of_stages_a_restart_is_told_by_the_agents_state() {
  Fixture f;
  QVERIFY(f.begin_training());

  f.agent_says(waiting_for_restart(4));

  QVERIFY(f.reaches(JoinStage::kTrainer, StageStatus::kRetrying));
  QCOMPARE(f.join.retrying()->text, std::string("it was killed"));
  f.agent.tell_state("state.changed", {{"state", "recovering"}, {"pid", 4712}, {"tokens", 0u}});
  QVERIFY(f.reaches(JoinStage::kState, StageStatus::kRunning));
  QVERIFY(f.join.retrying() == nullptr && f.join.joining());
}

void JoinModelTest::it_is_final_once_the_agent_gives_up() {
  Fixture f;
  QVERIFY(f.begin_training());
  f.progress("state", "failed", {{"text", "nobody has the state"}});
  f.agent_says(waiting_for_restart(300));
  QVERIFY(QTest::qWaitFor([&] { return f.join.retrying() && f.join.retrying()->retry_in_seconds; }));

  f.agent_says(without_trainer("error", "run", "nobody has the state; when put right: resume"));

  QVERIFY(f.reaches(JoinStage::kState, StageStatus::kFailed));
  QCOMPARE(f.join.problem()->code, ErrorCode::kTrainerFailed);
  QCOMPARE(f.join.problem()->message, std::string("nobody has the state; when put right: resume"));
  QVERIFY(!f.join.joining() && !f.join.joined() && f.join.retrying() == nullptr);
  f.progress("trainer", "running");  // somebody put it right
  QVERIFY(f.reaches(JoinStage::kTrainer, StageStatus::kRunning));
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
  Fixture f;
  QVERIFY(f.begin_training());
  f.progress("first_step", "failed", {{"text", "it was asked to end"}});
  QVERIFY(f.reaches(JoinStage::kFirstStep, StageStatus::kRetrying));

  f.agent_says(without_trainer(state.toUtf8(), wish.toUtf8()));

  QVERIFY(f.reaches(JoinStage::kFirstStep, StageStatus::kFailed));
  QCOMPARE(f.join.problem()->code, ErrorCode::kAborted);
  QVERIFY(!f.join.joining() && !f.join.joined());
}

// It says "error" while it ends; what becomes of it the agent says.
void JoinModelTest::the_last_words_of_a_trainer_are_not_the_end() {
  Fixture f;
  QVERIFY(f.begin_training());

  f.agent.tell_state("state.changed", {{"state", "error"}, {"pid", 4711}, {"error", "the loss is not finite"}});
  f.progress("state", "failed", {{"text", "the loss is not finite"}});

  QVERIFY(f.reaches(JoinStage::kState, StageStatus::kRetrying));
  QVERIFY(f.join.joining() && !f.join.problem());
}

void JoinModelTest::a_machine_that_is_not_fit_fails_the_check_and_nothing_else() {
  Fixture f;
  QVERIFY(f.begin());
  f.progress("check", "running");  // before the invite is used
  QVERIFY(f.reaches(JoinStage::kCheck, StageStatus::kRunning));
  QCOMPARE(f.join.stage(JoinStage::kKey).status, StageStatus::kWaiting);
  f.progress("check", "failed", {{"text", "disk.free 1 GB"}});
  f.agent.tell("join.done", {{"ok", false}, {"code", "permission_denied"}, {"message", "it fails the node check"}});

  QVERIFY(QTest::qWaitFor([&] { return f.join.problem().has_value(); }));

  QCOMPARE(f.join.stage(JoinStage::kCheck).status, StageStatus::kFailed);
  QCOMPARE(f.join.stage(JoinStage::kCheck).text, std::string("it fails the node check"));
  QCOMPARE(f.join.stage(JoinStage::kKey).status, StageStatus::kWaiting);
  f.join.retry();
  QTRY_COMPARE(f.agent.count("join"), 2u);
  QVERIFY(f.agent.last_params("join").contains("invite"));
}

void JoinModelTest::a_look_at_another_invite_is_not_this_ones() {
  Fixture f;
  QVERIFY(f.connect());
  QVERIFY(f.join.setInvite(QString::fromStdString(text_of(good_invite())), kNow).ok());
  f.join.look();
  nlohmann::json other = looked(), own = looked();
  other["invite"] = "inv-0";
  own["invite"] = "inv-1";

  f.agent.tell("invite.looked", other);
  f.agent.tell("something", nullptr);
  QTRY_COMPARE(f.agent.count("invite.look"), 1u);
  QTest::qWait(20);
  QVERIFY(f.join.looking());
  f.agent.tell("invite.looked", own);

  QTRY_VERIFY(f.join.hub());
}

void JoinModelTest::to_cancel_is_safe_at_every_stage_data() {
  QTest::addColumn<QString>("stage");
  for (const char* stage : {"key", "enrol", "check", "trainer", "data", "state", "first_step"})
    QTest::newRow(stage) << stage;
}

void JoinModelTest::to_cancel_is_safe_at_every_stage() {
  QFETCH(const QString, stage);
  Fixture f;
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
  Fixture f;
  f.agent.fail("join", ErrorCode::kPermissionDenied, "this agent is at such work already");

  QVERIFY(f.begin());

  QVERIFY(QTest::qWaitFor([&] { return f.join.problem().has_value(); }));
  QCOMPARE(f.join.problem()->message, std::string("this agent is at such work already"));
  QCOMPARE(f.join.stage(JoinStage::kKey).status, StageStatus::kFailed);
}

void JoinModelTest::an_agent_that_is_restarted_meanwhile_ends_it() {
  Fixture f;
  QVERIFY(f.begin());
  f.progress("key", "done");
  QVERIFY(f.reaches(JoinStage::kKey, StageStatus::kDone));

  f.agent.restart();

  QVERIFY(QTest::qWaitFor([&] { return f.join.problem().has_value(); }));
  QVERIFY(f.join.problem()->message.find("restarted") != std::string::npos);
  f.join.retry();
  QVERIFY(f.join.joining());
}

void JoinModelTest::an_invite_is_forgotten_once_it_is_used() {
  Fixture f;
  QVERIFY(f.begin());
  QVERIFY(f.join.invite());
  f.agent.tell("join.done", {{"ok", true}, {"text", "joined"}});
  f.progress("first_step", "done");

  QVERIFY(QTest::qWaitFor([&] { return f.join.joined(); }));

  QVERIFY(!f.join.invite());
}

QTEST_GUILESS_MAIN(JoinModelTest)
#include "join_model_test.moc"
