// Recording a conversation, and playing it: what is written, what is cut out, what a node shows of it.
#include <fmt/format.h>

#include <QSignalSpy>
#include <QTemporaryDir>
#include <QtTest>
#include <fstream>
#include <set>

#include "app/core/node.h"
#include "app/core/recorder.h"
#include "app/core/recording_index.h"
#include "app/core/streams.h"
#include "net/control/json_rpc.h"
#include "net/wire/invite.h"
#include "tests/app/core/fake_agent.h"
#include "tests/app/core/full_disk.h"
#include "tests/app/core/loop_watch.h"
#include "tests/app/core/recorded_week.h"
#include "tests/app/core/recording_script.h"
#include "tests/app/core/resident.h"
#include "tests/fakes/patience.h"

using namespace atl;
using namespace std::chrono_literals;
using atl::test::FakeAgent;
using atl::test::FakeCommands;
using atl::test::RecordingScript;

namespace {

constexpr LinkTiming kFast{.first_retry = 10ms, .longest_retry = 80ms, .answer_time = 20s, .hello_time = 20s};
constexpr const char* kInvite = "atoll1.c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0.0badcafe";

QByteArray bytes_of(const QString& path) {
  QFile file(path);
  return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
}

std::unique_ptr<Node> node_of(const QString& file, double speed) {
  const RecordedNode address{file, speed};
  return std::make_unique<Node>(address, open_recording(file, speed), make_run_command(address), kFast);
}

}  // namespace

class RecordingTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void init() { directory_ = std::make_unique<QTemporaryDir>(); }

  void secrets_are_cut_out_data();
  void secrets_are_cut_out();
  void what_is_no_secret_stays();
  void a_recording_is_for_its_owner_alone();
  void a_full_disk_ends_the_recording_and_says_so();
  void a_place_that_cannot_be_written_is_said();
  void what_was_recorded_is_shown_again();
  void a_recording_begun_late_has_all_that_was_known();
  void calls_are_answered_as_they_were_at_that_time();
  void what_was_never_answered_says_so();
  void events_come_at_their_time_and_faster();
  void a_recorded_silence_looks_old();
  void what_the_agent_answered_is_the_state_at_that_time();
  void a_connection_that_ended_ends_and_goes_on();
  void the_end_is_the_end_of_the_recording();
  void a_recording_that_ends_within_a_line_is_played_to_there();
  void what_is_no_recording_is_refused_data();
  void what_is_no_recording_is_refused();
  void a_week_in_seconds_grows_nothing_and_never_looks_old();
  void at_its_end_what_was_said_is_as_old_as_it_was_then();
  void a_log_is_not_read_twice();

 private:
  QString path(const char* name = "conversation.jsonl") const { return directory_->filePath(name); }
  std::unique_ptr<QTemporaryDir> directory_;
};

// ---- writing

void RecordingTest::secrets_are_cut_out_data() {
  QTest::addColumn<QByteArray>("line");
  const auto request = [](const char* method, const nlohmann::json& params) {
    return QByteArray::fromStdString(encode_request(1, method, params));
  };
  const auto event = [](const char* name, const nlohmann::json& data) {
    return QByteArray::fromStdString(encode_event({{"event", name}, {"seq", 1u}, {"time", 1.0}, {"data", data}}));
  };
  QTest::newRow("join") << request("join", {{"invite", kInvite}, {"name", "laptop"}});
  QTest::newRow("join with something else") << request("join", {{"invite", "c2VjcmV0-no-invite"}});
  QTest::newRow("look") << request("invite.look", {{"invite", fmt::format("atoll:join?i={}", kInvite)}});
  QTest::newRow("broken over lines") << request("anything",
                                                {{"text", "atoll1.c2Vj\r\ncmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0.0badcafe"}});
  QTest::newRow("in a log") << event("log",
                                     {{"text", fmt::format("somebody pasted ATOLL1.c2VjcmV0 \"{}\" here", kInvite)}});
  QTest::newRow("what a command reads") << request("command.run", {{"arguments", {"join"}}, {"input", "c2VjcmV0"}});
  QTest::newRow("what a command prints") << event("command.output", {{"stream", "out"}, {"bytes", "c2VjcmV0"}});
}

