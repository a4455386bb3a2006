// What `atoll join` prints of the events of an agent and its trainer.
#include "app/cli/join_progress.h"

#include <QtTest>
#include <nlohmann/json.hpp>
#include <sstream>

#include "net/control/island_state.h"

using namespace atl;

namespace {

struct Screen {
  std::ostringstream out, err;
  Console console{out, err};
  JoinProgress progress{console};

  void hear(const char* event, const nlohmann::json& data) {
    const auto told = decode_event(event, data);
    if (told.ok()) progress.take(*told);
    progress.show();
  }
  QStringList lines() const { return QString::fromStdString(out.str()).split('\n', Qt::SkipEmptyParts); }
};

nlohmann::json state_with(const std::string& error) {
  IslandState state;
  state.state = IslandPhase::kTraining;
  state.pid = 4711;
  state.round = 7;
  state.loss_nats = 2.914;
  state.tokens_per_second = 318'000;
  state.tokens = 20'480;
  state.islands_live = 3;
  state.error = error;
  return state.to_json();
}

}  // namespace

class JoinProgressTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void a_round_is_a_line();
  void what_a_state_came_to_is_a_line();
  void a_round_that_a_newcomer_only_follows_is_no_loss_of_nothing();
  void what_ended_a_trainer_that_is_started_again_is_said_once_each_time();
  void a_hub_that_does_not_answer_is_said_once_and_so_is_its_return();
  void what_is_amiss_is_said_when_it_is_new();
  void what_pauses_it_is_said_when_it_begins_and_when_it_is_over();
  void a_pause_by_its_owner_is_said_and_so_is_its_end();
  void a_download_is_told_with_its_size_and_its_end();
  void stages_of_a_joining_are_told_in_words();
  void that_a_round_waits_for_others_is_said_when_it_lasts();
  void a_round_that_takes_long_says_how_far_it_is();
};

void JoinProgressTest::a_round_that_takes_long_says_how_far_it_is() {
  Screen screen;
  const auto began = Clock::now();
  screen.hear("hub.link", {{"up", true}});  // something was said
  IslandState state = *IslandState::from_json(state_with(""));
  state.inner_steps = 500;
  const auto look = [&](int second) {
    screen.progress.show(began + std::chrono::seconds(second));
    return screen.lines().size();
  };
  const auto hear_step = [&](std::uint32_t step, int second) {
    state.inner_step = step;
    const auto told = decode_event("step", state.to_json());
    if (told.ok()) screen.progress.take(*told);
    return look(second);
  };

  QCOMPARE(hear_step(1, 5), 1);
  QCOMPARE(hear_step(12, 11), 2);
  QCOMPARE(screen.lines().last(), "round 8  step 12 of 500  loss 2.914  318k tok/s");
  QCOMPARE(hear_step(40, 60), 2);
  QCOMPARE(look(72), 3);  // also of a step that takes long itself
  QVERIFY(screen.lines().last().startsWith("round 8  step 40 of 500"));
  state.state = IslandPhase::kPaused;
  QCOMPARE(hear_step(60, 500), 3);
}

void JoinProgressTest::that_a_round_waits_for_others_is_said_when_it_lasts() {
  Screen screen;
  const auto began = Clock::now();
  const auto hear = [&](const char* phase, int islands, int second) {
    nlohmann::json state = state_with("");
    state["state"] = phase;
    state["islands_live"] = islands;
    state["islands_needed"] = 3;
    const auto told = decode_event("state.changed", state);
    if (told.ok()) screen.progress.take(*told);
    screen.progress.show(began + std::chrono::seconds(second));
  };
  const auto look = [&](int second) { screen.progress.show(began + std::chrono::seconds(second)); };
  hear("waiting", 3, 0);  // between two rounds
  hear("training", 3, 1);
  look(20);
  QCOMPARE(screen.lines(), QStringList());

  hear("waiting", 1, 30);
  look(34);
  QCOMPARE(screen.lines(), QStringList());
  look(36);
  hear("waiting", 1, 60);
  look(90);
  QCOMPARE(screen.lines(), QStringList("waiting for more islands: 1 is here, and a round needs 3"));

  hear("waiting", 2, 100);  // one more, and still too few
  look(110);
  QCOMPARE(screen.lines().last(), "waiting for more islands: 2 are here, and a round needs 3");
  hear("training", 3, 120);
  look(200);
  QCOMPARE(screen.lines().size(), 2);
}

