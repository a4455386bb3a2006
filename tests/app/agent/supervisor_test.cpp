// The supervisor without processes: a trainer is what the test says of it.
#include "app/agent/supervisor.h"

#include <QtTest>
#include <algorithm>

using namespace atl;
using namespace std::chrono_literals;

namespace {

TrainerExit exit_with(ExitCause cause) { return {cause, "why", 1, 0}; }

// Time passes in steps of a second; what the supervisor asked for is kept.
class Script {
 public:
  explicit Script(Wish wish = Wish::kRun, bool joined = true, SupervisorOptions options = {})
      : supervisor(options, wish, joined) {}

  void say(const SupervisorEvent& event) {
    for (SupervisorAction& action : supervisor.next(event, now)) actions.push_back(std::move(action));
  }
  // A living trainer answers each second; one in mid-step makes no progress.
  void pass(std::chrono::seconds time, bool answers = false, bool trains = false, bool steps = false) {
    for (auto left = time; left > 0s; left -= 1s) {
      now += 1s;
      if (answers) say(TrainerAnswered{trains, steps ? ++progress : progress, false});
      say(SupervisorTick{});
    }
  }
  // Until a trainer is asked for, as long as that takes; at most an hour.
  void pass_until_start() {
    const int before = count<StartTrainer>();
    for (int i = 0; i < 3600 && count<StartTrainer>() == before; ++i) pass(1s);
  }
  void train(std::chrono::seconds time) { pass(time, true, true, true); }

  template <class Action>
  int count() const {
    return static_cast<int>(std::ranges::count_if(
        actions, [](const SupervisorAction& action) { return std::holds_alternative<Action>(action); }));
  }
  // A trainer that was just asked for.
  void started() {
    QVERIFY(!actions.empty() && std::holds_alternative<StartTrainer>(actions.back()));
    say(TrainerStarted{});
  }
  std::string hung() const {
    const auto* kill = actions.empty() ? nullptr : std::get_if<KillTrainer>(&actions.back());
    return kill == nullptr ? std::string() : kill->hung;
  }

  Clock::time_point now{1h};
  std::uint64_t progress = 0;
  Supervisor supervisor;
  std::vector<SupervisorAction> actions;
};

}  // namespace

class SupervisorTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void nothing_is_started_before_a_run_is_joined();
  void only_the_wish_to_run_starts_a_trainer_data();
  void only_the_wish_to_run_starts_a_trainer();
  void a_trainer_that_dies_is_started_again_later_each_time();
  void training_for_a_while_forgets_earlier_failures();
  void one_contribution_forgets_them_too();
  void too_many_failures_are_given_up_until_the_next_wish();
  void a_hub_that_cannot_be_reached_is_never_given_up();
  void tries_to_reach_the_hub_count_against_nothing_else();
  void a_refusal_is_given_up_at_once();
  void a_silent_trainer_is_killed_and_replaced();
  void a_slow_start_is_no_hang();
  void a_stopped_process_is_killed_and_one_that_goes_on_is_not();
  void no_step_for_long_is_a_hang_only_while_it_trains();
  void slow_steps_are_given_their_time();
  void a_pause_asks_the_trainer_and_a_resume_starts_it_again();
  void other_gpus_end_the_trainer_with_its_work_kept_and_start_it_anew();
  void a_trainer_that_does_not_end_is_killed();
  void a_finish_is_a_stop_once_it_is_done();
  void a_finish_that_is_taken_back_trains_on();
  void a_stop_overtakes_a_finish();
  void stop_now_kills();
  void a_finished_run_is_not_started_again();
  void an_end_of_the_agent_waits_for_the_trainer();
  void a_second_end_does_not_wait();
  void a_trainer_taken_over_is_not_started_anew();
  void leaving_ends_the_trainer();
};

void SupervisorTest::nothing_is_started_before_a_run_is_joined() {
  Script script(Wish::kRun, /*joined=*/false);
  script.pass(10s);
  QCOMPARE(script.count<StartTrainer>(), 0);

  script.say(Joined{});

  QCOMPARE(script.count<StartTrainer>(), 1);
}

