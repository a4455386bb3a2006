// The models of what a node is and keeps: its check, checkpoints, log and settings; over an agent in memory.
#include <QAbstractItemModelTester>
#include <QtTest>

#include "app/core/check_model.h"
#include "app/core/checkpoints_model.h"
#include "app/core/log_model.h"
#include "app/core/settings_model.h"
#include "tests/app/core/model_fixture.h"
#include "tests/fakes/patience.h"

using namespace atl;
using atl::test::FakeCommands;
using atl::test::ModelFixture;
using atl::test::shown;

namespace {

nlohmann::json check_row(const char* id, const char* verdict) {
  return {{"id", id},       {"verdict", verdict}, {"value", nullptr}, {"unit", ""},
          {"text", "text"}, {"fix", "fix"},       {"seconds", 0.1}};
}

}  // namespace

class DiskModelsTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase() { QLocale::setDefault(QLocale::c()); }

  void a_check_streams_its_rows();
  void a_check_that_somebody_else_began_is_shown();
  void a_check_that_cannot_be_run_says_why();
  void a_check_whose_end_will_not_be_heard_ends();

  void checkpoints_are_listed_and_again_when_one_is_saved();
  void a_damaged_checkpoint_is_shown_with_what_to_do();
  void an_export_tells_where_the_model_is();

  void a_log_is_followed_while_somebody_looks();
  void a_log_keeps_the_newest_lines();
  void settings_tell_values_and_origins();
  void a_wrong_value_is_answered_with_what_is_wrong();
};

// ---- the check

void DiskModelsTest::a_check_streams_its_rows() {
  ModelFixture f;
  CheckModel check(f.link);
  const QAbstractItemModelTester tester(&check);
  QVERIFY(f.connect([&](const HeardEvent& event) { check.take(event); }));

  check.run(/*full=*/true);
  QVERIFY(check.running() && !check.finished());
  QTRY_COMPARE(f.agent.count("check.run"), 1u);
  QCOMPARE(f.agent.last_params("check.run"), (nlohmann::json{{"full", true}}));
  f.agent.tell("check.result", {{"row", check_row("disk.free", "fail")}});
  QTRY_COMPARE(check.rowCount(), 1);
  QCOMPARE(shown(check, 0, CheckModel::kVerdict), QString("\u2717 fail"));
  f.agent.tell(
      "check.result",
      {{"done", true},
       {"report",
        {{"version", CheckReport::kVersion},
         {"software", "atoll 0.1.0"},
         {"run_id", ""},
         {"time", 1.7e9},
         {"full", false},
         {"rows", {check_row("disk.free", "fail"), check_row("net.rtt", "warn"), check_row("clock", "pass")}}}}});

  QTRY_VERIFY(check.finished() && !check.running());
  QCOMPARE(check.rowCount(), 3);  // whole, whatever was missed
  QCOMPARE(check.count(Verdict::kFail), 1u);
  QCOMPARE(check.count(Verdict::kWarn), 1u);
  QCOMPARE(check.ended_at(), f.agent.time());
  QCOMPARE(check.data(check.index(1, CheckModel::kVerdict), Qt::AccessibleTextRole).toString(),
           QString("net.rtt: warning"));
}

void DiskModelsTest::a_check_that_somebody_else_began_is_shown() {
  ModelFixture f;
  CheckModel check(f.link);
  QVERIFY(f.connect([&](const HeardEvent& event) { check.take(event); }));
  f.agent.fail("check.run", ErrorCode::kPermissionDenied, "a check is under way; wait for its last event");

  check.run(false);
  f.agent.tell("check.result", {{"row", check_row("clock", "pass")}});
  QTRY_COMPARE(check.rowCount(), 1);
  QVERIFY(check.running());
  f.agent.tell("check.result", {{"done", true}, {"report", nullptr}});
  QTRY_VERIFY(check.finished());

  f.agent.tell("check.result", {{"row", check_row("ram", "pass")}});  // of the next one
  QTRY_VERIFY(check.running() && check.rowCount() == 1);
}

