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
#include "tests/app/core/loop_watch.h"

using namespace atl;
using namespace std::chrono_literals;
using atl::test::FakeAgent;
using atl::test::FakeCommands;

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

// Lines as a recorder writes them, without one.
class Script {
 public:
  explicit Script(const QString& path) : out_(path.toStdString()) {
    out_ << R"({"atoll_recording":1,"program":"a test","time":1763725000.0})"
         << "\n";
  }
  void line(double t, const char* key, const std::string& text) {
    out_ << nlohmann::json{{"t", t}, {key, text}}.dump() << "\n";
  }
  void answer(double t, const char* method, const nlohmann::json& params, const nlohmann::json& result) {
    ++id_;
    line(t, "out", encode_request(id_, method, params));
    std::string text = encode_response(id_, result);
    text.pop_back();
    line(t, "in", text);
  }
  void event(double t, const std::string& name, const nlohmann::json& data) {
    std::string text = encode_event({{"event", name}, {"seq", ++seq_}, {"time", 1'763'725'000 + t}, {"data", data}});
    text.pop_back();
    line(t, "in", text);
  }
  void greet(double t) {
    answer(t, "hello", nlohmann::json::object(), {{"version", 1}, {"program", "atoll-agent"}});
    answer(t, "events.subscribe", {{"since", 0u}}, {{"first", 1u}, {"last", seq_}});
    answer(t, "state.get", nlohmann::json::object(), test::training_state());
  }
  void close() { out_.close(); }

 private:
  std::ofstream out_;
  std::int64_t id_ = 0;
  std::uint64_t seq_ = 0;
};

std::size_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::size_t total = 0, resident = 0;
  statm >> total >> resident;
  return resident * 4096;
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
  void days_in_seconds_grow_nothing_and_never_look_old();

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
  auto recorder = Recorder::create("/dev/full");
  if (!recorder.ok()) QSKIP("this user may not write to /dev/full");

  for (int i = 0; i < 10; ++i) (*recorder)->received("{}");

  QVERIFY2((*recorder)->problem().find("/dev/full") != std::string::npos, (*recorder)->problem().c_str());
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
  QCOMPARE(node->state()->agent.wish, std::string("run"));
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
  Script script(path());
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
  Script script(path());
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
  Script script(path());
  script.greet(0);
  for (int i = 1; i <= 10; ++i) script.event(i, "tick", nullptr);
  script.close();
  const auto node = node_of(path(), 20);
  int ticks = 0;
  connect(&node->link(), &AgentLink::event, this, [&] { ++ticks; });
  QElapsedTimer timer;
  timer.start();

  node->start();

  QTRY_COMPARE(ticks, 10);
  QVERIFY2(timer.elapsed() >= 450, qPrintable(QString::number(timer.elapsed())));  // ten seconds, twenty times as fast
}

void RecordingTest::a_recorded_silence_looks_old() {
  Script script(path());
  script.greet(0);
  script.event(1, "step", test::training_state());
  script.event(3600, "step", test::training_state());
  script.event(7200, "end", nullptr);
  script.close();
  const auto node = node_of(path(), 1000);
  std::vector<bool> lives;
  connect(&node->link(), &AgentLink::event, this, [&](const ControlEvent& event) {
    if (event.name == "step") lives.push_back(node->live());
  });

  node->start();

  QTRY_COMPARE(lives, (std::vector<bool>{true}));
  QTRY_VERIFY(!node->live());
  QTRY_VERIFY(*node->age() > 600s);
  QTRY_COMPARE(lives, (std::vector<bool>{true, true}));
}

void RecordingTest::what_the_agent_answered_is_the_state_at_that_time() {
  Script script(path());
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
  connect(&node->link(), &AgentLink::event, this, [&] { steps.insert(node->state()->island.inner_step); });

  node->start();

  QTRY_COMPARE(node->link().state(), LinkState::kEnded);
  QCOMPARE(steps, (std::set<std::uint32_t>{371, 401, 402, 403, 404, 405}));
}

void RecordingTest::a_connection_that_ended_ends_and_goes_on() {
  Script script(path());
  script.greet(0);
  script.event(1, "before", nullptr);
  script.line(2, "closed", "the agent has ended");
  script.greet(30);
  script.event(31, "after", nullptr);
  script.event(60, "end", nullptr);
  script.close();
  const auto node = node_of(path(), 50);
  QStringList seen;
  connect(&node->link(), &AgentLink::event, this, [&](const ControlEvent& event) {
    if (event.seq > 0) seen << QString::fromStdString(event.name);
  });
  connect(&node->link(), &AgentLink::stateChanged, this, [&] {
    if (node->link().state() == LinkState::kLost) seen << QString::fromStdString(node->link().problem());
  });

  node->start();

  QTRY_COMPARE(seen, (QStringList{"before", "the agent has ended", "after", "end"}));
}

void RecordingTest::the_end_is_the_end_of_the_recording() {
  Script script(path());
  script.greet(0);
  script.close();
  const auto node = node_of(path(), 1);

  node->start();

  QTRY_COMPARE(node->link().state(), LinkState::kEnded);
  QVERIFY(!node->live());
  QVERIFY(node->link().problem().find("ends here") != std::string::npos);
}

void RecordingTest::a_recording_that_ends_within_a_line_is_played_to_there() {
  Script script(path());
  script.greet(0);
  script.event(0.1, "whole", nullptr);
  script.close();
  std::ofstream(path().toStdString(), std::ios::app) << R"({"t":0.2,"in":"{\"jsonrpc\":\"2.0\",\"met)";
  const auto node = node_of(path(), 1);
  std::vector<std::string> events;
  connect(&node->link(), &AgentLink::event, this, [&](const ControlEvent& event) {
    if (event.seq > 0) events.push_back(event.name);
  });

  node->start();

  QTRY_COMPARE(node->link().state(), LinkState::kEnded);
  QCOMPARE(events, std::vector<std::string>{"whole"});
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

// Half a week, a step each three seconds, in as short a time as it takes.
void RecordingTest::days_in_seconds_grow_nothing_and_never_look_old() {
  constexpr int kSteps = 7 * 24 * 600;
  constexpr double kEvery = 3, kSpeed = 60'000;
  {
    Script script(path());
    script.greet(0);
    nlohmann::json state = test::training_state();
    state.erase("agent");
    for (int i = 1; i <= kSteps; ++i) {
      state["inner_step"] = i % 500;
      state["round"] = i / 500;
      state["outer_step"] = i / 500;
      state["tokens"] = std::uint64_t{1000} * static_cast<std::uint64_t>(i);
      const double t = (i - 1) * kEvery;  // never more than the age that looks old
      script.event(t, i % 500 == 0 ? "round.begin" : i % 500 == 499 ? "sync.done" : "step", state);
      if (i % 250 == 0) {
        script.event(t, "sync.phase",
                     {{"round", i / 500}, {"attempt", 1}, {"phase", "wait"}, {"seconds", 1.5}, {"bytes", 0}});
      }
    }
    script.close();
  }
  const auto node = node_of(path(), kSpeed);
  (void)node->history().series("loss_nats", SeriesAxis::kTime);
  (void)node->history().series("loss_nats", SeriesAxis::kStep);
  (void)node->history().series("tokens_per_second", SeriesAxis::kTime);
  int events = 0, old = 0;
  std::size_t early = 0, late = 0;
  connect(&node->link(), &AgentLink::event, this, [&] {
    if (++events == kSteps / 5) early = resident_bytes();
  });
  connect(node.get(), &Node::changed, this, [&] {
    if (node->state() && node->link().state() == LinkState::kConnected && !node->live()) ++old;
  });
  test::LoopWatch watch;
  QElapsedTimer timer;
  timer.start();

  node->start();
  QTRY_COMPARE_WITH_TIMEOUT(node->link().state(), LinkState::kEnded, 100'000);

  late = resident_bytes();
  qInfo("%d events in %.1f s, %.1f MiB more at the end, longest turn %lld ms", events, timer.elapsed() / 1e3,
        (static_cast<double>(late) - static_cast<double>(early)) / (1 << 20), watch.longest_ms());
  QCOMPARE(old, 0);
  QVERIFY(events >= kSteps);
  QVERIFY(late < early + (24u << 20));
  QVERIFY2(watch.longest_ms() <= 50, qPrintable(QString::number(watch.longest_ms())));
}

QTEST_GUILESS_MAIN(RecordingTest)
#include "recording_test.moc"