void JoinProgressTest::a_round_is_a_line() {
  Screen screen;

  screen.hear("sync.done", state_with(""));

  QCOMPARE(screen.lines(), QStringList("round 8  loss 2.914  318k tok/s  3 islands"));
}

void JoinProgressTest::what_a_state_came_to_is_a_line() {
  Screen screen;

  screen.hear("state.validated", {{"outer_step", 0}, {"loss_nats", 5.5}});
  screen.hear("state.validated", {{"outer_step", 8}, {"loss_nats", 2.25}});
  const nlohmann::json figures = {{{"metric", "acc"}, {"value", 0.5}}, {{"metric", "acc_norm"}, {"value", 0.25}}};
  screen.hear("state.evaluated", {{"outer_step", 8}, {"task", "capitals"}, {"figures", figures}});

  QCOMPARE(screen.lines(), QStringList({"before round 1: validation loss 5.500", "after round 8: validation loss 2.250",
                                        "after round 8: capitals  acc 0.5, acc_norm 0.25"}));
}

void JoinProgressTest::a_round_that_a_newcomer_only_follows_is_no_loss_of_nothing() {
  Screen screen;
  nlohmann::json state = state_with("");
  state["tokens"] = 0;
  state["loss_nats"] = 0;

  screen.hear("sync.done", state);

  QCOMPARE(screen.lines(), QStringList("round 8  followed, not trained here  3 islands"));
}

void JoinProgressTest::what_ended_a_trainer_that_is_started_again_is_said_once_each_time() {
  Screen screen;
  nlohmann::json state = state_with("");
  state["pid"] = 0;
  state["state"] = "error";
  const auto ends = [&](double time) {
    state["agent"] = {
        {"restart_in_seconds", 2.0},
        {"last_exit",
         {{"cause", "out_of_memory"}, {"text", "can't allocate memory"}, {"unix_seconds", time}, {"status", 1}}}};
    for (int i = 0; i < 3; ++i) screen.hear("state.changed", state);
  };

  ends(100);
  ends(200);
  state["agent"]["last_exit"]["text"] = "";  // told to end
  state["agent"]["last_exit"]["unix_seconds"] = 250;
  screen.hear("state.changed", state);
  state["agent"]["last_exit"]["text"] = "the trainer ended with status 127: a library is missing";
  state["agent"]["last_exit"]["unix_seconds"] = 275;
  screen.hear("state.changed", state);
  state["agent"].erase("restart_in_seconds");  // given up: this command's own error says why
  state["agent"]["last_exit"]["unix_seconds"] = 300;
  screen.hear("state.changed", state);

  const QString line = "the trainer ended: can't allocate memory; it is started again in 2.0 s";
  const QString told = "the trainer ended; it is started again in 2.0 s";
  const QString status = "the trainer ended with status 127: a library is missing; it is started again in 2.0 s";
  QCOMPARE(screen.lines(), QStringList({line, line, told, status}));
}

void JoinProgressTest::a_hub_that_does_not_answer_is_said_once_and_so_is_its_return() {
  Screen screen;

  screen.hear("hub.link", {{"up", false}, {"text", "127.0.0.1:1: refused"}, {"tries_for_seconds", 120}});
  screen.hear("state.changed", state_with("the hub does not answer (127.0.0.1:1: refused); trying again for a while"));
  screen.hear("step", state_with("the hub does not answer (127.0.0.1:1: refused); trying again for a while"));
  screen.hear("hub.link", {{"up", true}});
  screen.hear("state.changed", state_with(""));

  screen.hear("hub.link", {{"up", false}, {"text", "127.0.0.1:1: refused"}});
  const QString away = "the hub does not answer (127.0.0.1:1: refused); trying again ";
  QCOMPARE(screen.lines(), QStringList({away + "for 2m00s", "the hub answers again", away + "until it does"}));
}