void RecordingTest::secrets_are_cut_out() {
  QFETCH(const QByteArray, line);

  const QByteArray kept = without_secrets(line.trimmed());

  QVERIFY2(!kept.contains("c2Vj") && !kept.contains("cmV0"), kept.constData());
  QVERIFY2(nlohmann::json::accept(kept.toStdString()), kept.constData());
}

void RecordingTest::what_is_no_secret_stays() {
  for (const QByteArray& line :
       {QByteArray::fromStdString(encode_event({{"event", "step"}, {"seq", 7u}, {"data", test::training_state()}})),
        QByteArray::fromStdString(encode_request(3, "join", {{"name", "laptop"}})),
        QByteArray::fromStdString(
            encode_response(3, Error{ErrorCode::kIo, "atoll: the disk of \"atoll\" is full \\ atoll1"}))}) {
    QCOMPARE(without_secrets(line.trimmed()), line.trimmed());
  }
}

void RecordingTest::a_recording_is_for_its_owner_alone() {
  std::ofstream(path().toStdString()) << "what was there";

  QVERIFY(Recorder::create(path()).ok());

  QCOMPARE(QFile::permissions(path()) & 0x0077, QFileDevice::Permissions());
  QVERIFY(bytes_of(path()).startsWith("{\"atoll_recording\":1"));
}

void RecordingTest::a_full_disk_ends_the_recording_and_says_so() {
  if (!QFileInfo("/dev/full").isWritable()) QSKIP("this user may not write to /dev/full");
  const auto none = Recorder::create("/dev/full");
  QVERIFY(!none.ok());
  QVERIFY2(none.error().message.find("/dev/full") != std::string::npos, none.error().message.c_str());
  const test::FullAt limit(256 * 1024);
  FakeAgent agent;
  Node node(LocalNode{}, agent.open(), FakeCommands().run(), kFast);
  QSignalSpy failed(&node.link(), &AgentLink::recordingFailed), alerted(&node, &Node::alerted);
  const auto recorder = std::move(Recorder::create(path())).value();
  node.link().recordTo(recorder.get());
  node.start();
  QTRY_VERIFY(node.live());

  for (int i = 0; i < 400; ++i) agent.step(2.5);

  QTRY_COMPARE(failed.size(), 1);
  QVERIFY2(failed[0][0].toString().contains(path()), qPrintable(failed[0][0].toString()));
  QTRY_COMPARE(node.state()->island.inner_step, 771u);  // it goes on without
  QCOMPARE(failed.size(), 1);
  QVERIFY(!node.alerts().empty() && node.alerts().front().level == Alert::Level::kError);
  QCOMPARE(alerted.size(), 1);
}

void RecordingTest::a_place_that_cannot_be_written_is_said() {
  const auto recorder = Recorder::create(path("no/such/place"));

  QVERIFY(!recorder.ok());
  QVERIFY(recorder.error().message.find("no/such/place") != std::string::npos);
}

// ---- playing

void RecordingTest::what_was_recorded_is_shown_again() {
  FakeAgent agent;
  {
    Node node(LocalNode{}, agent.open(), FakeCommands().run(), kFast);
    const auto recorder = std::move(Recorder::create(path())).value();
    node.link().recordTo(recorder.get());
    node.start();
    QTRY_VERIFY(node.live() && node.rounds().rowCount() > 0 && node.islands().rowCount() == 3);
    for (int i = 0; i < 5; ++i) agent.step(2 + 0.1 * i);
    agent.tell("peer.down", {{"island", "isl-aaaa"}});
    QTRY_VERIFY(node.state()->island.inner_step == 376 && !node.islands().find("isl-aaaa")->up);
    node.link().recordTo(nullptr);
    QVERIFY(recorder->problem().empty());
  }

  const auto node = node_of(path(), 1);
  node->start();

  QTRY_VERIFY(node->state() && node->state()->island.inner_step == 376);
  QTRY_VERIFY(node->islands().find("isl-aaaa") != nullptr && !node->islands().find("isl-aaaa")->up);
  QCOMPARE(node->state()->island.loss_nats, 2.4);
  QCOMPARE(node->state()->agent.wish, Wish::kRun);
  QVERIFY(node->rounds().rowCount() > 0);
  QTRY_COMPARE(node->link().state(), LinkState::kEnded);
}

