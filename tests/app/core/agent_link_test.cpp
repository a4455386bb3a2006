// The connection to an agent, over an agent in memory: hello, calls, events, and every way in which it is lost.
#include "app/core/agent_link.h"

#include <QSignalSpy>
#include <QtTest>

#include "tests/app/core/fake_agent.h"
#include "tests/fakes/patience.h"

using namespace atl;
using namespace std::chrono_literals;
using atl::test::FakeAgent;

namespace {

constexpr LinkTiming kFast{.first_retry = 10ms, .longest_retry = 80ms, .answer_time = 150ms, .hello_time = 150ms};

class Fixture {
 public:
  explicit Fixture(LinkTiming timing = kFast) : link(agent.open(), timing) {
    QObject::connect(&link, &AgentLink::eventReceived, &link,
                     [this](const LinkEvent& event) { events.push_back(event); });
    QObject::connect(&link, &AgentLink::mustReload, &link, [this] { ++reloads; });
    QObject::connect(&link, &AgentLink::eventsLost, &link, [this] { ++losses; });
  }
  bool connect() {
    link.start();
    return QTest::qWaitFor([this] { return link.state() == LinkState::kConnected; });
  }
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const LinkEvent& event : events) names.push_back(event.name);
    return names;
  }

  FakeAgent agent;
  AgentLink link;
  std::vector<LinkEvent> events;
  int reloads = 0, losses = 0;
};

using Names = std::vector<std::string>;

}  // namespace

class AgentLinkTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void it_says_hello_subscribes_and_asks_to_reload_once();
  void events_from_before_it_looked_are_told_as_kept();
  void a_call_is_answered_once_and_never_within_it();
  void a_call_whose_asker_is_gone_is_not_answered();
  void an_error_keeps_its_code_and_words();
  void an_unanswered_call_times_out();
  void a_call_without_a_connection_fails_at_once();
  void nobody_there_is_said_and_looked_for_again();
  void another_version_is_refused_with_what_to_do();
  void garbage_ends_the_connection_and_it_tries_again();
  void silence_ends_the_connection_and_it_tries_again();
  void a_broken_connection_is_made_again_without_a_loss();
  void events_that_are_not_kept_any_more_are_a_loss();
  void a_gap_in_the_numbers_is_a_loss();
  void another_agent_with_fewer_events_is_noticed();
  void another_agent_with_more_events_is_noticed();
  void waits_grow_between_attempts();
  void an_agent_that_goes_behind_its_bridge_is_looked_for_on_the_same_connection();
  void a_bridge_tells_that_its_agent_has_gone();
  void the_end_of_a_recording_is_no_loss();
  void to_reconnect_is_at_once();
  void it_may_go_in_the_middle_of_a_signal();
};

void AgentLinkTest::it_says_hello_subscribes_and_asks_to_reload_once() {
  Fixture f;

  QVERIFY(f.connect());

  QTRY_COMPARE(f.reloads, 1);
  QCOMPARE(f.losses, 0);
  QCOMPARE(f.link.program(), std::string("atoll-agent"));
  QVERIFY(f.link.problem().empty());
  QCOMPARE(f.agent.last_params("events.subscribe"), (nlohmann::json{{"since", 0u}}));
}