void JoinProgressTest::what_is_amiss_is_said_when_it_is_new() {
  Screen screen;
  nlohmann::json of_agent = state_with("the trainer ended; starts again in 5 s");
  of_agent["pid"] = 0;  // no trainer runs

  for (int i = 0; i < 3; ++i) screen.hear("step", state_with("no checkpoint is written: the disk is full"));
  screen.hear("state.changed", of_agent);
  screen.hear("step", state_with(""));
  screen.hear("step", state_with("no checkpoint is written: the disk is full"));

  QCOMPARE(screen.lines(),
           QStringList({"no checkpoint is written: the disk is full", "no checkpoint is written: the disk is full"}));
}

void JoinProgressTest::what_pauses_it_is_said_when_it_begins_and_when_it_is_over() {
  Screen screen;
  const auto hear = [&](const std::vector<PausedBy>& pauses) {
    NodeState state;
    state.has_agent = true;
    state.agent.wish = Wish::kRun;
    state.agent.paused_by = pauses;
    screen.hear("state.changed", to_json(state));
  };
  const PausedBy battery{OwnersRule::kBattery, "the machine runs on its battery", "1 min after it is plugged in"};
  const PausedBy load{OwnersRule::kLoad, "other programs keep 2.1 processors busy", "it is less"};

  hear({});
  hear({battery});
  hear({battery, load});
  hear({load});
  hear({});

  QCOMPARE(screen.lines(),
           QStringList({"paused: the machine runs on its battery, until 1 min after it is plugged in (rules.battery)",
                        "paused: other programs keep 2.1 processors busy, until it is less (rules.load)",
                        "training goes on"}));
}

void JoinProgressTest::a_pause_by_its_owner_is_said_and_so_is_its_end() {
  Screen screen;
  const auto hear = [&](Wish wish) {
    NodeState state;
    state.has_agent = true;
    state.agent.wish = wish;
    screen.hear("state.changed", to_json(state));
  };

  for (const Wish wish : {Wish::kRun, Wish::kPause, Wish::kPause, Wish::kRun, Wish::kRun}) hear(wish);
  for (const Wish wish : {Wish::kPause, Wish::kStop}) hear(wish);  // whose end is said by who ends

  const QString paused = "paused by its owner; atoll status says until when";
  QCOMPARE(screen.lines(), QStringList({paused, "training goes on", paused}));
}

void JoinProgressTest::a_download_is_told_with_its_size_and_its_end() {
  Screen screen;
  const auto transfer = [&](const char* what, const char* status, std::uint64_t done) {
    screen.hear("transfer",
                {{"what", what}, {"status", status}, {"done_bytes", done}, {"total_bytes", 1'900'000'000u}});
  };

  transfer("data", "running", 0);
  transfer("data", "running", 1'000'000);  // too soon for another line
  transfer("data", "done", 1'900'000'000);
  screen.hear("transfer", {{"what", "state"}, {"status", "done"}, {"done_bytes", 0}, {"total_bytes", 0}});
  transfer("state", "running", 0);
  screen.hear("transfer", {{"what", "state"}, {"status", "failed"}, {"text", "its sources moved on"}});

  QCOMPARE(screen.lines(), QStringList({"fetching the run's data, 1.9 GB", "the run's data is here",
                                        "fetching the model's state, 1.9 GB",
                                        "the model's state could not be fetched: its sources moved on"}));
}

void JoinProgressTest::stages_of_a_joining_are_told_in_words() {
  Screen screen;
  const auto stage = [&](const char* name, const char* status) {
    screen.hear("join.progress", {{"stage", name}, {"status", status}});
  };

  for (const char* name : {"check", "key", "enrol", "check", "trainer", "data", "state", "first_step"}) {
    stage(name, "running");
    stage(name, "done");
  }

  QCOMPARE(screen.lines(), QStringList({"checking this machine", "making a key", "enrolling", "checking this machine",
                                        "starting the trainer", "waiting for the first step"}));
}

QTEST_GUILESS_MAIN(JoinProgressTest)
#include "join_progress_test.moc"