void SupervisorTest::only_the_wish_to_run_starts_a_trainer_data() {
  QTest::addColumn<int>("wish");
  QTest::addColumn<int>("starts");
  QTest::newRow("run") << static_cast<int>(Wish::kRun) << 1;
  QTest::newRow("pause") << static_cast<int>(Wish::kPause) << 0;
  QTest::newRow("finish") << static_cast<int>(Wish::kFinish) << 0;
  QTest::newRow("stop") << static_cast<int>(Wish::kStop) << 0;
}

void SupervisorTest::only_the_wish_to_run_starts_a_trainer() {
  QFETCH(const int, wish);
  QFETCH(const int, starts);
  Script script(static_cast<Wish>(wish));

  script.pass(60s);

  QCOMPARE(script.count<StartTrainer>(), starts);
}

void SupervisorTest::a_trainer_that_dies_is_started_again_later_each_time() {
  Script script;
  script.pass(1s);
  for (const auto delay : {1s, 2s, 4s, 8s}) {
    script.started();
    script.say(TrainerEnded{exit_with(ExitCause::kCrashed)});
    const int before = script.count<StartTrainer>();

    script.pass(delay - 1s);
    QCOMPARE(script.count<StartTrainer>(), before);
    script.pass(1s);
    QCOMPARE(script.count<StartTrainer>(), before + 1);
  }
  QCOMPARE(script.supervisor.restarts(), std::uint64_t{4});
}

void SupervisorTest::training_for_a_while_forgets_earlier_failures() {
  Script script;
  script.pass(1s);
  for (int i = 0; i < 30; ++i) {
    script.started();
    script.train(61s);
    script.say(TrainerEnded{exit_with(ExitCause::kKilled)});
    script.pass(1s);
  }

  QCOMPARE(script.count<StartTrainer>(), 31);
}

void SupervisorTest::one_contribution_forgets_them_too() {
  Script script;
  script.pass(1s);
  for (int i = 0; i < 30; ++i) {
    script.started();
    script.say(TrainerAnswered{.training = true, .progress = 1, .contributed = true});
    script.say(TrainerEnded{exit_with(ExitCause::kKilled)});
    script.pass(1s);
  }

  QCOMPARE(script.count<StartTrainer>(), 31);
}

void SupervisorTest::too_many_failures_are_given_up_until_the_next_wish() {
  Script script;
  script.pass(1s);
  for (int i = 0; i < 10; ++i) {
    script.started();
    script.say(TrainerEnded{exit_with(ExitCause::kGpuMemory)});
    script.pass_until_start();
  }
  QCOMPARE(script.supervisor.phase(), Supervisor::Phase::kFailed);
  QCOMPARE(script.count<StartTrainer>(), 10);

  script.say(Wished{Wish::kRun});

  QCOMPARE(script.count<StartTrainer>(), 11);
}

void SupervisorTest::a_hub_that_cannot_be_reached_is_never_given_up() {
  Script script;
  script.pass(1s);
  for (int i = 0; i < 50; ++i) {
    script.started();
    script.say(TrainerEnded{exit_with(ExitCause::kHubUnreachable)});
    script.pass_until_start();
  }

  QCOMPARE(script.count<StartTrainer>(), 51);
}

void SupervisorTest::tries_to_reach_the_hub_count_against_nothing_else() {
  Script script;
  script.pass(1s);
  for (int i = 0; i < 45; ++i) {  // nine of them of another cause
    script.started();
    script.say(TrainerEnded{exit_with(i % 5 == 4 ? ExitCause::kCrashed : ExitCause::kHubUnreachable)});
    script.pass_until_start();
  }
  QCOMPARE(script.count<StartTrainer>(), 46);

  script.started();
  script.say(TrainerEnded{exit_with(ExitCause::kCrashed)});

  QCOMPARE(script.supervisor.phase(), Supervisor::Phase::kFailed);
}

void SupervisorTest::a_refusal_is_given_up_at_once() {
  Script script;
  script.pass(1s);
  script.started();
  script.say(TrainerEnded{exit_with(ExitCause::kRefused)});
  script.pass(3600s);

  QCOMPARE(script.count<StartTrainer>(), 1);
  QCOMPARE(script.supervisor.phase(), Supervisor::Phase::kFailed);
}

