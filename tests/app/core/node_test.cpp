// A node over an agent in memory: what is true now, how old it is, what happened, what the owner wishes.
#include "app/core/node.h"

#include <QSignalSpy>
#include <QTemporaryDir>
#include <QtTest>

#include "app/core/nodes.h"
#include "tests/app/core/fake_agent.h"
#include "tests/app/core/fake_commands.h"
#include "tests/fakes/patience.h"

using namespace atl;
using namespace std::chrono_literals;
using atl::test::FakeAgent;
using atl::test::FakeCommands;

namespace {

constexpr LinkTiming kFast{.first_retry = 10ms, .longest_retry = 80ms, .answer_time = 20s, .hello_time = 20s};

constexpr int kLimitMilliseconds = 60'000;  // for anything; a hang, not a slow machine

class Fixture {
 public:
  Fixture() : node(LocalNode{agent_home_in("/nowhere")}, agent.open(), commands.run(), kFast) {
    QObject::connect(&node, &Node::alerted, &node, [this](const Alert& alert) { news.push_back(alert); });
  }
  bool start() {
    node.start();
    return QTest::qWaitFor([this] { return node.live(); }, kLimitMilliseconds);
  }
  bool heard(const std::function<bool(const NodeState&)>& condition) {
    return QTest::qWaitFor([&] { return node.state() && condition(*node.state()); }, kLimitMilliseconds);
  }
  bool says(Alert::Level level, const std::string& words) {
    return QTest::qWaitFor(
        [&] {
          return std::ranges::any_of(node.alerts(), [&](const Alert& alert) {
            return alert.level == level && alert.text.find(words) != std::string::npos;
          });
        },
        kLimitMilliseconds);
  }

  FakeAgent agent;
  FakeCommands commands;
  Node node;
  std::vector<Alert> news;
};

}  // namespace

class NodeTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void the_state_is_there_as_soon_as_the_agent_answers();
  void steps_change_the_state_and_keep_what_they_do_not_say();
  void a_trainer_that_is_to_finish_is_shown_so();
  void while_the_agent_tells_states_it_is_not_asked_without_them_each_second();
  void a_silent_agent_grows_old_though_it_is_connected();
  void a_lost_agent_is_not_live_and_its_last_state_stays();
  void views_hear_of_a_flood_thirty_times_a_second_at_most();
  void samples_of_gpus_are_the_states();
  void an_agent_behind_a_bridge_that_is_another_one_is_noticed();
  void a_killed_trainer_is_an_alert_with_its_cause();
  void an_end_that_was_meant_is_no_error();
  void an_error_that_was_there_before_is_no_news();
  void what_repeats_is_told_once();
  void events_become_sentences_data();
  void events_become_sentences();
  void alerts_are_twenty_at_most();
  void what_the_owner_wishes_reaches_the_agent();
  void a_state_that_cannot_be_read_is_said();
  void an_agent_is_started_on_this_machine_only();
  void states_are_read_with_care_data();
  void states_are_read_with_care();
  void urls_name_machines_data();
  void urls_name_machines();
  void the_list_of_machines_survives_a_restart();
  void a_damaged_list_of_machines_is_an_empty_one();
};

void NodeTest::the_state_is_there_as_soon_as_the_agent_answers() {
  Fixture f;
  QSignalSpy changed(&f.node, &Node::changed);
  QVERIFY(!f.node.state() && !f.node.age() && !f.node.live());

  QVERIFY(f.start());

  QCOMPARE(f.node.state()->island.state, IslandPhase::kTraining);
  QVERIFY(f.node.state()->joined());
  QCOMPARE(*f.node.state()->island.mfu, 0.384);
  QCOMPARE(*f.node.state()->disk_free_bytes, 812e9);
  QCOMPARE(f.node.state()->agent.wish, Wish::kRun);
  QVERIFY(*f.node.age() < 5s);
  QTRY_VERIFY(!changed.empty());
  QTRY_COMPARE(f.node.islands().rowCount(), 3);
  QTRY_VERIFY(f.node.rounds().rowCount() > 0);
  QTRY_COMPARE(f.node.checkpoints().rowCount(), 1);
  QTRY_VERIFY(f.node.settings().find("log.level") != nullptr);
  QTRY_VERIFY(!f.node.history().names().empty());
}

