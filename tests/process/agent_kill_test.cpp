// `kill -9` of agent, trainer, or both, at random moments, under a stand-in for the service's supervisor: the island is
// back in training each time, a living trainer is taken over, none is left behind, the wish is kept.
#include <QtCore/QProcess>
#include <QtCore/QThread>
#include <QtTest/QTest>
#include <csignal>
#include <nlohmann/json.hpp>
#include <random>

#include "net/control/control_client.h"
#include "net/disk/kept_states.h"
#include "tests/fakes/processes.h"
#include "tests/process/agent_service.h"
#include "tests/process/local_run.h"

using namespace atl;
using namespace atl::test;

namespace {

constexpr int kKills = 50;
constexpr std::chrono::seconds kLimit = kAgentLimit;

std::string hub_word(const LocalRun& run, const IslandHome& home) {
  const HubState state = run.state();
  for (const HubState::Island& island : state.islands) {
    if (island.id == home.directory.filename().string()) return std::string(word_of(island.state));
  }
  return "";
}

// Of what the agent has told since it was started.
bool told_of_a_lost_hub(const AgentService& service) {
  auto client = ControlClient::connect(service.home().socket, Deadline::after(kLimit));
  if (!client.ok()) qFatal("%s", client.error().message.c_str());
  const auto kept = (*client)->call("events.subscribe", {{"since", 0}}, Deadline::after(kLimit));
  if (!kept.ok()) qFatal("%s", kept.error().message.c_str());
  for (;;) {
    const auto event = (*client)->next_event(Deadline::after(kLimit));
    if (!event.ok()) qFatal("%s", event.error().message.c_str());
    if (event->value("event", "") == "hub.link" && !(*event)["data"].value("up", true)) return true;
    if (event->value("seq", std::uint64_t{0}) >= kept->value("last", std::uint64_t{0})) return false;
  }
}

}  // namespace

class AgentKillTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase();
  void cleanupTestCase();
  void the_island_is_back_in_training_after_every_kill();
  void a_stopped_trainer_is_replaced();
  void a_pause_survives_the_agent_and_resumes_where_it_was();
  void a_pause_within_the_round_loses_no_step();
  void a_finish_leaves_after_the_round_and_is_a_stop();
  void a_second_sigterm_ends_at_once();
  void a_trainer_without_an_agent_ends_by_itself();

 private:
  std::unique_ptr<LocalRun> run_;
  std::unique_ptr<QProcess> peer_;
  IslandHome home_;
};

void AgentKillTest::initTestCase() {
  run_ = std::make_unique<LocalRun>(small_run(2));
  peer_ = run_->start_island("peer");
  home_ = run_->make_home("under test");
}