void SupervisorTest::a_silent_trainer_is_killed_and_replaced() {
  Script script;
  script.pass(1s);
  script.started();
  script.train(10s);

  script.pass(14s);
  QCOMPARE(script.count<KillTrainer>(), 0);
  script.pass(1s);
  QCOMPARE(script.count<KillTrainer>(), 1);
  QVERIFY(!script.hung().empty());
  script.say(TrainerEnded{exit_with(ExitCause::kHung)});
  script.pass(2s);

  QCOMPARE(script.count<StartTrainer>(), 2);
}

void SupervisorTest::a_slow_start_is_no_hang() {
  Script script;
  script.pass(1s);
  script.started();
  script.pass(119s);
  QCOMPARE(script.count<KillTrainer>(), 0);

  script.pass(1s);

  QCOMPARE(script.count<KillTrainer>(), 1);
}

void SupervisorTest::a_stopped_process_is_killed_and_one_that_goes_on_is_not() {
  Script script;
  script.pass(1s);
  script.started();
  script.train(10s);
  script.say(TrainerStopped{});
  script.pass(4s);
  script.train(10s);  // somebody let it go on
  QCOMPARE(script.count<KillTrainer>(), 0);

  script.say(TrainerStopped{});
  script.pass(5s);

  QCOMPARE(script.count<KillTrainer>(), 1);
}

void SupervisorTest::no_step_for_long_is_a_hang_only_while_it_trains() {
  Script waiting, training;
  for (Script* script : {&waiting, &training}) {
    script->pass(1s);
    script->started();
    script->train(10s);
  }

  waiting.pass(3600s, /*answers=*/true, /*trains=*/false);
  training.pass(301s, /*answers=*/true, /*trains=*/true);

  QCOMPARE(waiting.count<KillTrainer>(), 0);
  QCOMPARE(training.count<KillTrainer>(), 1);
}

void SupervisorTest::slow_steps_are_given_their_time() {
  Script script;
  script.pass(1s);
  script.started();
  for (int i = 0; i < 5; ++i) {
    script.pass(60s, true, true);  // a minute a step
    ++script.progress;
  }

  script.pass(1000s, true, true);
  QCOMPARE(script.count<KillTrainer>(), 0);
  script.pass(300s, true, true);
  QCOMPARE(script.count<KillTrainer>(), 1);
}

void SupervisorTest::a_pause_asks_the_trainer_and_a_resume_starts_it_again() {
  Script script;
  script.pass(1s);
  script.started();
  script.train(10s);

  script.say(Wished{Wish::kPause});
  QCOMPARE(script.count<AskTrainer>(), 1);
  script.pass(5s, true);
  script.say(TrainerEnded{exit_with(ExitCause::kPaused)});
  script.pass(3600s);
  QCOMPARE(script.count<AskTrainer>(), 1);
  QCOMPARE(script.count<StartTrainer>(), 1);
  QCOMPARE(script.supervisor.phase(), Supervisor::Phase::kIdle);

  script.say(Wished{Wish::kRun});

  QCOMPARE(script.count<StartTrainer>(), 2);
}

void SupervisorTest::other_gpus_end_the_trainer_with_its_work_kept_and_start_it_anew() {
  Script script;
  script.pass(1s);
  script.started();
  script.train(10s);

  script.say(GpusChanged{});
  script.say(GpusChanged{});  // told until it has others

  QCOMPARE(script.count<AskTrainer>(), 1);
  const auto* asked = std::get_if<AskTrainer>(&script.actions.back());
  QVERIFY(asked != nullptr && asked->to == Wish::kPause);
  script.say(TrainerEnded{exit_with(ExitCause::kPaused)});
  QCOMPARE(script.count<StartTrainer>(), 2);
  QCOMPARE(script.supervisor.restarts(), std::uint64_t{0});  // nothing has failed
  script.started();
  script.train(10s);
  QCOMPARE(script.count<AskTrainer>(), 1);

  // A pause that is wished meanwhile is followed; without a trainer there is none to be started anew.
  script.say(GpusChanged{});
  script.say(Wished{Wish::kPause});
  script.say(TrainerEnded{exit_with(ExitCause::kPaused)});
  script.say(GpusChanged{});
  script.pass(10s);
  QCOMPARE(script.count<StartTrainer>(), 2);
}