void NodeTest::steps_change_the_state_and_keep_what_they_do_not_say() {
  Fixture f;
  QVERIFY(f.start());

  nlohmann::json state = f.agent.state();
  for (const char* key : {"agent", "disk_free_bytes"}) state.erase(key);
  state["inner_step"] = 372u;
  f.agent.tell("step", state);

  QVERIFY(f.heard([](const NodeState& now) { return now.island.inner_step == 372; }));
  QCOMPARE(f.node.state()->agent.wish, Wish::kRun);
  QCOMPARE(*f.node.state()->island.mfu, 0.384);
  QCOMPARE(*f.node.state()->disk_free_bytes, 812e9);
}

void NodeTest::a_trainer_that_is_to_finish_is_shown_so() {
  Fixture f;
  f.agent.say({{"state", "finishing"}, {"agent", {{"wish", "finish"}, {"followed", "finish"}}}});
  QVERIFY(f.start());

  f.agent.tell_state("step", {{"state", "training"}, {"inner_step", 400u}});

  QVERIFY(f.heard([](const NodeState& now) { return now.island.inner_step == 400; }));
  QCOMPARE(f.node.state()->island.state, IslandPhase::kFinishing);
}

void NodeTest::while_the_agent_tells_states_it_is_not_asked_without_them_each_second() {
  Fixture f;
  QVERIFY(f.start());
  const std::size_t before = f.agent.count("state.get");
  QElapsedTimer timer;
  timer.start();
  while (timer.elapsed() < 2900) {
    f.agent.say({{"inner_step", f.agent.state()["inner_step"].get<unsigned>() + 1}});
    f.agent.tell("step", f.agent.state());
    QTest::qWait(100);
  }
  QCOMPARE(f.agent.count("state.get"), before);

  QTRY_VERIFY(f.agent.count("state.get") >= before + 2);
  QVERIFY(f.node.live());
}