void RecordingTest::a_recording_begun_late_has_all_that_was_known() {
  FakeAgent agent;
  {
    Node node(LocalNode{}, agent.open(), FakeCommands().run(), kFast);
    node.start();
    QTRY_VERIFY(node.live() && node.rounds().rowCount() > 0);
    const auto recorder = std::move(Recorder::create(path())).value();
    const std::size_t before = agent.count("rounds.list");

    node.link().recordTo(recorder.get());

    QTRY_VERIFY(agent.count("rounds.list") > before);
    agent.step(2.5);
    QTRY_VERIFY(node.state()->island.inner_step == 372);
    QTest::qWait(30);
    node.link().recordTo(nullptr);
  }

  const auto node = node_of(path(), 1);
  node->start();

  QTRY_VERIFY(node->state() && node->state()->island.inner_step == 372 && node->rounds().rowCount() > 0);
}

void RecordingTest::calls_are_answered_as_they_were_at_that_time() {
  RecordingScript script(path());
  script.answer(0, "a", {{"x", 1}}, {{"said", "early"}});
  script.answer(0, "b", {{"x", 1}}, {{"said", "b1"}});
  script.answer(0, "b", {{"x", 2}}, {{"said", "b2"}});
  script.answer(100, "a", {{"x", 1}}, {{"said", "late"}});
  script.close();
  const std::atomic<bool> stop{false};

  const auto index = RecordingIndex::read(path(), stop);

  QVERIFY(index.ok());
  const auto said = [&](const char* method, const nlohmann::json& params, double t) {
    QFile file(path());
    if (!file.open(QIODevice::ReadOnly) || !file.seek(index->find(method, params.dump(), t))) return std::string();
    return nlohmann::json::parse(parse_recorded_line(file.readLine())->text)["result"]["said"].get<std::string>();
  };
  QCOMPARE(said("a", {{"x", 1}}, 0), std::string("early"));
  QCOMPARE(said("a", {{"x", 1}}, 99), std::string("early"));
  QCOMPARE(said("a", {{"x", 1}}, 101), std::string("late"));
  QCOMPARE(said("a", {{"x", 9}}, 5), std::string("early"));  // another call of the method
  QCOMPARE(said("b", {{"x", 2}}, 5), std::string("b2"));
  QCOMPARE(index->find("c", "{}", 5), -1);
  QCOMPARE(index->program(), std::string("a test"));
}

void RecordingTest::what_was_never_answered_says_so() {
  RecordingScript script(path());
  script.greet(0);
  script.event(60, "last", nullptr);
  script.close();
  const auto node = node_of(path(), 1);
  node->start();
  QTRY_VERIFY(node->live());
  std::optional<Error> error, command;

  node->pause(std::nullopt, [&](const auto& answer) { error = answer.error(); });
  run_json(node->run(), {.arguments = {"export"}}, this, [&](const auto& answer) { command = answer.error(); });

  QTRY_VERIFY(error && command);
  QCOMPARE(error->code, ErrorCode::kNotFound);
  QVERIFY2(error->message.find("recording") != std::string::npos, error->message.c_str());
  QCOMPARE(command->code, ErrorCode::kInvalidArgument);
}

void RecordingTest::events_come_at_their_time_and_faster() {
  RecordingScript script(path());
  script.greet(0);
  for (int i = 1; i <= 10; ++i) script.event(i, "tick", nullptr);
  script.close();
  const auto node = node_of(path(), 20);
  int ticks = 0;
  connect(&node->link(), &AgentLink::eventReceived, this,
          [&](const LinkEvent& event) { ticks += event.name == "tick" ? 1 : 0; });
  QElapsedTimer timer;
  timer.start();

  node->start();

  QTRY_COMPARE(ticks, 10);
  QVERIFY2(timer.elapsed() >= 450, qPrintable(QString::number(timer.elapsed())));  // ten seconds, twenty times as fast
}