void AgentKillTest::cleanupTestCase() {
  if (!peer_) return;
  peer_->terminate();
  peer_->waitForFinished(120'000);
}

void AgentKillTest::the_island_is_back_in_training_after_every_kill() {
  AgentService service(home_);
  QVERIFY(service.wait_for_training());
  std::mt19937 random(5);
  for (int kill = 0; kill < kKills; ++kill) {
    // Given an island that trains, at a moment anywhere in a round,
    QThread::msleep(std::uniform_int_distribution<unsigned long>(0, 1500)(random));
    const pid_t trainer = service.trainer();
    QVERIFY(trainer > 1);
    const nlohmann::json before = service.state();

    // when agent, trainer or both are killed,
    const int whom = static_cast<int>(random() % 3);
    if (whom != 0) ::kill(trainer, SIGKILL);
    if (whom != 1) service.kill();

    // then it is back in training; a trainer that lives is the same one, and has lost no step.
    QVERIFY2(service.wait_for_training(whom == 0 ? -1 : trainer),
             qPrintable(QString("kill %1 of %2").arg(kill).arg(whom)));
    const nlohmann::json after = service.state();
    if (whom == 0) {
      QCOMPARE(after["agent"]["trainer_pid"].get<pid_t>(), trainer);
      QVERIFY(after["agent"]["taken_over"].get<bool>());
      QVERIFY(after["tokens"].get<std::uint64_t>() >= before["tokens"].get<std::uint64_t>());
    }
    QCOMPARE(after["agent"]["wish"].get<std::string>(), std::string("run"));
    QVERIFY(wait_for([&] { return processes_of(home_.directory).size() == 2; }));
  }
  QCOMPARE(service.end(), 0);
  QVERIFY(processes_of(home_.directory).empty());
}

void AgentKillTest::a_stopped_trainer_is_replaced() {
  AgentService service(home_);
  QVERIFY(service.wait_for_training());
  const pid_t stopped = service.trainer();

  ::kill(stopped, SIGSTOP);

  QVERIFY(service.wait_until([&](const nlohmann::json& now) {
    return now["agent"]["trainer_pid"] > 0 && now["agent"]["trainer_pid"] != stopped;
  }));
  QCOMPARE(service.state()["agent"]["last_exit"]["cause"].get<std::string>(), std::string("hung"));
  QVERIFY(::kill(stopped, 0) != 0);
  QVERIFY(service.wait_for_training());
}

void AgentKillTest::a_pause_survives_the_agent_and_resumes_where_it_was() {
  AgentService service(home_);
  QVERIFY(service.wait_for_training());

  QVERIFY(service.call("pause").ok());
  const auto paused = [](const nlohmann::json& now) {
    return now["state"] == "paused" && now["agent"]["trainer_pid"] == 0;
  };
  QVERIFY(service.wait_until(paused));
  QVERIFY(wait_for([&] { return processes_of(home_.directory).size() == 1; }));
  QVERIFY(wait_for([&] { return hub_word(*run_, home_) == "paused"; }));
  QVERIFY(!told_of_a_lost_hub(service));  // which has closed the connection, as it was asked to
  const std::uint32_t committed = run_->state().outer_step;
  QVERIFY(run_->wait_until([&](const HubState& s) { return s.outer_step >= committed + 2; }, kLimit));  // without it
  service.kill();
  QVERIFY(service.wait_until(paused));

  QVERIFY(service.call("resume").ok());

  QVERIFY(service.wait_for_training());
}

void AgentKillTest::a_pause_within_the_round_loses_no_step() {
  RunConfig alone = small_run(2);
  alone.min_islands = 1;
  alone.inner_steps = 20'000;  // a round longer than this test
  const LocalRun run(alone);
  const IslandHome home = run.make_home("alone");
  AgentService service(home);
  QVERIFY(service.wait_until([](const nlohmann::json& now) { return now["inner_step"] >= 20 && now["pid"] > 0; }));

  const auto answer = service.call("pause");
  QVERIFY(answer.ok());
  QVERIFY((*answer)["at_stake"]["inner_steps"] >= 20);
  QVERIFY(service.wait_until([](const nlohmann::json& now) { return now["state"] == "paused"; }));
  QVERIFY(std::filesystem::exists(home.checkpoint() / "inner.state"));
  QVERIFY(service.call("resume").ok());

  QVERIFY(service.wait_until([](const nlohmann::json& now) { return now["pid"] > 0 && now["tokens"] > 0; }));
  // More steps of this round are behind it than this trainer has taken.
  const nlohmann::json now = service.state();
  const std::uint64_t tokens_a_step = std::uint64_t{alone.sequences_per_step} * alone.sequence_length;
  QCOMPARE(now["round"].get<std::uint32_t>(), 0u);
  QVERIFY(now["inner_step"].get<std::uint64_t>() >= now["tokens"].get<std::uint64_t>() / tokens_a_step + 20);
  QVERIFY(!std::filesystem::exists(home.checkpoint() / "inner.state"));
}

void AgentKillTest::a_finish_leaves_after_the_round_and_is_a_stop() {
  AgentService service(home_);
  QVERIFY(service.wait_for_training());

  QVERIFY(service.call("finish").ok());

  QVERIFY(service.wait_until([](const nlohmann::json& now) { return now["state"] == "stopped"; }));
  const nlohmann::json state = service.state();
  QCOMPARE(state["agent"]["wish"].get<std::string>(), std::string("stop"));
  QCOMPARE(state["agent"]["last_exit"]["cause"].get<std::string>(), std::string("finished"));
  QVERIFY(wait_for([&] { return hub_word(*run_, home_) == "gone"; }));
  service.kill();
  QVERIFY(service.wait_until([](const nlohmann::json& now) { return now["state"] == "stopped"; }));
  QVERIFY(service.call("resume").ok());
  QVERIFY(service.wait_for_training());
}

void AgentKillTest::a_second_sigterm_ends_at_once() {
  AgentService service(home_);
  QVERIFY(service.wait_for_training());
  const pid_t trainer = service.trainer();
  ::kill(trainer, SIGSTOP);  // one that does not end when it is asked
  const auto all = processes_of(home_.directory);
  QCOMPARE(all.size(), std::size_t{2});

  for (int i = 0; i < 2; ++i) {
    for (const pid_t pid : all) {
      if (pid != trainer) ::kill(pid, SIGTERM);
    }
    QThread::msleep(500);
  }

  QVERIFY(wait_for([&] { return processes_of(home_.directory).empty(); }));
}

void AgentKillTest::a_trainer_without_an_agent_ends_by_itself() {
  AgentService service(home_);
  QVERIFY(service.wait_for_training());

  service.stay_dead();

  QCOMPARE(processes_of(home_.directory).size(), std::size_t{1});
  QVERIFY(wait_for([&] { return processes_of(home_.directory).empty(); }));
  QVERIFY(!kept_states(home_.checkpoint()).empty());
}

QTEST_GUILESS_MAIN(AgentKillTest)
#include "agent_kill_test.moc"
