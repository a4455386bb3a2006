// `atoll finish --wait`, against an agent that a test plays: one that stays, one that ends with its trainer, as the
// agent of a foreground `atoll join` does, and one that crashes.
#include <QtTest>
#include <atomic>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "app/agent/contribution_book.h"
#include "app/agent/wish.h"
#include "net/base/unix_time.h"
#include "net/control/control_server.h"
#include "net/control/events.h"
#include "net/control/methods.h"
#include "tests/app/cli_run.h"

using namespace atl;
using atl::test::CliOutcome;
using atl::test::CliRun;
using atl::test::contains;

namespace {

constexpr const char* kRun = "0123456789abcdef";

class FinishingAgent final : public ControlService {
 public:
  Result<nlohmann::json> call(std::string_view method, const nlohmann::json&) override {
    if (method == "finish") return encode_message(method::WishTaken{.wish = Wish::kFinish, .kept = true});
    if (method != "state.get") return Error{ErrorCode::kNotFound, "no such method"};
    const nlohmann::json answer = to_json(over ? state_at_end() : state_of(Wish::kFinish, 4711));
    ++asked;
    return answer;
  }

  static NodeState state_of(Wish wish, std::int64_t trainer) {
    NodeState state{.has_agent = true};
    state.island.state = wish == Wish::kStop ? IslandPhase::kStopped : IslandPhase::kFinishing;
    state.island.run_id = kRun;
    state.agent.wish = wish;
    state.agent.trainer_pid = trainer;
    state.agent.contributed = ContributionView{.run = {.tokens = 20'480}, .life = {.tokens = 40'960}};
    return state;
  }
  NodeState state_at_end() const {
    NodeState state = state_of(wish_at_end, 0);
    state.agent.last_exit = TrainerExitView{cause, "its last words", unix_time_now() + ended_later, 1};
    return state;
  }

  Wish wish_at_end = Wish::kStop;
  ExitCause cause = ExitCause::kFinished;
  double ended_later = 1;  // than now
  std::atomic<bool> over = false;
  std::atomic<int> asked = 0;
};

// What the command says when, once it waits, `then` happens.
CliOutcome finish(CliRun& atoll, FinishingAgent& agent,
                  const std::function<void(std::unique_ptr<ControlServer>& server)>& then) {
  std::filesystem::create_directories(atoll.path("island") / "state");
  JoinFile join;
  join.run_id = kRun;
  join.run_name = "gcide";
  if (!save_join_file(atoll.path("island") / "join.json", join).ok()) qFatal("join.json");
  auto server = ControlServer::start(atoll.path("island") / "agent.sock", "atoll-agent", agent);
  if (!server.ok()) qFatal("%s", server.error().message.c_str());
  CliOutcome outcome;
  std::thread command([&] { outcome = atoll({"finish", "--wait"}); });
  while (agent.asked == 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  then(*server);
  command.join();
  return outcome;
}

void write_down(const CliRun& atoll, Wish wish) {
  if (!save_wish(atoll.path("island") / "state" / "wish.json", {.wish = wish}).ok()) qFatal("wish.json");
}

}  // namespace

class FinishCommandTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void an_agent_that_stays_is_asked_until_the_trainer_is_gone() {
    CliRun atoll;
    FinishingAgent agent;

    const CliOutcome outcome = finish(atoll, agent, [&](auto&) { agent.over = true; });

    QCOMPARE(outcome.exit_code, 0);
    QVERIFY2(contains(outcome.out, "finished\ncontributed to this run: 20,480 tokens"), outcome.out.c_str());
  }

  void an_agent_that_ends_with_its_trainer_says_so_before() {
    CliRun atoll;
    FinishingAgent agent;

    const CliOutcome outcome = finish(atoll, agent, [&](auto& server) {
      const ControlEvent last = event::StateChanged{agent.state_at_end()};
      server->publish(name_of(last), data_of(last));
      server.reset();
    });

    QVERIFY2(outcome.exit_code == 0, outcome.err.c_str());
    QVERIFY2(contains(outcome.out, "finished\ncontributed to this run: 20,480 tokens"), outcome.out.c_str());
  }

  void an_agent_that_is_gone_is_judged_by_what_it_wrote_down() {
    CliRun atoll;
    FinishingAgent agent;
    std::filesystem::create_directories(atoll.path("island") / "state");
    ContributionFile given{.life = {.tokens = 9'000}, .runs = {{.run_id = kRun, .given = {.tokens = 7'000}}}};
    std::ofstream(atoll.path("island") / "state" / "contributions.json") << given.to_json();

    const CliOutcome outcome = finish(atoll, agent, [&](auto& server) {
      write_down(atoll, Wish::kStop);
      server.reset();
    });

    QVERIFY2(outcome.exit_code == 0, outcome.err.c_str());
    QVERIFY2(contains(outcome.out, "finished\ncontributed to this run: 7,000 tokens"), outcome.out.c_str());
  }

  void an_agent_that_crashed_has_finished_nothing() {
    CliRun atoll;
    FinishingAgent agent;

    const CliOutcome outcome = finish(atoll, agent, [&](auto& server) {
      write_down(atoll, Wish::kFinish);
      server.reset();
    });

    QCOMPARE(outcome.exit_code, static_cast<int>(kExitTrainerFailed));
    QVERIFY2(contains(outcome.err, "atoll logs"), outcome.err.c_str());
    QVERIFY2(!contains(outcome.out, "finished\n"), outcome.out.c_str());
  }

  void a_trainer_that_failed_has_not_completed_its_round() {
    CliRun atoll;
    FinishingAgent agent;
    agent.cause = ExitCause::kCrashed;

    const CliOutcome outcome = finish(atoll, agent, [&](auto&) { agent.over = true; });

    QCOMPARE(outcome.exit_code, static_cast<int>(kExitTrainerFailed));
    QVERIFY2(contains(outcome.err, "was not completed here: its last words"), outcome.err.c_str());
  }

  void a_trainer_that_was_stopped_meanwhile_has_not_either() {
    CliRun atoll;
    FinishingAgent agent;
    agent.cause = ExitCause::kStopped;

    const CliOutcome outcome = finish(atoll, agent, [&](auto&) { agent.over = true; });

    QVERIFY(outcome.exit_code != 0);
    QVERIFY2(contains(outcome.err, "was not completed here"), outcome.err.c_str());
  }

  void what_a_trainer_ended_of_before_is_no_failure_of_this() {
    CliRun atoll;
    FinishingAgent agent;
    agent.cause = ExitCause::kCrashed;
    agent.ended_later = -3'600;  // nothing ran: there was nothing to finish

    const CliOutcome outcome = finish(atoll, agent, [&](auto&) { agent.over = true; });

    QVERIFY2(outcome.exit_code == 0, outcome.err.c_str());
  }

  void a_resume_ends_the_wait() {
    CliRun atoll;
    FinishingAgent agent;
    agent.wish_at_end = Wish::kRun;

    const CliOutcome outcome = finish(atoll, agent, [&](auto&) { agent.over = true; });

    QVERIFY(outcome.exit_code != 0);
    QVERIFY2(contains(outcome.err, "somebody resumed"), outcome.err.c_str());
  }
};

QTEST_GUILESS_MAIN(FinishCommandTest)
#include "finish_command_test.moc"