void RecordingTest::a_recorded_silence_looks_old() {
  RecordingScript script(path());
  script.greet(0);
  script.event(1, "step", test::training_state());
  script.event(700, "step", test::training_state());
  script.event(720, "end", nullptr);
  script.close();
  const auto node = node_of(path(), 100);  // a tenth of a second late is no silence yet
  std::vector<bool> lives;
  connect(&node->link(), &AgentLink::eventReceived, this, [&](const LinkEvent& event) {
    if (event.name == "step") lives.push_back(node->live());
  });

  node->start();

  QTRY_COMPARE(lives, (std::vector<bool>{true}));
  QTRY_VERIFY(!node->live());
  QTRY_VERIFY(*node->age() > 100s);
  QTRY_COMPARE_WITH_TIMEOUT(lives, (std::vector<bool>{true, true}), 60'000);
}

void RecordingTest::what_the_agent_answered_is_the_state_at_that_time() {
  RecordingScript script(path());
  script.greet(0);
  nlohmann::json state = test::training_state();
  for (int i = 1; i <= 5; ++i) {
    state["inner_step"] = 400 + i;
    script.answer(i, "state.get", nlohmann::json::object(), state);
  }
  script.event(6, "end", nullptr);
  script.close();
  const auto node = node_of(path(), 20);
  std::set<std::uint32_t> steps;
  connect(&node->link(), &AgentLink::eventReceived, this, [&] { steps.insert(node->state()->island.inner_step); });

  node->start();

  QTRY_COMPARE(node->link().state(), LinkState::kEnded);
  QCOMPARE(steps, (std::set<std::uint32_t>{371, 401, 402, 403, 404, 405}));
}

void RecordingTest::a_connection_that_ended_ends_and_goes_on() {
  RecordingScript script(path());
  script.greet(0);
  script.event(1, "before", nullptr);
  script.line(2, "closed", "the agent has ended");
  script.greet(30);
  script.event(31, "after", nullptr);
  script.event(60, "end", nullptr);
  script.close();
  const auto node = node_of(path(), 50);
  QStringList seen;
  connect(&node->link(), &AgentLink::eventReceived, this, [&](const LinkEvent& event) {
    if (event.seq > 0) seen << QString::fromStdString(event.name);
  });
  connect(&node->link(), &AgentLink::stateChanged, this, [&] {
    if (node->link().state() == LinkState::kLost) seen << QString::fromStdString(node->link().problem());
  });

  node->start();

  QTRY_COMPARE(seen, (QStringList{"before", "the agent has ended", "after", "end"}));
}

void RecordingTest::the_end_is_the_end_of_the_recording() {
  RecordingScript script(path());
  script.greet(0);
  script.close();
  const auto node = node_of(path(), 1);

  node->start();

  QTRY_COMPARE(node->link().state(), LinkState::kEnded);
  QVERIFY(!node->live());
  QVERIFY(node->link().problem().find("ends here") != std::string::npos);
}

void RecordingTest::a_recording_that_ends_within_a_line_is_played_to_there() {
  RecordingScript script(path());
  script.greet(0);
  script.event(0.1, "whole", nullptr);
  script.close();
  std::ofstream(path().toStdString(), std::ios::app) << R"({"t":0.2,"in":"{\"jsonrpc\":\"2.0\",\"met)";
  const auto node = node_of(path(), 1);
  std::vector<std::string> events;
  connect(&node->link(), &AgentLink::eventReceived, this, [&](const LinkEvent& event) {
    if (event.seq > 0) events.push_back(event.name);
  });

  node->start();

  QTRY_COMPARE(node->link().state(), LinkState::kEnded);
  QCOMPARE(events, std::vector<std::string>{"whole"});
  QVERIFY2(node->link().problem().find("breaks off") != std::string::npos, node->link().problem().c_str());
  QVERIFY(ends_within_a_line(path()));
}

void RecordingTest::what_is_no_recording_is_refused_data() {
  QTest::addColumn<QByteArray>("content");
  QTest::addColumn<QString>("words");
  QTest::newRow("empty") << QByteArray() << "is no recording";
  QTest::newRow("something else") << QByteArray("#!/bin/sh\n") << "is no recording";
  QTest::newRow("of tomorrow") << QByteArray("{\"atoll_recording\":2}\n") << "another version";
  QTest::newRow("one line without end") << QByteArray(10 << 20, 'x') << "is no recording";
}

void RecordingTest::what_is_no_recording_is_refused() {
  QFETCH(const QByteArray, content);
  QFETCH(const QString, words);
  QFile file(path());
  QVERIFY(file.open(QIODevice::WriteOnly));
  file.write(content);
  file.close();
  const auto node = node_of(path(), 1), missing = node_of(path("none"), 1);

  node->start();
  missing->start();

  QTRY_COMPARE(node->link().state(), LinkState::kRefused);
  QVERIFY2(node->link().problem().find(words.toStdString()) != std::string::npos, node->link().problem().c_str());
  QTRY_COMPARE(missing->link().state(), LinkState::kRefused);
}

// Of the models alone; the window's part is in replay_week_test.
void RecordingTest::a_week_in_seconds_grows_nothing_and_never_looks_old() {
  constexpr double kSpeed = 200'000;
  const test::WeekEnd end = test::record_week(path(), {.step_seconds = 4.5,
                                                       .sync_seconds = 20,
                                                       .progress_seconds = 5,
                                                       .gpus = 2,
                                                       .gpu_seconds = 60,
                                                       .state_seconds = 4.6});
  const auto node = node_of(path(), kSpeed);
  for (const SeriesAxis axis : {SeriesAxis::kTime, SeriesAxis::kStep}) {
    (void)node->history().series("loss_nats", axis);
    (void)node->history().series("gpu.1.power_watts", axis);
  }
  std::uint64_t events = 0;
  int old = 0;
  std::size_t early = 0;
  connect(&node->link(), &AgentLink::eventReceived, this, [&](const LinkEvent& event) {
    if (event.seq > 0 && ++events == end.events / 8) early = test::resident_bytes();
  });
  connect(node.get(), &Node::changed, this, [&] {
    if (node->state() && node->link().state() == LinkState::kConnected && !node->live()) ++old;
  });
  test::LoopWatch watch;
  QElapsedTimer timer;
  timer.start();

  node->start();
  QTRY_COMPARE_WITH_TIMEOUT(node->link().state(), LinkState::kEnded, 400'000);

  const std::size_t late = test::resident_bytes();
  qInfo("%llu events in %.1f s, %.1f MiB more than after an eighth, longest turn %lld ms",
        static_cast<unsigned long long>(events), static_cast<double>(timer.elapsed()) / 1e3,
        (static_cast<double>(late) - static_cast<double>(early)) / (1 << 20), watch.longest_ms());
  QCOMPARE(old, 0);
  QCOMPARE(events, end.events);
  QVERIFY(late < early + (24u << 20) + test::kOfSanitizer);
  QVERIFY2(watch.never_held_up(), qPrintable(QString::number(watch.longest_ms())));
  QCOMPARE(node->state()->island.loss_nats, end.state["loss_nats"].get<double>());
  QCOMPARE(node->gpus().size(), 2u);
  QCOMPARE(node->history().series("loss_nats", SeriesAxis::kTime).last(), end.stepped);
}

void RecordingTest::at_its_end_what_was_said_is_as_old_as_it_was_then() {
  RecordingScript script(path());
  script.greet(0);
  script.event(100, "step", test::training_state());
  script.event(112, "hub.link", {{"up", true}});
  script.close();
  for (const double speed : {20.0, 1e6}) {
    const auto node = node_of(path(), speed);

    node->start();

    QTRY_COMPARE_WITH_TIMEOUT(node->link().state(), LinkState::kEnded, 20'000);
    QVERIFY2(*node->age() >= 12s && *node->age() < 60s, qPrintable(QString::number(node->age()->count())));
  }
}

void RecordingTest::a_log_is_not_read_twice() {
  RecordingScript script(path());
  const auto lines = [](const char* text) {
    return nlohmann::json{{{"source", "agent"}, {"time", "14:05:01"}, {"level", "info"}, {"text", text}}};
  };
  script.greet(0);
  script.answer(1, "logs.read", {{"limit", 2000u}}, {{"lines", lines("first")}, {"cursor", "1"}, {"more", false}});
  script.answer(2, "logs.read", {{"limit", 2000u}, {"cursor", "1"}},
                {{"lines", lines("second")}, {"cursor", "2"}, {"more", false}});
  script.event(4, "almost over", nullptr);
  script.event(8, "over", nullptr);
  script.close();
  const auto node = node_of(path(), 2);
  node->start();
  QTRY_VERIFY(node->live());

  node->log().follow(true);

  QTRY_COMPARE(node->log().rowCount(), 1);
  QTRY_COMPARE(node->log().rowCount(), 2);
  QCOMPARE(node->log().row(1).text, std::string("second"));
  QTRY_COMPARE(node->link().state(), LinkState::kEnded);
  QCOMPARE(node->log().rowCount(), 2);
}

QTEST_GUILESS_MAIN(RecordingTest)
#include "recording_test.moc"