void AgentLinkTest::events_from_before_it_looked_are_told_as_kept() {
  Fixture f;
  f.agent.tell("old", {});
  QVERIFY(f.connect());
  f.agent.tell("new", {{"a", 1}}, 1'763'725'000.25);

  QTRY_COMPARE(f.names(), (Names{"old", "new"}));
  QVERIFY(f.events[0].kept);
  QVERIFY(!f.events[1].kept);
  QCOMPARE(f.events[1].seq, 2u);
  QCOMPARE(f.events[1].time, 1'763'725'000.25);
  QCOMPARE(f.events[1].data["a"], 1);
  QCOMPARE(f.reloads, 1);
}

void AgentLinkTest::a_call_is_answered_once_and_never_within_it() {
  Fixture f;
  QVERIFY(f.connect());
  int answers = 0;
  std::string state;

  f.link.call("state.get", nlohmann::json::object(), nullptr, [&](const auto& answer) {
    ++answers;
    if (answer.ok()) state = (*answer)["state"].template get<std::string>();
  });

  QCOMPARE(answers, 0);
  QTRY_COMPARE(answers, 1);
  QCOMPARE(state, std::string("training"));
  QTest::qWait(2 * static_cast<int>(kFast.answer_time.count()));
  QCOMPARE(answers, 1);
}

void AgentLinkTest::a_call_whose_asker_is_gone_is_not_answered() {
  Fixture f;
  QVERIFY(f.connect());
  bool answered = false;
  auto asker = std::make_unique<QObject>();

  f.link.call("state.get", nlohmann::json::object(), asker.get(), [&](const auto&) { answered = true; });
  asker.reset();

  QTRY_COMPARE(f.agent.count("state.get"), 1u);
  QTest::qWait(20);
  QVERIFY(!answered);
}

void AgentLinkTest::an_error_keeps_its_code_and_words() {
  Fixture f;
  QVERIFY(f.connect());
  f.agent.fail("join", ErrorCode::kInviteUsed, "the invite was used already");
  std::optional<Error> error;

  f.link.call("join", nlohmann::json::object(), this, [&](const auto& answer) { error = answer.error(); });

  QTRY_VERIFY(error);
  QCOMPARE(error->code, ErrorCode::kInviteUsed);
  QCOMPARE(error->message, std::string("the invite was used already"));
}

void AgentLinkTest::an_unanswered_call_times_out() {
  Fixture f;
  QVERIFY(f.connect());
  f.agent.fall_silent();
  std::optional<Error> error;

  f.link.call("rounds.list", nlohmann::json::object(), this, [&](const auto& answer) { error = answer.error(); });

  QTRY_VERIFY(error);
  QCOMPARE(error->code, ErrorCode::kTimeout);
  QVERIFY2(error->message.find("rounds.list") != std::string::npos, error->message.c_str());
}

void AgentLinkTest::a_call_without_a_connection_fails_at_once() {
  Fixture f;
  std::optional<Error> before, nobody;
  f.link.call("state.get", nlohmann::json::object(), this, [&](const auto& answer) { before = answer.error(); });
  QVERIFY(!before);
  QTRY_VERIFY(before);
  QCOMPARE(before->code, ErrorCode::kPeerLost);

  f.agent.refuse({ErrorCode::kNotRunning, "nothing answers at agent.sock"});
  f.link.start();
  QTRY_COMPARE(f.link.state(), LinkState::kNoAgent);
  f.link.call("state.get", nlohmann::json::object(), this, [&](const auto& answer) { nobody = answer.error(); });

  QTRY_VERIFY(nobody);
  QCOMPARE(nobody->code, ErrorCode::kNotRunning);
}

void AgentLinkTest::nobody_there_is_said_and_looked_for_again() {
  Fixture f;
  f.agent.refuse({ErrorCode::kNotRunning, "nothing answers at agent.sock"});
  f.link.start();
  QTRY_COMPARE(f.link.state(), LinkState::kNoAgent);
  QCOMPARE(f.link.problem(), std::string("nothing answers at agent.sock"));

  f.agent.welcome();

  QTRY_COMPARE(f.link.state(), LinkState::kConnected);
  QVERIFY(f.link.problem().empty());
}

void AgentLinkTest::another_version_is_refused_with_what_to_do() {
  Fixture f;
  f.agent.set_version(2);
  f.link.start();

  QTRY_COMPARE(f.link.state(), LinkState::kRefused);
  QVERIFY2(f.link.problem().find("Install the same version") != std::string::npos, f.link.problem().c_str());
  QTest::qWait(3 * static_cast<int>(kFast.longest_retry.count()));
  QCOMPARE(f.agent.attempts(), 1u);

  f.agent.set_version(1);
  f.link.reconnect();
  QTRY_COMPARE(f.link.state(), LinkState::kConnected);
}

void AgentLinkTest::garbage_ends_the_connection_and_it_tries_again() {
  Fixture f;
  QVERIFY(f.connect());
  QSignalSpy changes(&f.link, &AgentLink::stateChanged);
  bool lost = false;
  connect(&f.link, &AgentLink::stateChanged, this, [&] {
    lost =
        lost || (f.link.state() == LinkState::kLost && f.link.problem().find("control protocol") != std::string::npos);
  });

  f.agent.send_line("<html>no agent</html>");

  QTRY_VERIFY(lost);
  QTRY_COMPARE(f.link.state(), LinkState::kConnected);
}

void AgentLinkTest::silence_ends_the_connection_and_it_tries_again() {
  Fixture f;
  QVERIFY(f.connect());
  f.agent.fall_silent();
  f.link.call("state.get", nlohmann::json::object(), this, [](const auto&) {});

  QTRY_COMPARE(f.link.state(), LinkState::kLost);
  QTRY_VERIFY(f.agent.attempts() >= 3u);  // hello is not answered either
  f.agent.answer_again();

  QTRY_COMPARE(f.link.state(), LinkState::kConnected);
}

void AgentLinkTest::a_broken_connection_is_made_again_without_a_loss() {
  Fixture f;
  QVERIFY(f.connect());
  f.agent.tell("one", {});
  QTRY_COMPARE(f.events.size(), 1u);
  std::optional<Error> cut;
  f.agent.fall_silent();
  f.link.call("state.get", nlohmann::json::object(), this, [&](const auto& answer) { cut = answer.error(); });

  f.agent.hang_up();
  f.agent.answer_again();
  f.agent.tell("two", {});

  QTRY_COMPARE(f.names(), (Names{"one", "two"}));
  QVERIFY(cut && cut->code == ErrorCode::kPeerLost);
  QVERIFY(!f.events[1].kept);
  QCOMPARE(f.reloads, 1);
  QCOMPARE(f.losses, 0);
}

void AgentLinkTest::events_that_are_not_kept_any_more_are_a_loss() {
  Fixture f;
  QVERIFY(f.connect());
  f.agent.tell("one", {});
  QTRY_COMPARE(f.events.size(), 1u);

  f.agent.hang_up();
  f.agent.lose_events(5);
  f.agent.tell("seven", {});

  QTRY_COMPARE(f.names(), (Names{"one", "seven"}));
  QCOMPARE(f.reloads, 2);
  QCOMPARE(f.losses, 1);
}

void AgentLinkTest::a_gap_in_the_numbers_is_a_loss() {
  Fixture f;
  QVERIFY(f.connect());
  f.agent.tell("one", {});
  f.agent.lose_events(1);
  f.agent.tell("three", {});

  QTRY_COMPARE(f.names(), (Names{"one", "three"}));
  QCOMPARE(f.reloads, 2);
  QCOMPARE(f.losses, 1);
}

void AgentLinkTest::another_agent_with_fewer_events_is_noticed() {
  Fixture f;
  QVERIFY(f.connect());
  for (int i = 0; i < 5; ++i) f.agent.tell("before", {});
  QTRY_COMPARE(f.events.size(), 5u);

  f.agent.restart();
  f.agent.tell("after", {});

  QTRY_COMPARE(f.events.size(), 6u);
  QCOMPARE(f.events.back().name, std::string("after"));
  QCOMPARE(f.reloads, 2);
  QCOMPARE(f.losses, 1);
  f.agent.tell("on", {});
  QTRY_COMPARE(f.events.back().name, std::string("on"));
  QCOMPARE(f.reloads, 2);
}

void AgentLinkTest::another_agent_with_more_events_is_noticed() {
  Fixture f;
  QVERIFY(f.connect());
  f.agent.tell("before", {});
  QTRY_COMPARE(f.events.size(), 1u);

  f.agent.restart();
  for (int i = 0; i < 5; ++i) f.agent.tell("after", {});

  QTRY_COMPARE(f.events.back().seq, 5u);
  QCOMPARE(f.reloads, 2);
  QCOMPARE(f.losses, 1);
}

void AgentLinkTest::waits_grow_between_attempts() {
  Fixture f({.first_retry = 20ms, .longest_retry = 320ms, .answer_time = 150ms, .hello_time = 150ms});
  f.agent.refuse({ErrorCode::kUnreachable, "no route to host"});
  f.link.start();

  QTest::qWait(1000);

  // 20, 40, 80, 160, 320, 320: a slow machine makes fewer.
  QCOMPARE(f.link.state(), LinkState::kLost);
  QVERIFY2(f.agent.attempts() <= 8, qPrintable(QString::number(f.agent.attempts())));
  QVERIFY(f.agent.attempts() >= 2);
}

void AgentLinkTest::an_agent_that_goes_behind_its_bridge_is_looked_for_on_the_same_connection() {
  Fixture f;
  QVERIFY(f.connect());
  f.agent.tell("one", {});
  QTRY_COMPARE(f.events.size(), 1u);
  bool nobody = false;
  connect(&f.link, &AgentLink::stateChanged, this, [&] { nobody = nobody || f.link.state() == LinkState::kNoAgent; });

  f.agent.fail("state.get", ErrorCode::kNotRunning, "no agent is running on that machine");
  f.agent.fail("events.subscribe", ErrorCode::kNotRunning, "no agent is running on that machine");
  f.link.call("state.get", nlohmann::json::object(), this, [](const auto&) {});
  QTRY_VERIFY(nobody);
  f.agent.forget("events.subscribe");

  QTRY_COMPARE(f.link.state(), LinkState::kConnected);
  QCOMPARE(f.agent.attempts(), 1u);
  QCOMPARE(f.reloads, 1);
}

void AgentLinkTest::a_bridge_tells_that_its_agent_has_gone() {
  Fixture f;
  QVERIFY(f.connect());
  f.agent.fall_silent();
  std::optional<Error> error;
  f.link.call("rounds.list", nlohmann::json::object(), this, [&](const auto& answer) { error = answer.error(); });
  QTRY_COMPARE(f.agent.count("rounds.list"), 1u);
  f.agent.answer_again();
  f.agent.fail("events.subscribe", ErrorCode::kNotRunning, "no agent is running on that machine");

  f.agent.send_line(R"({"jsonrpc":"2.0","method":"event","params":{"event":"agent.gone","data":{}}})");

  QTRY_COMPARE(f.link.state(), LinkState::kNoAgent);
  QVERIFY(error && error->code == ErrorCode::kPeerLost);
  f.agent.forget("events.subscribe");
  QTRY_COMPARE(f.link.state(), LinkState::kConnected);
  QCOMPARE(f.agent.attempts(), 1u);
}

void AgentLinkTest::the_end_of_a_recording_is_no_loss() {
  Fixture f;
  QVERIFY(f.connect());

  f.agent.hang_up({ErrorCode::kAborted, "the recording ends here"});

  QTRY_COMPARE(f.link.state(), LinkState::kEnded);
  QTest::qWait(3 * static_cast<int>(kFast.longest_retry.count()));
  QCOMPARE(f.agent.attempts(), 1u);
}

void AgentLinkTest::to_reconnect_is_at_once() {
  Fixture f({.first_retry = 10min, .longest_retry = 10min, .answer_time = 150ms, .hello_time = 150ms});
  f.agent.refuse({ErrorCode::kUnreachable, "no route to host"});
  f.link.start();
  QTRY_COMPARE(f.link.state(), LinkState::kLost);
  f.agent.welcome();

  f.link.reconnect();

  QCOMPARE(f.link.state(), LinkState::kConnecting);
  QTRY_COMPARE(f.link.state(), LinkState::kConnected);
}

void AgentLinkTest::it_may_go_in_the_middle_of_a_signal() {
  FakeAgent agent;
  auto link = std::make_unique<AgentLink>(agent.open(), kFast);
  connect(link.get(), &AgentLink::eventReceived, this, [&](const LinkEvent&) { link.reset(); });
  link->start();
  QTRY_COMPARE(link->state(), LinkState::kConnected);

  agent.tell("last", {});
  agent.tell("never heard", {});

  QTRY_VERIFY(!link);
  QTest::qWait(20);
}

QTEST_GUILESS_MAIN(AgentLinkTest)
#include "agent_link_test.moc"
