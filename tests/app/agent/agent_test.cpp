// An agent, from its first trainer to its end: who is started, told, taken over; what it answers, what it keeps.
#include "app/agent/agent.h"

#include <sys/socket.h>

#include <QtTest>
#include <csignal>
#include <thread>

#include "net/base/file.h"
#include "net/base/mutex.h"
#include "net/control/unix_socket.h"
#include "tests/app/agent/agent_fixture.h"

using namespace atl;

namespace {

bool has_trainer(const nlohmann::json& state) { return state["agent"]["trainer_pid"] > 0; }

// One that has contributed; its process ends when it is asked to.
class GivingTrainer final : public ControlService {
 public:
  void says(pid_t pid, std::uint64_t tokens, std::uint64_t rounds) {
    MutexLock lock(mutex_);
    state_.pid = pid;
    state_.run_id = "0123456789abcdef";
    state_.state = IslandPhase::kTraining;
    state_.tokens = tokens;
    state_.rounds_accepted = rounds;
  }
  Result<nlohmann::json> call(std::string_view method, const nlohmann::json&) override {
    MutexLock lock(mutex_);
    if (method == "pause" && state_.pid > 0) ::kill(static_cast<pid_t>(state_.pid), SIGTERM);
    return method == "agent.alive" || method == "state.get" ? state_.to_json() : nlohmann::json::object();
  }

 private:
  Mutex mutex_;
  IslandState state_ ATOLL_GUARDED_BY(mutex_);
};

}  // namespace

class AgentTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void an_agent_that_has_joined_nothing_says_so_and_starts_nothing();
  void a_joined_run_is_trained();
  void a_trainer_sees_the_gpus_that_it_may_use();
  void the_state_is_the_trainers_and_more();
  void what_was_contributed_outlives_trainers_and_agents();
  void events_of_the_trainer_are_passed_on();
  void the_free_disk_is_part_of_the_state();
  void the_logs_are_read_page_by_page();
  void a_wish_is_kept_and_followed_by_the_next_agent();
  void a_wish_that_cannot_be_kept_is_followed_and_said();
  void a_corrupt_wish_waits_for_a_word();
  void a_pause_asks_the_trainer();
  void a_pause_for_a_while_ends_by_itself();
  void a_trainer_that_is_killed_is_started_again();
  void a_refused_trainer_is_not_and_its_words_are_shown();
  void a_trainer_is_told_how_long_its_log_may_grow();
  void the_owners_log_level_reaches_the_trainer();
  void a_trainer_that_changed_its_log_is_judged_by_its_last_words();
  void a_living_trainer_is_taken_over();
  void a_second_agent_is_refused();
  void leaving_sets_the_membership_aside();
  void stop_now_does_not_wait_for_the_trainer();
  void wrong_calls_are_refused_data();
  void wrong_calls_are_refused();
  void clients_that_flood_do_not_stop_it();
  void the_end_of_the_agent_is_the_trainers();
};

void AgentTest::an_agent_that_has_joined_nothing_says_so_and_starts_nothing() {
  AgentFixture f(/*joined=*/false);
  QVERIFY(f.start().ok());

  QVERIFY(f.wait_for("unjoined"));
  QCOMPARE(f.call("pause").error().code, ErrorCode::kNotJoined);
  f.end();

  QCOMPARE(f.starts(), 0);
}

void AgentTest::a_joined_run_is_trained() {
  AgentFixture f;
  QVERIFY(f.start().ok());

  QVERIFY(f.wait_until(has_trainer));

  QCOMPARE(f.state()["run_name"].get<std::string>(), std::string("gcide"));
  QCOMPARE(f.state()["agent"]["wish"].get<std::string>(), std::string("run"));
}