void NodeTest::a_silent_agent_grows_old_though_it_is_connected() {
  Fixture f;
  QVERIFY(f.start());
  QSignalSpy changed(&f.node, &Node::changed);

  f.agent.fall_silent();

  QTRY_VERIFY_WITH_TIMEOUT(!f.node.live(), 60'000);
  QCOMPARE(f.node.link().state(), LinkState::kConnected);
  QVERIFY(*f.node.age() >= kStaleAfter);
  changed.clear();
  QTRY_VERIFY(!changed.empty() || !f.node.live());
  f.agent.answer_again();
  f.agent.step(2.5);
  QTRY_VERIFY(f.node.live());
}

void NodeTest::a_lost_agent_is_not_live_and_its_last_state_stays() {
  Fixture f;
  QVERIFY(f.start());

  f.agent.refuse({ErrorCode::kNotRunning, "nothing answers at agent.sock"});
  f.agent.hang_up();

  QTRY_COMPARE(f.node.link().state(), LinkState::kNoAgent);
  QVERIFY(!f.node.live());
  QCOMPARE(f.node.state()->island.round, 42u);
  const auto age = *f.node.age();
  QTest::qWait(30);
  QVERIFY(*f.node.age() > age);
  f.agent.welcome();
  QTRY_VERIFY(f.node.live());
}

void NodeTest::views_hear_of_a_flood_thirty_times_a_second_at_most() {
  Fixture f;
  QVERIFY(f.start());
  QTest::qWait(100);
  QSignalSpy changed(&f.node, &Node::changed);
  QElapsedTimer timer;
  timer.start();

  for (int i = 0; i < 5000; ++i) f.agent.step(2.5);
  QVERIFY(f.heard([&](const NodeState& now) { return now.island.inner_step == 371 + 5000; }));

  QTRY_VERIFY(!changed.empty());
  QVERIFY2(changed.size() <= timer.elapsed() / 33 + 2, qPrintable(QString::number(changed.size())));
}

void NodeTest::samples_of_gpus_are_the_states() {
  Fixture f;
  QVERIFY(f.start());

  f.agent.tell("gpu.sample",
               {{"gpus", {{{"name", "H100"}, {"utilisation", 0.98}, {"power_watts", 612.0}, {"ecc_errors", 0u}}}}});
  QTRY_COMPARE(f.node.gpus().size(), 1u);
  QCOMPARE(*f.node.gpus()[0].power_watts, 612.0);
  QVERIFY(!f.node.gpus()[0].temperature_celsius);

  // A state that does not speak of them leaves them as they are.
  f.agent.step(2.5);
  QVERIFY(f.heard([](const NodeState& now) { return now.island.inner_step == 372; }));
  QCOMPARE(f.node.gpus().size(), 1u);
}

void NodeTest::an_agent_behind_a_bridge_that_is_another_one_is_noticed() {
  Fixture f;
  f.agent.tell("something", nullptr);
  QVERIFY(f.start());
  QTRY_VERIFY(f.agent.count("events.subscribe") == 1);

  f.agent.say({{"agent", {{"pid", 9999}}}});

  QTRY_VERIFY_WITH_TIMEOUT(f.agent.count("events.subscribe") >= 2, 60'000);
  QCOMPARE(f.agent.attempts(), 1u);
}

// ---- what happened

void NodeTest::a_killed_trainer_is_an_alert_with_its_cause() {
  Fixture f;
  QVERIFY(f.start());

  nlohmann::json state = f.agent.state();
  state["state"] = "error";
  state["pid"] = 0;
  state["error"] = "the trainer was killed; starts again in 5 s";
  state["agent"]["restart_in_seconds"] = 5.0;
  state["agent"]["last_exit"] = {{"cause", "killed"},
                                 {"text", "somebody killed it (SIGKILL)"},
                                 {"status", 137},
                                 {"unix_seconds", 1'763'750'000.0}};
  f.agent.become(state);
  f.agent.tell("state.changed", state);

  QVERIFY(f.says(Alert::Level::kError, "somebody killed it (SIGKILL)"));
  QCOMPARE(f.news.size(), 1u);
  QCOMPARE(f.node.state()->agent.last_exit->cause, ExitCause::kKilled);
}

void NodeTest::an_end_that_was_meant_is_no_error() {
  Fixture f;
  QVERIFY(f.start());
  nlohmann::json state = f.agent.state();
  const auto ended = [&](const char* word, const char* cause, double time) {
    state["state"] = word;
    state["agent"]["last_exit"] = {{"cause", cause}, {"text", ""}, {"status", 20}, {"unix_seconds", time}};
    f.agent.become(state);
    f.agent.tell("state.changed", state);
  };

  ended("paused", "paused", 1);
  ended("stopped", "finished", 2);

  QVERIFY(f.says(Alert::Level::kInfo, "Finished"));
  QCOMPARE(f.news.size(), 1u);
}

void NodeTest::an_error_that_was_there_before_is_no_news() {
  Fixture f;
  f.agent.say({{"state", "error"}, {"error", "the loss is not finite"}});
  f.agent.tell("gpu.alert", {{"kind", "power"}, {"cap_watts", 400}, {"text", "not root"}});

  QVERIFY(f.start());

  QVERIFY(f.says(Alert::Level::kError, "the loss is not finite"));
  QVERIFY(f.says(Alert::Level::kWarning, "not root"));
  QVERIFY(f.news.empty());
}

void NodeTest::what_repeats_is_told_once() {
  Fixture f;
  QVERIFY(f.start());

  for (int i = 0; i < 10; ++i) f.agent.tell_state("step", {{"error", "an island is slow"}});

  QVERIFY(f.says(Alert::Level::kWarning, "an island is slow"));
  QTest::qWait(20);
  QCOMPARE(f.node.alerts().size(), 1u);
  QCOMPARE(f.news.size(), 1u);
}

void NodeTest::events_become_sentences_data() {
  QTest::addColumn<QString>("event");
  QTest::addColumn<QString>("data");
  QTest::addColumn<int>("level");
  QTest::addColumn<QString>("words");
  const auto row = [](const char* name, const char* event, const char* data, Alert::Level level, const char* words) {
    QTest::newRow(name) << event << data << static_cast<int>(level) << words;
  };
  row("hot", "gpu.alert", R"({"kind":"temperature","gpu":3,"celsius":91.4,"cap_celsius":85,"pauses":true})",
      Alert::Level::kWarning, "GPU 3 is at 91 \u00B0C");
  row("power", "gpu.alert", R"({"kind":"power","cap_watts":400,"text":"needs root"})", Alert::Level::kWarning,
      "needs root");
  row("failed attempt", "sync.phase", R"({"phase":"failed","round":7,"attempt":1,"seconds":3.5,"bytes":0})",
      Alert::Level::kWarning, "round 8");
  row("joined", "join.done", R"({"ok":true,"text":"joined gcide"})", Alert::Level::kInfo, "joined gcide");
  row("not joined", "join.done", R"({"ok":false,"code":"invite_used","message":"it was used"})", Alert::Level::kError,
      "it was used");
}

void NodeTest::events_become_sentences() {
  QFETCH(const QString, event);
  QFETCH(const QString, data);
  QFETCH(const int, level);
  QFETCH(const QString, words);
  Fixture f;
  QVERIFY(f.start());

  f.agent.tell(event.toStdString(), nlohmann::json::parse(data.toStdString()));

  QVERIFY(f.says(static_cast<Alert::Level>(level), words.toStdString()));
  QCOMPARE(f.news.size(), 1u);
}

void NodeTest::alerts_are_twenty_at_most() {
  std::vector<Alert> news;
  AlertList alerts([&](const Alert& alert) { news.push_back(alert); });

  for (int i = 0; i < 100; ++i) alerts.add(Alert::Level::kWarning, QString("warning %1").arg(i), i, true);

  QCOMPARE(alerts.all().size(), AlertList::kMaxAlerts);
  QCOMPARE(alerts.all().front().text, std::string("warning 99"));
  QCOMPARE(news.size(), 100u);
}

// ---- what the owner wishes

void NodeTest::what_the_owner_wishes_reaches_the_agent() {
  Fixture f;
  QVERIFY(f.start());
  std::string wish;
  const auto answer = [&](const Result<nlohmann::json>& result) { wish = (*result)["wish"]; };

  f.node.pause(Seconds(7200), answer);
  QTRY_COMPARE(wish, std::string("pause"));
  QCOMPARE(f.agent.last_params("pause"), (nlohmann::json{{"for_seconds", 7200.0}}));
  QVERIFY(f.heard([](const NodeState& now) { return now.agent.wish == Wish::kPause; }));  // asked at once
  f.node.resume(answer);
  QTRY_COMPARE(wish, std::string("run"));
  f.node.finish(answer);
  QTRY_COMPARE(wish, std::string("finish"));
  f.node.stop(answer);
  QTRY_COMPARE(wish, std::string("stop"));
  f.node.pause(std::nullopt, answer);
  QTRY_COMPARE(f.agent.last_params("pause"), nlohmann::json::object());
  f.node.leave({});
  QTRY_COMPARE(f.agent.count("leave"), 1u);
  f.node.createDiagnostics("/tmp/x.tar", {});
  QTRY_COMPARE(f.agent.last_params("diag.create"), (nlohmann::json{{"file", "/tmp/x.tar"}}));
}

void NodeTest::a_state_that_cannot_be_read_is_said() {
  Fixture f;
  nlohmann::json state = f.agent.state();
  state["round"] = "forty-two";
  f.agent.become(state);
  f.node.start();

  QVERIFY(f.says(Alert::Level::kWarning, "'round'"));
  QVERIFY(!f.node.state());
}

void NodeTest::an_agent_is_started_on_this_machine_only() {
  FakeAgent agent;
  Node remote(SshNode{"ssh://me@node"}, agent.open(), FakeCommands().run(), kFast);
  QCOMPARE(remote.startAgent().error().code, ErrorCode::kInvalidArgument);

  // What stands for atoll here writes down how it is called.
  const QTemporaryDir directory;
  const QString calls = directory.filePath("calls"), program = directory.filePath("atoll");
  QFile script(program);
  QVERIFY(script.open(QIODevice::WriteOnly));
  script.write("#!/bin/sh\necho \"$@\" > '" + calls.toUtf8() + "'\n");
  script.setPermissions(QFileDevice::ReadOwner | QFileDevice::WriteOwner | QFileDevice::ExeOwner);
  script.close();
  qputenv("ATOLL_PROGRAM", program.toUtf8());
  Node local(LocalNode{agent_home_in("/a home")}, agent.open(), FakeCommands().run(), kFast);

  QVERIFY(local.startAgent().ok());

  const auto said = [&] {
    QFile file(calls);
    return file.open(QIODevice::ReadOnly) ? file.readAll().trimmed() : QByteArray();
  };
  QTRY_COMPARE(said(), QByteArray("agent --home /a home"));
  qputenv("ATOLL_PROGRAM", directory.filePath("none").toUtf8());
  const Status none = local.startAgent();
  QVERIFY(!none.ok() && none.error().message.find("cannot be run") != std::string::npos);
  qunsetenv("ATOLL_PROGRAM");
}

// ---- values

void NodeTest::states_are_read_with_care_data() {
  QTest::addColumn<QString>("patch");
  QTest::addColumn<bool>("good");
  QTest::newRow("as it is") << "{}" << true;
  QTest::newRow("a field of tomorrow") << R"({"tomorrow":[1,2],"agent":{"mood":"good"}})" << true;
  QTest::newRow("losses that are not finite") << R"({"loss_nats":null})" << false;  // merge_patch takes it away
  QTest::newRow("no agent") << R"({"agent":null})" << true;
  QTest::newRow("an agent that is a text") << R"({"agent":"x"})" << false;
  QTest::newRow("negative round") << R"({"round":-1})" << false;
  QTest::newRow("gpus") << R"({"gpus":[{"name":"H100","utilisation":0.5},{}]})" << true;
  QTest::newRow("gpus that are none") << R"({"gpus":{"a":1}})" << false;
  QTest::newRow("a gpu that is a number") << R"({"gpus":[7]})" << false;
  QTest::newRow("an exit without cause") << R"({"agent":{"last_exit":{"text":"x"}}})" << false;
}

void NodeTest::states_are_read_with_care() {
  QFETCH(const QString, patch);
  QFETCH(const bool, good);
  nlohmann::json json = test::training_state();
  json.merge_patch(nlohmann::json::parse(patch.toStdString()));

  QCOMPARE(node_state_from_json(json).ok(), good);
}

void NodeTest::urls_name_machines_data() {
  QTest::addColumn<QString>("url");
  QTest::addColumn<QString>("label");
  QTest::newRow("user and port") << " ssh://me@node:2222 "
                                 << "me@node";
  QTest::newRow("name alone") << "ssh://node.example.org"
                              << "node.example.org";
  QTest::newRow("no scheme") << "node"
                             << "";
  QTest::newRow("an option") << "ssh://-oProxyCommand=x"
                             << "";
}

void NodeTest::urls_name_machines() {
  QFETCH(const QString, url);
  QFETCH(const QString, label);

  const auto address = parse_node_url(url);

  QCOMPARE(address.ok(), !label.isEmpty());
  if (address.ok()) QCOMPARE(atl::label(*address), label);
}

void NodeTest::the_list_of_machines_survives_a_restart() {
  const QTemporaryDir directory;
  const QString file = directory.filePath("nodes.json");
  // No machine is dialled here.
  const QByteArray path = qgetenv("PATH");
  qputenv("PATH", directory.path().toUtf8());
  {
    Nodes nodes(file);
    nodes.add(LocalNode{agent_home_in(directory.filePath("home").toStdString())});
    nodes.add(SshNode{"ssh://me@one"});
    Node& two = nodes.add(SshNode{"ssh://me@two"});
    nodes.add(RecordedNode{directory.filePath("none"), 1});
    QSignalSpy removing(&nodes, &Nodes::removing);
    nodes.remove(two);
    QCOMPARE(removing.size(), 1);
    QCOMPARE(nodes.all().size(), 3u);
  }
  Nodes nodes(file);
  QSignalSpy added(&nodes, &Nodes::added);

  nodes.load();

  QCOMPARE(added.size(), 1);
  QCOMPARE(std::get<SshNode>(nodes.all()[0]->address()).url, QString("ssh://me@one"));
  qputenv("PATH", path);
}

void NodeTest::a_damaged_list_of_machines_is_an_empty_one() {
  const QTemporaryDir directory;
  for (const char* text : {"", "{", "[]", R"({"nodes":7})", R"({"nodes":[7,"node","ssh://-x"]})"}) {
    QFile file(directory.filePath("nodes.json"));
    QVERIFY(file.open(QIODevice::WriteOnly));
    file.write(text);
    file.close();
    Nodes nodes(file.fileName());

    nodes.load();

    QVERIFY(nodes.all().empty());
  }
}

QTEST_GUILESS_MAIN(NodeTest)
#include "node_test.moc"