void DiskModelsTest::a_check_that_cannot_be_run_says_why() {
  ModelFixture f;
  CheckModel check(f.link);
  QVERIFY(f.connect([&](const HeardEvent& event) { check.take(event); }));
  f.agent.fail("check.run", ErrorCode::kNotFound, "no check here");
  check.run(false);
  QTRY_VERIFY(!check.running());
  QCOMPARE(check.problem(), std::string("no check here"));

  f.agent.answer("check.run", {{"started", true}});
  check.run(false);
  f.agent.tell("check.result", {{"done", true}, {"error", "the disk is full"}});

  QTRY_COMPARE(check.problem(), std::string("the disk is full"));
  QVERIFY(!check.finished());
}

void DiskModelsTest::a_check_whose_end_will_not_be_heard_ends() {
  ModelFixture f;
  QVERIFY(f.connect());
  CheckModel check(f.link);
  check.run(false);

  check.lost();

  QVERIFY(!check.running());
  QVERIFY(check.problem().find("Check again") != std::string::npos);
}

// ---- files

void DiskModelsTest::checkpoints_are_listed_and_again_when_one_is_saved() {
  ModelFixture f;
  FakeCommands commands;
  CheckpointsModel checkpoints(f.link, commands.run());
  const QAbstractItemModelTester tester(&checkpoints);
  QVERIFY(f.connect([&](const HeardEvent& event) { checkpoints.take(event); }));
  checkpoints.reload();
  QTRY_COMPARE(checkpoints.rowCount(), 1);
  QCOMPARE(shown(checkpoints, 0, CheckpointsModel::kSize), QString("9.9 MB"));
  QCOMPARE(shown(checkpoints, 0, CheckpointsModel::kVerified), QString("\u2013 not yet"));

  f.agent.tell_state("checkpoint.saved");

  QTRY_COMPARE(f.agent.count("checkpoints.list"), 2u);
}

void DiskModelsTest::a_damaged_checkpoint_is_shown_with_what_to_do() {
  ModelFixture f;
  QVERIFY(f.connect());
  FakeCommands commands;
  CheckpointsModel checkpoints(f.link, commands.run());
  nlohmann::json list = {{"checkpoints",
                          {{{"path", "/x"},
                            {"outer_step", 1u},
                            {"parameters", 2u},
                            {"bytes", 3u},
                            {"saved_at", 4},
                            {"state_hash", "ab"},
                            {"whole", false}}}}};
  commands.answer({"checkpoints", "verify"}, {.exit_code = 1,
                                              .out = QByteArray::fromStdString(list.dump()),
                                              .err = "atoll: a checkpoint is damaged; remove it\n"});

  checkpoints.verify();
  QVERIFY(checkpoints.busy());

  QTRY_VERIFY(!checkpoints.busy());
  QCOMPARE(checkpoints.failure()->message, std::string("a checkpoint is damaged; remove it"));
  QCOMPARE(checkpoints.failure()->code, ErrorCode::kCorrupt);
  QCOMPARE(shown(checkpoints, 0, CheckpointsModel::kVerified), QString("\u2717 damaged"));
}

void DiskModelsTest::an_export_tells_where_the_model_is() {
  ModelFixture f;
  FakeCommands commands;
  CheckpointsModel checkpoints(f.link, commands.run());
  commands.answer({"export"}, {.out = R"({"directory":"/m","outer_step":42})"});

  checkpoints.exportTo("/m");

  QTRY_VERIFY(!checkpoints.busy());
  QCOMPARE(commands.asked().back().arguments, (QStringList{"export", "--output", "/m", "--json"}));
  QVERIFY2(checkpoints.outcome().find("round 42") != std::string::npos, checkpoints.outcome().c_str());
  commands.answer({"export"}, {.exit_code = 1, .err = "atoll: cannot write /m: No space left on device\n"});
  checkpoints.exportTo("/m");
  QTRY_VERIFY(checkpoints.failure().has_value());
  QCOMPARE(checkpoints.failure()->code, ErrorCode::kDiskFull);
  QVERIFY(checkpoints.task() == CheckpointsModel::Task::kExport);
  QVERIFY(checkpoints.outcome().empty());
}