void AgentTest::a_trainer_sees_the_gpus_that_it_may_use() {
  AgentFixture f(/*joined=*/false,
                 "echo \"$CUDA_VISIBLE_DEVICES $CUDA_DEVICE_ORDER\" > \"$(dirname $0)/gpus\"; exec sleep 600");
  JoinFile join;
  join.gpus = "0-1,5";
  QVERIFY(save_join_file(f.home().island.join_file(), join).ok());

  QVERIFY(f.start().ok());

  QTRY_COMPARE_WITH_TIMEOUT(read_file(f.path("gpus")).ok() ? *read_file(f.path("gpus")) : "",
                            std::string("0,1,5 PCI_BUS_ID\n"), 20'000);
}

void AgentTest::the_state_is_the_trainers_and_more() {
  AgentFixture f;
  FakeTrainer service;
  const auto trainer = ControlServer::start(f.home().island.control_socket(), "atoll-trainer", service);
  QVERIFY(trainer.ok());
  QVERIFY(f.start().ok());

  QVERIFY(f.wait_for("training"));

  const auto parsed = IslandState::from_json(f.state());
  QVERIFY(parsed.ok());
  QCOMPARE(parsed->round, 42u);
  QVERIFY(f.state()["agent"]["heard_seconds_ago"].is_number());
}

void AgentTest::what_was_contributed_outlives_trainers_and_agents() {
  AgentFixture f;
  GivingTrainer service;
  const auto trainer = ControlServer::start(f.home().island.control_socket(), "atoll-trainer", service);
  const auto given = [](const nlohmann::json& state) {
    return state.value("agent", nlohmann::json::object()).value("contributed", nlohmann::json::object());
  };
  const auto gave = [&](std::uint64_t tokens, std::uint64_t rounds) {
    return f.wait_until([&](const nlohmann::json& state) {
      const nlohmann::json life = given(state).value("life", nlohmann::json::object());
      return life.value("tokens", 0u) == tokens && life.value("rounds_accepted", 0u) == rounds;
    });
  };
  QVERIFY(f.start().ok());
  QVERIFY(f.wait_until(has_trainer));
  service.says(f.trainer(), 349'696, 12);
  QVERIFY(gave(349'696, 12));
  f.end();

  service.says(0, 0, 0);
  QVERIFY(f.start().ok());
  QVERIFY(f.wait_until(has_trainer));
  service.says(f.trainer(), 20'480, 1);
  QVERIFY(gave(370'176, 13));
  QCOMPARE(given(f.state())["run"]["tokens"].get<std::uint64_t>(), 370'176u);
}

void AgentTest::events_of_the_trainer_are_passed_on() {
  AgentFixture f;
  FakeTrainer service;
  const auto trainer = ControlServer::start(f.home().island.control_socket(), "atoll-trainer", service);
  QVERIFY(f.start().ok());
  QVERIFY(f.wait_for("training"));
  const auto client = ControlClient::connect(f.home().socket, Deadline::after(kLimit));
  QVERIFY((*client)->call("events.subscribe", nlohmann::json::object(), Deadline::after(kLimit)).ok());

  IslandState state;
  state.round = 7;
  state.outer_step = 8;
  (*trainer)->publish("sync.done", state.to_json());
  bool round_told = false;  // of a trainer that does not tell it

  for (;;) {
    const auto event = (*client)->next_event(Deadline::after(kLimit));
    QVERIFY(event.ok());
    round_told = round_told || (*event)["event"] == "round.done";
    if ((*event)["event"] != "sync.done") continue;
    QCOMPARE((*event)["data"]["round"].get<int>(), 7);
    QCOMPARE((*event)["data"]["agent"]["wish"].get<std::string>(), std::string("run"));  // put together by the agent
    QVERIFY(round_told);
    break;
  }
}

void AgentTest::the_free_disk_is_part_of_the_state() {
  AgentFixture f;
  QVERIFY(f.start().ok());

  QVERIFY(f.wait_until([](const nlohmann::json& now) { return now.contains("disk_free_bytes"); }));

  const auto space = std::filesystem::space(f.path(""));
  const double told = f.state()["disk_free_bytes"].get<double>();
  QVERIFY(told > 0 && told <= static_cast<double>(space.capacity));
  QVERIFY(!f.state().contains("gpus"));  // there is no probe to ask
}

void AgentTest::the_logs_are_read_page_by_page() {
  AgentFixture f(true, "echo '2026-11-21T21:36:32.125 warning it is hot'; exec sleep 600");
  QVERIFY(f.start().ok());
  nlohmann::json page;
  const auto has_line = [&] {
    const auto read = f.call("logs.read", {{"limit", 10}});
    if (!read.ok()) return false;
    page = *read;
    return !page["lines"].empty();
  };
  QTRY_VERIFY_WITH_TIMEOUT(has_line(), 20'000);

  const nlohmann::json line = page["lines"].back();
  const auto next = f.call("logs.read", {{"cursor", page["cursor"]}});
  const auto wrong = f.call("logs.read", {{"cursor", "yesterday"}});

  QCOMPARE(line["source"].get<std::string>(), std::string("trainer"));
  QCOMPARE(line["time"].get<std::string>(), std::string("2026-11-21T21:36:32.125"));
  QCOMPARE(line["level"].get<std::string>(), std::string("warning"));
  QCOMPARE(line["text"].get<std::string>(), std::string("it is hot"));
  QVERIFY(next.ok() && (*next)["lines"].empty() && (*next)["more"] == false);
  QCOMPARE(wrong.error().code, ErrorCode::kInvalidArgument);
}

void AgentTest::a_wish_is_kept_and_followed_by_the_next_agent() {
  AgentFixture f;
  QVERIFY(f.start().ok());
  QVERIFY(f.wait_until(has_trainer));

  const auto answer = f.call("pause");
  QVERIFY(answer.ok());
  QVERIFY((*answer)["kept"].get<bool>());
  QVERIFY(f.wait_for("paused"));
  QCOMPARE(load_wish(f.home().wish_file())->wish, Wish::kPause);
  const auto starts = f.starts();
  f.end();
  QVERIFY(f.start().ok());
  QVERIFY(f.wait_for("paused"));
  QCOMPARE(f.starts(), starts);

  QVERIFY(f.call("resume").ok());

  QVERIFY(f.wait_until(has_trainer));
  QCOMPARE(load_wish(f.home().wish_file())->wish, Wish::kRun);
}

void AgentTest::a_wish_that_cannot_be_kept_is_followed_and_said() {
  AgentFixture f;
  QVERIFY(f.start().ok());
  QVERIFY(f.wait_until(has_trainer));
  std::filesystem::create_directories(f.home().wish_file());  // where the file should be

  const auto answer = f.call("pause");

  QVERIFY(answer.ok());
  QVERIFY(!(*answer)["kept"].get<bool>());
  QVERIFY(!(*answer)["warning"].get<std::string>().empty());
  QVERIFY(f.wait_for("paused"));
}

void AgentTest::a_corrupt_wish_waits_for_a_word() {
  AgentFixture f;
  std::filesystem::create_directories(f.home().state);
  std::ofstream(f.home().wish_file()) << "no wish at all";
  QVERIFY(f.start().ok());

  QVERIFY(f.wait_for("paused"));

  QCOMPARE(f.starts(), 0);
}

void AgentTest::a_pause_asks_the_trainer() {
  AgentFixture f;
  FakeTrainer service;
  const auto trainer = ControlServer::start(f.home().island.control_socket(), "atoll-trainer", service);
  QVERIFY(f.start().ok());
  QVERIFY(f.wait_for("training"));

  const auto answer = f.call("pause");

  QVERIFY(answer.ok());
  QCOMPARE((*answer)["at_stake"].is_null(), true);  // this one's state has no process behind it
  const Deadline deadline = Deadline::after(kLimit);
  while (!service.asked_to_pause && !deadline.expired()) QThread::msleep(20);
  QVERIFY(service.asked_to_pause);
  ::kill(f.trainer(), SIGTERM);  // it ends, as asked
  QVERIFY(f.wait_for("paused"));
}

void AgentTest::a_pause_for_a_while_ends_by_itself() {
  AgentFixture f;
  QVERIFY(f.start().ok());
  QVERIFY(f.wait_until(has_trainer));

  const auto answer = f.call("pause", {{"for_seconds", 5}});
  QVERIFY((*answer)["paused_until_unix_seconds"].is_number());
  QVERIFY(f.wait_for("paused"));

  QVERIFY(f.wait_until(has_trainer));
  QCOMPARE(load_wish(f.home().wish_file())->wish, Wish::kRun);
}

void AgentTest::a_trainer_that_is_killed_is_started_again() {
  AgentFixture f;
  QVERIFY(f.start().ok());
  QVERIFY(f.wait_until(has_trainer));
  const pid_t first = f.trainer();

  ::kill(first, SIGKILL);

  QVERIFY(f.wait_until([&](const nlohmann::json& now) {
    return has_trainer(now) && now["agent"]["trainer_pid"] != first && now["agent"]["restarts"] == 1;
  }));
  QCOMPARE(f.state()["agent"]["last_exit"]["status"].get<int>(), 137);
}

void AgentTest::a_refused_trainer_is_not_and_its_words_are_shown() {
  AgentFixture f(true, "echo 'atoll-trainer: the hub does not know this island'; exit 5");
  QVERIFY(f.start().ok());

  QVERIFY(f.wait_for("error"));
  QThread::msleep(500);

  QCOMPARE(f.starts(), 1);
  const nlohmann::json state = f.state();
  QVERIFY(state["error"].get<std::string>().starts_with("the hub does not know this island"));
  QCOMPARE(state["agent"]["last_exit"]["cause"].get<std::string>(), std::string("refused"));
}

void AgentTest::a_trainer_is_told_how_long_its_log_may_grow() {
  AgentFixture f(true, "echo \"$ATOLL_TRAINER_LOG $ATOLL_TRAINER_LOG_BYTES\" > \"$(dirname $0)/log\"; exec sleep 600");

  QVERIFY(f.start().ok());

  const std::string told = f.home().trainer_log().string() + " " + std::to_string(25'000'000) + "\n";
  QTRY_COMPARE_WITH_TIMEOUT(read_file(f.path("log")).ok() ? *read_file(f.path("log")) : "", told, 20'000);
}

void AgentTest::the_owners_log_level_reaches_the_trainer() {
  AgentFixture f(true, "echo \"$ATOLL_TRAINER_LOG_LEVEL\" > \"$(dirname $0)/level\"; exec sleep 600");
  QVERIFY(make_directories(f.home().settings_file().parent_path(), FileMode::kPrivate).ok());
  QVERIFY(write_setting(f.home().settings_file(), "log.level", "debug").ok());

  QVERIFY(f.start().ok());

  QTRY_COMPARE_WITH_TIMEOUT(read_file(f.path("level")).ok() ? *read_file(f.path("level")) : "", "debug\n", 20'000);
}

// Its words are in a file that began after it did; what stood in the log before is another's.
void AgentTest::a_trainer_that_changed_its_log_is_judged_by_its_last_words() {
  AgentFixture f(true,
                 "mv \"$ATOLL_TRAINER_LOG\" \"$ATOLL_TRAINER_LOG.1\"; exec >> \"$ATOLL_TRAINER_LOG\" 2>&1\n"
                 "echo 'atoll-trainer: the hub does not know this island'; exit 5");
  std::filesystem::create_directories(f.home().state);
  std::ofstream(f.home().trainer_log()) << std::string(4000, '-') << "\natoll-trainer: of long ago\n";
  QVERIFY(f.start().ok());

  QVERIFY(f.wait_for("error"));

  const nlohmann::json state = f.state();
  QVERIFY(state["error"].get<std::string>().starts_with("the hub does not know this island"));
}

void AgentTest::a_living_trainer_is_taken_over() {
  AgentFixture f;
  QVERIFY(f.start().ok());
  QVERIFY(f.wait_until(has_trainer));
  // As it is after `kill -9` of an agent: its record is there, and a process that is not the next agent's child.
  const auto record = *read_file(f.home().trainer_file());
  const pid_t first = f.trainer();
  AgentFixture next;
  std::filesystem::create_directories(next.home().state);
  std::ofstream(next.home().trainer_file()) << record;

  QVERIFY(next.start().ok());

  QCOMPARE(next.trainer(), first);
  QVERIFY(next.state()["agent"]["taken_over"].get<bool>());
  QCOMPARE(next.starts(), 0);
}

void AgentTest::a_second_agent_is_refused() {
  AgentFixture f;
  QVERIFY(f.start().ok());

  AgentOptions options;
  options.home = f.home();
  const auto second = Agent::start(std::move(options));

  QVERIFY(!second.ok());
  QCOMPARE(second.error().code, ErrorCode::kPermissionDenied);
}

void AgentTest::leaving_sets_the_membership_aside() {
  AgentFixture f;
  QVERIFY(f.start().ok());
  QVERIFY(f.wait_until(has_trainer));

  QVERIFY(f.call("leave").ok());

  QVERIFY(f.wait_until([](const nlohmann::json& now) { return now["state"] == "unjoined" && !has_trainer(now); }));
  QVERIFY(!std::filesystem::exists(f.home().island.join_file()));
  QVERIFY(load_join_file(f.home().island.left_file()).ok());
}

void AgentTest::stop_now_does_not_wait_for_the_trainer() {
  AgentFixture f(true, "trap '' TERM; while :; do sleep 1; done");
  QVERIFY(f.start().ok());
  QVERIFY(f.wait_until(has_trainer));
  QVERIFY(f.wait_until([&](const nlohmann::json&) { return f.starts() == 1; }));

  QVERIFY(f.call("stop", {{"now", true}}).ok());

  QVERIFY(f.wait_for("stopped"));
  QCOMPARE(f.state()["agent"]["last_exit"]["status"].get<int>(), 137);
}

void AgentTest::wrong_calls_are_refused_data() {
  QTest::addColumn<QByteArray>("method");
  QTest::addColumn<QByteArray>("params");
  QTest::addColumn<int>("code");
  const int wrong = static_cast<int>(ErrorCode::kInvalidArgument);
  QTest::newRow("unknown") << QByteArray("fly") << QByteArray("{}") << static_cast<int>(ErrorCode::kNotFound);
  QTest::newRow("pause for nothing") << QByteArray("pause") << QByteArray(R"({"for_seconds": 0})") << wrong;
  QTest::newRow("pause for a word") << QByteArray("pause") << QByteArray(R"({"for_seconds": "2h"})") << wrong;
  QTest::newRow("pause for ever") << QByteArray("pause") << QByteArray(R"({"for_seconds": 1e12})") << wrong;
  QTest::newRow("stop how") << QByteArray("stop") << QByteArray(R"({"now": 1})") << wrong;
  QTest::newRow("join with a number") << QByteArray("join") << QByteArray(R"({"invite": 7})") << wrong;
  QTest::newRow("join with too many threads") << QByteArray("join") << QByteArray(R"({"threads": 4096})") << wrong;
  QTest::newRow("join with half a sequence at once")
      << QByteArray("join") << QByteArray(R"({"micro_batch": 0.5})") << wrong;
  QTest::newRow("join with half a range of GPUs") << QByteArray("join") << QByteArray(R"({"gpus": "0-"})") << wrong;
  QTest::newRow("a look at a number") << QByteArray("invite.look") << QByteArray(R"({"invite": 7})") << wrong;
  QTest::newRow("a look at nothing") << QByteArray("invite.look") << QByteArray("{}") << wrong;
  QTest::newRow("a look at an empty invite")
      << QByteArray("invite.look") << QByteArray(R"({"invite": ""})") << static_cast<int>(ErrorCode::kInviteMalformed);
  QTest::newRow("logs of a negative time")
      << QByteArray("logs.read") << QByteArray(R"({"since_seconds": -1})") << wrong;
  QTest::newRow("too many lines") << QByteArray("logs.read") << QByteArray(R"({"limit": 100000})") << wrong;
  QTest::newRow("join with no invite at all")
      << QByteArray("join") << QByteArray(R"({"invite": "hello"})") << static_cast<int>(ErrorCode::kInviteMalformed);
}

void AgentTest::wrong_calls_are_refused() {
  QFETCH(const QByteArray, method);
  QFETCH(const QByteArray, params);
  QFETCH(const int, code);
  AgentFixture f;
  QVERIFY(f.start().ok());

  const auto answer = f.call(method.constData(), nlohmann::json::parse(params.toStdString()));

  QVERIFY(!answer.ok());
  QCOMPARE(static_cast<int>(answer.error().code), code);
  QCOMPARE(f.state()["agent"]["wish"].get<std::string>(), std::string("run"));
}

void AgentTest::clients_that_flood_do_not_stop_it() {
  AgentFixture f;
  QVERIFY(f.start().ok());
  QVERIFY(f.wait_until(has_trainer));
  const std::string garbage(100'000, '\x7b');
  {
    std::vector<UniqueFd> clients;
    for (int i = 0; i < 1000; ++i) {
      auto client = connect_unix(f.home().socket, Deadline::after(kLimit));
      if (!client.ok()) continue;  // it may refuse
      (void)::send(client->get(), garbage.data(), garbage.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      clients.push_back(std::move(*client));
    }
    QVERIFY(clients.size() > 64);
  }

  QVERIFY(f.wait_until(has_trainer));
  QCOMPARE(f.starts(), 1);
}

void AgentTest::the_end_of_the_agent_is_the_trainers() {
  AgentFixture f;
  QVERIFY(f.start().ok());
  QVERIFY(f.wait_until(has_trainer));
  const pid_t trainer = f.trainer();

  f.end();

  QVERIFY(::kill(trainer, 0) != 0);
  QVERIFY(!std::filesystem::exists(f.home().trainer_file()));
}

QTEST_GUILESS_MAIN(AgentTest)
#include "agent_test.moc"