void SupervisorTest::a_trainer_that_does_not_end_is_killed() {
  Script script;
  script.pass(1s);
  script.started();
  script.train(10s);
  script.say(Wished{Wish::kPause});

  script.pass(89s, true);
  QCOMPARE(script.count<KillTrainer>(), 0);
  script.pass(1s, true);

  QCOMPARE(script.count<KillTrainer>(), 1);
}

void SupervisorTest::a_finish_is_a_stop_once_it_is_done() {
  Script script;
  script.pass(1s);
  script.started();
  script.train(10s);
  script.say(Wished{Wish::kFinish});
  script.train(3600s);  // a long round
  QCOMPARE(script.count<KillTrainer>(), 0);

  script.say(TrainerEnded{exit_with(ExitCause::kFinished)});
  script.pass(60s);

  QCOMPARE(script.count<SettleWish>(), 1);
  QCOMPARE(script.supervisor.wish(), Wish::kStop);
  QCOMPARE(script.count<StartTrainer>(), 1);
}

void SupervisorTest::a_finish_that_is_taken_back_trains_on() {
  Script script;
  script.pass(1s);
  script.started();
  script.train(10s);
  script.say(Wished{Wish::kFinish});
  script.say(Wished{Wish::kRun});
  script.say(TrainerEnded{exit_with(ExitCause::kFinished)});
  script.pass(2s);

  QCOMPARE(script.count<SettleWish>(), 0);
  QCOMPARE(script.count<StartTrainer>(), 2);
}

void SupervisorTest::a_stop_overtakes_a_finish() {
  Script script;
  script.pass(1s);
  script.started();
  script.train(10s);
  script.say(Wished{Wish::kFinish});
  script.say(Wished{Wish::kStop});

  QCOMPARE(script.count<AskTrainer>(), 2);
  QCOMPARE(std::get<AskTrainer>(script.actions.back()).to, Wish::kStop);
}

void SupervisorTest::stop_now_kills() {
  Script script;
  script.pass(1s);
  script.started();
  script.say(Wished{Wish::kStop, /*at_once=*/true});

  QCOMPARE(script.count<KillTrainer>(), 1);
  QVERIFY(script.hung().empty());
  script.say(TrainerEnded{exit_with(ExitCause::kKilled)});
  script.pass(60s);
  QCOMPARE(script.count<StartTrainer>(), 1);
}

void SupervisorTest::a_finished_run_is_not_started_again() {
  Script script;
  script.pass(1s);
  script.started();
  script.train(10s);
  script.say(TrainerEnded{exit_with(ExitCause::kRunFinished)});
  script.pass(60s);

  QCOMPARE(script.count<StartTrainer>(), 1);
  QCOMPARE(script.count<SettleWish>(), 1);
}

void SupervisorTest::an_end_of_the_agent_waits_for_the_trainer() {
  Script script;
  script.pass(1s);
  script.started();
  script.train(10s);
  script.say(EndAsked{});
  QCOMPARE(std::get<AskTrainer>(script.actions.back()).to, Wish::kPause);  // its place is kept
  QVERIFY(!script.supervisor.over());

  script.say(TrainerEnded{exit_with(ExitCause::kPaused)});

  QVERIFY(script.supervisor.over());
  QCOMPARE(script.supervisor.wish(), Wish::kRun);  // for the next agent
  QCOMPARE(script.count<SettleWish>(), 0);
}

void SupervisorTest::a_second_end_does_not_wait() {
  Script script;
  script.pass(1s);
  script.started();
  script.say(EndAsked{});
  script.say(EndNow{});

  QCOMPARE(script.count<KillTrainer>(), 1);
}

void SupervisorTest::a_trainer_taken_over_is_not_started_anew() {
  Script script;

  script.say(TrainerStarted{.taken_over = true});
  script.train(60s);

  QCOMPARE(script.count<StartTrainer>(), 0);
  QCOMPARE(script.supervisor.phase(), Supervisor::Phase::kRunning);
}

void SupervisorTest::leaving_ends_the_trainer() {
  Script script;
  script.pass(1s);
  script.started();
  script.say(Joined{false});

  QCOMPARE(script.count<AskTrainer>(), 1);
  script.say(TrainerEnded{exit_with(ExitCause::kStopped)});
  script.pass(60s);
  QCOMPARE(script.count<StartTrainer>(), 1);
}

QTEST_GUILESS_MAIN(SupervisorTest)
#include "supervisor_test.moc"