// ---- log and settings

void DiskModelsTest::a_log_is_followed_while_somebody_looks() {
  ModelFixture f;
  QVERIFY(f.connect());
  LogModel log(f.link);
  const QAbstractItemModelTester tester(&log);
  QTest::qWait(50);
  QCOMPARE(f.agent.count("logs.read"), 0u);

  log.follow(true);
  QTRY_COMPARE(log.rowCount(), 2);
  QCOMPARE(log.data(log.index(1), LogModel::kLevelRole).toString(), QString("warning"));
  QVERIFY(!f.agent.last_params("logs.read").contains("cursor"));
  QTRY_VERIFY(f.agent.count("logs.read") >= 2);
  QVERIFY(f.agent.last_params("logs.read").contains("cursor"));

  log.follow(false);
  const std::size_t before = f.agent.count("logs.read");
  QTest::qWait(1200);
  QCOMPARE(f.agent.count("logs.read"), before);
  QCOMPARE(log.rowCount(), 2);
}

void DiskModelsTest::a_log_keeps_the_newest_lines() {
  ModelFixture f;
  QVERIFY(f.connect());
  LogModel log(f.link);
  const QAbstractItemModelTester tester(&log);
  unsigned next = 0;
  f.agent.answer("logs.read", [&](const nlohmann::json&) {
    nlohmann::json lines = nlohmann::json::array();
    for (int i = 0; i < 9'000; ++i) {
      lines.push_back({{"source", "agent"}, {"time", ""}, {"level", ""}, {"text", std::to_string(next++)}});
    }
    return nlohmann::json{{"lines", lines}, {"cursor", std::to_string(next)}};
  });

  log.follow(true);
  QTRY_VERIFY_WITH_TIMEOUT(next >= 27'000, 60'000);
  log.follow(false);
  QTRY_COMPARE(log.row(log.rowCount() - 1).text, std::to_string(next - 1));

  QCOMPARE(log.rowCount(), static_cast<int>(LogModel::kMaxLines));
  QCOMPARE(log.row(0).text, std::to_string(next - LogModel::kMaxLines));
}

void DiskModelsTest::settings_tell_values_and_origins() {
  ModelFixture f;
  QVERIFY(f.connect());
  SettingsModel settings(f.link);
  settings.reload();
  QTRY_VERIFY(settings.find("log.level") != nullptr);
  QCOMPARE(settings.file(), std::string("/home/me/.config/atoll/config.toml"));
  bool good = false;

  settings.set("log.level", "debug", this, [&](const Status& status) { good = status.ok(); });

  QTRY_VERIFY(good);
  QCOMPARE(settings.find("log.level")->value, std::string("debug"));
  QCOMPARE(settings.find("log.level")->origin, std::string("settings"));
  settings.set("log.level", std::nullopt, this, {});
  QTRY_VERIFY(f.agent.last_params("config.set")["value"].is_null());
}

void DiskModelsTest::a_wrong_value_is_answered_with_what_is_wrong() {
  ModelFixture f;
  QVERIFY(f.connect());
  SettingsModel settings(f.link);
  f.agent.fail("config.set", ErrorCode::kInvalidArgument, "'fast' is no rate");
  std::string said;

  settings.set("limits.upload", "fast", this, [&](const Status& status) { said = status.error().message; });

  QTRY_COMPARE(said, std::string("'fast' is no rate"));
}

QTEST_GUILESS_MAIN(DiskModelsTest)
#include "disk_models_test.moc"
