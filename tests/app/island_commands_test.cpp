// The commands about this machine's island: against an agent that a test plays, against its files when none runs.
#include <QtTest>
#include <atomic>
#include <nlohmann/json.hpp>
#include <thread>

#include "app/agent/history/history_feed.h"
#include "app/cli/island/status_view.h"
#include "app/cli/text.h"
#include "net/base/file.h"
#include "net/check/facts.h"
#include "net/control/control_server.h"
#include "net/control/home.h"
#include "net/control/island_state.h"
#include "tests/app/cli_run.h"
#include "tests/fakes/told_events.h"

using namespace atl;
using atl::test::CliOutcome;
using atl::test::CliRun;
using atl::test::contains;

namespace {

IslandState training_state() {
  IslandState state;
  state.state = IslandPhase::kTraining;
  state.run_id = "0123456789abcdef";
  state.run_name = "gcide";
  state.round = 42;
  state.inner_step = 371;
  state.inner_steps = 500;
  state.loss_nats = 2.914;
  state.tokens_per_second = 318'000;
  state.islands_live = 7;
  state.islands_total = 8;
  return state;
}

class FakeAgent : public ControlService {
 public:
  Result<nlohmann::json> call(std::string_view method, const nlohmann::json& params) override {
    if (method == "state.get") {
      ++asked;
      return training_state().to_json();
    }
    if (method == "rounds.list")
      return nlohmann::json{{"run", "r"}, {"rounds", {{{"round", 5}, {"accepted", false}}}}, {"more", false}};
    if (method == "peers.list") {
      const nlohmann::json attic{{"island", "isl-7"}, {"name", "attic"}, {"bytes_per_second", 62.5e6}};
      return nlohmann::json{{"run", "r"}, {"peers", {attic}}};
    }
    if (method == "config.set") set = params.dump();
    if (method == "config.set") return nlohmann::json::object();
    return Error{ErrorCode::kNotFound, "no such method"};
  }
  std::atomic<int> asked = 0;
  std::string set;
};

void join_home(const CliRun& atoll) {
  std::filesystem::create_directories(atoll.path("island") / "state");
  JoinFile join;
  join.run_name = "gcide";
  if (!save_join_file(atoll.path("island") / "join.json", join).ok()) qFatal("join.json");
}

void write_history(const CliRun& atoll) {
  auto store = HistoryStore::open(atoll.path("island") / "state" / "history.sqlite");
  HistoryFeed feed(**store);
  IslandState state = training_state();
  test::ToldEvents told;
  const auto tell = [&](const char* name, double time, const nlohmann::json& data) {
    told.tell({{"event", name}, {"time", time}, {"data", data}},
              [&](const HeardEvent& heard) { feed.take(heard, Clock::now()); });
  };
  tell("round.begin", 1.7e9, state.to_json());
  state.outer_step = 43;
  state.accepted_round = 42;
  tell("sync.done", 1.7e9 + 60, state.to_json());
  tell("state.validated", 1.7e9 + 61, {{"outer_step", 43}, {"loss_nats", 2.25}});
  tell("state.evaluated", 1.7e9 + 62,
       {{"outer_step", 43}, {"task", "capitals"}, {"figures", {{{"metric", "acc"}, {"value", 0.5}}}}});
  tell("peer.up", 1.7e9, {{"island", "isl-7"}, {"name", "attic"}});
  feed.flush();
}

}  // namespace

class IslandCommandsTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void rounds_and_peers_are_read_from_the_file_while_no_agent_runs();
  void rounds_are_asked_of_the_agent_that_runs();
  void rounds_before_an_island_came_are_told_in_a_line();
  void a_round_is_under_way_only_while_something_trains();
  void rates_of_peers_are_in_bits();
  void what_never_joined_says_so_data();
  void what_never_joined_says_so();
  void status_asks_the_agent_before_the_trainer();
  void status_fits_a_narrow_terminal();
  void status_shows_what_the_agent_adds();
  void status_says_until_when_it_is_paused_and_why_data();
  void status_says_until_when_it_is_paused_and_why();
  void a_blank_setting_is_shown_by_its_meaning();
  void gpus_that_are_not_there_are_refused();
  void status_shows_where_the_time_of_a_step_goes();
  void the_watch_ends_by_ctrl_c();
  void the_watch_tells_how_old_its_data_is();
  void a_curve_has_gaps_where_there_is_nothing();
  void logs_are_shown_since_a_time_and_without_secrets();
  void logs_are_followed_until_ctrl_c();
  void checkpoints_tell_a_damaged_one();
  void diag_lists_before_it_writes();
  void config_sets_gets_and_explains();
  void config_names_a_wrong_key_and_line();
  void config_tells_a_running_agent();
};

void IslandCommandsTest::rounds_and_peers_are_read_from_the_file_while_no_agent_runs() {
  CliRun atoll;
  join_home(atoll);
  QCOMPARE(atoll({"rounds"}).exit_code, static_cast<int>(kExitNotRunning));
  write_history(atoll);

  const CliOutcome rounds = atoll({"rounds"});
  const CliOutcome json = atoll({"rounds", "--json"});
  const CliOutcome peers = atoll({"peers"});

  QCOMPARE(rounds.exit_code, 0);
  QVERIFY2(contains(rounds.out, "     43 ") && contains(rounds.out, "yes"), rounds.out.c_str());
  QVERIFY2(contains(rounds.out, "2.250") && contains(rounds.out, "capitals acc 0.5"), rounds.out.c_str());
  QCOMPARE(nlohmann::json::parse(json.out)["rounds"][0]["round"].get<int>(), 42);
  QVERIFY2(contains(peers.out, "isl-7") && contains(peers.out, "attic"), peers.out.c_str());
  // Nobody is up for an island that does not train.
  const std::string row = peers.out.substr(peers.out.find("isl-7"));
  QVERIFY2(contains(peers.out, "does not train now") && !contains(row, "up"), peers.out.c_str());
}

void IslandCommandsTest::rounds_are_asked_of_the_agent_that_runs() {
  CliRun atoll;
  join_home(atoll);
  write_history(atoll);
  FakeAgent agent;
  const auto server = ControlServer::start(atoll.path("island") / "agent.sock", "atoll agent", agent);
  QVERIFY(server.ok());

  const CliOutcome rounds = atoll({"rounds"});

  QVERIFY2(contains(rounds.out, "     6 ") && contains(rounds.out, "no") && !contains(rounds.out, "43"),
           rounds.out.c_str());
}

void IslandCommandsTest::rounds_before_an_island_came_are_told_in_a_line() {
  CliRun atoll;
  join_home(atoll);
  {
    auto store = HistoryStore::open(atoll.path("island") / "state" / "history.sqlite");
    HistoryBatch batch{.run = training_state().run_id};
    batch.past = HistoryPast{.inner_steps = 500,
                             .told_at = 1.7e9,
                             .told = {{{0, 32, 1, 60, 5.25}, {32, 32, 1, 60, 3.5}}, {{0, 5.5}, {40, 3.25}, {64, 3}}}};
    QVERIFY((*store)->write(batch).ok());
  }
  const CliOutcome newcomer = atoll({"rounds"});
  write_history(atoll);  // its first round is the 43rd

  const CliOutcome rounds = atoll({"rounds"});
  const CliOutcome json = atoll({"rounds", "--json"});

  QVERIFY2(contains(newcomer.out,
                    "before this island came: 64 rounds, loss of all islands 5.250 -> 3.500, validated "
                    "5.500 -> 3.000"),
           newcomer.out.c_str());
  QVERIFY2(contains(rounds.out,
                    "before this island came: 42 rounds, loss of all islands 5.250 -> 3.500, validated "
                    "5.500 -> 3.250"),
           rounds.out.c_str());
  QCOMPARE(nlohmann::json::parse(json.out)["past"].size(), 2u);
}

void IslandCommandsTest::a_round_is_under_way_only_while_something_trains() {
  CliRun atoll;
  join_home(atoll);
  write_history(atoll);
  {
    auto store = HistoryStore::open(atoll.path("island") / "state" / "history.sqlite");
    HistoryBatch batch{.run = training_state().run_id};
    batch.rounds.push_back({.round = 43, .began = 1.7e9 + 70});
    QVERIFY((*store)->write(batch).ok());
  }

  const CliOutcome rounds = atoll({"rounds"});

  QVERIFY2(contains(rounds.out, "     44 ") && contains(rounds.out, "not here"), rounds.out.c_str());
  QVERIFY2(!contains(rounds.out, "under way"), rounds.out.c_str());
}

void IslandCommandsTest::rates_of_peers_are_in_bits() {
  CliRun atoll;
  join_home(atoll);
  FakeAgent agent;
  const auto server = ControlServer::start(atoll.path("island") / "agent.sock", "atoll agent", agent);
  QVERIFY(server.ok());

  const CliOutcome peers = atoll({"peers"});

  QVERIFY2(contains(peers.out, "500 Mbit/s"), peers.out.c_str());
}

void IslandCommandsTest::what_never_joined_says_so_data() {
  QTest::addColumn<QString>("command");
  for (const char* command : {"rounds", "peers", "checkpoints", "logs", "status"}) QTest::newRow(command) << command;
}

void IslandCommandsTest::what_never_joined_says_so() {
  QFETCH(const QString, command);
  CliRun atoll;

  const CliOutcome outcome = atoll({command.toStdString()});

  QCOMPARE(outcome.exit_code, static_cast<int>(kExitNotJoined));
  QVERIFY2(contains(outcome.err, "has joined no run"), outcome.err.c_str());
}

void IslandCommandsTest::status_asks_the_agent_before_the_trainer() {
  CliRun atoll;
  join_home(atoll);
  FakeAgent agent, trainer;
  const auto at_trainer = ControlServer::start(atoll.path("island") / "control.sock", "atoll-trainer", trainer);
  QCOMPARE(atoll({"status"}).exit_code, 0);
  QCOMPARE(trainer.asked.load(), 1);
  const auto at_agent = ControlServer::start(atoll.path("island") / "agent.sock", "atoll agent", agent);

  const CliOutcome outcome = atoll({"status"});

  QCOMPARE(outcome.exit_code, 0);
  QCOMPARE(agent.asked.load(), 1);
  QCOMPARE(trainer.asked.load(), 1);
  QVERIFY2(contains(outcome.out, "training  run gcide  round 43  step 371/500  loss 2.914  318k tok/s"),
           outcome.out.c_str());
}

void IslandCommandsTest::status_fits_a_narrow_terminal() {
  std::ostringstream out, err;
  Console console{out, err};
  console.columns = 40;

  for (const std::string& line : status_lines(training_state().to_json(), console)) {
    QVERIFY2(display_width(line) <= 40, line.c_str());
  }
}

void IslandCommandsTest::status_shows_what_the_agent_adds() {
  std::ostringstream out, err;
  Console console{out, err};
  nlohmann::json state = training_state().to_json();
  console.columns = 200;
  const auto given = [](std::uint64_t tokens) {
    return nlohmann::json{{"tokens", tokens}, {"rounds_accepted", 12}, {"bytes_sent", 1.9e9}, {"seconds", 3600.0}};
  };
  state["name"] = "attic";
  state["agent"] = {{"wish", "pause"},
                    {"seconds", 7500.0},
                    {"restarts", 2},
                    {"last_exit", {{"text", "out of GPU memory"}}},
                    {"contributed", {{"run", given(349'696)}, {"life", given(349'697)}}}};
  state["mfu"] = 0.38;
  state["gpus"] = {{{"name", "H100"}, {"utilisation", 0.98}, {"power_watts", 612}, {"temperature_celsius", 67}}};
  state["disk_free_bytes"] = 812e9;

  std::string text;
  for (const std::string& line : status_lines(state, console)) text += line + "\n";

  for (const char* part : {"MFU 38 %", "gpu 1x H100", "98 %  612 W  67 C", "disk 812 GB free", "as attic",
                           "paused until 'atoll resume'", "agent up for 2h05m", "2 restarts", "last: out of GPU memory",
                           "contributed to this run: 349,696 tokens trained, 12 rounds accepted, 1.9 GB sent, 1h00m of "
                           "training",
                           "contributed to all runs: 349,697 tokens trained"}) {
    QVERIFY2(contains(text, part), text.c_str());
  }
  QVERIFY(!contains(text, "\033"));  // no colour was asked for
  QVERIFY2(!contains(text, "pid 0") && !contains(text, "wish"), text.c_str());
}

void IslandCommandsTest::status_says_until_when_it_is_paused_and_why_data() {
  QTest::addColumn<QString>("agent");
  QTest::addColumn<QString>("says");
  QTest::newRow("for a while") << R"({"wish": "pause", "paused_until_unix_seconds": 1700000000})"
                               << "paused until 2023-11-1";
  QTest::newRow("in another age") << R"({"wish": "pause", "paused_until_unix_seconds": 1e300})"
                                  << "paused until ";
  QTest::newRow("by a rule")
      << R"({"wish": "run", "followed": "pause", "warning": "the disk is full", "paused_by": [{"rule": "rules.battery",
             "why": "the machine runs on its battery", "until": "1 min after it is plugged in"}]})"
      << "paused: the machine runs on its battery, until 1 min after it is plugged in (rules.battery)\n";
  QTest::newRow("what is amiss besides")
      << R"({"wish": "run", "warning": "the disk is full", "paused_by": [{"rule": "rules.battery", "why": "w"}]})"
      << "the disk is full";
  QTest::newRow("by a rule of a newer agent") << R"({"paused_by": [{"rule": "rules.moon", "why": "it is full",
                                                    "until": "it wanes", "advice": "wait"}]})"
                                              << "paused: it is full, until it wanes; wait\n";
  QTest::newRow("a GPU") << R"({"paused_gpus": [{"gpu": 3, "until_unix_seconds": null}]})"
                         << "GPU 3 paused until 'atoll resume --gpu 3'";
  QTest::newRow("a GPU for a while") << R"({"paused_gpus": [{"gpu": 3, "until_unix_seconds": 1700000000}]})"
                                     << "GPU 3 paused until 2023-11-1";
  QTest::newRow("finishing") << R"({"wish": "finish"})"
                             << "finishes this round";
  QTest::newRow("limited")
      << R"({"wish": "run", "upload_cap": {"bytes_per_second": 2.5e6, "until_unix_seconds": null}})"
      << "upload up to 20 Mbit/s\n";
  QTest::newRow("limited until") << R"({"download_cap": {"bytes_per_second": 2.5e6, "until_unix_seconds": 1700000000}})"
                                 << "download up to 20 Mbit/s until ";
  QTest::newRow("unlimited until") << R"({"upload_cap": {"bytes_per_second": null, "until_unix_seconds": 1700000000}})"
                                   << "upload without a limit until ";
  QTest::newRow("stopped") << R"({"wish": "stop"})"
                           << "stopped until 'atoll resume'";
}

void IslandCommandsTest::status_says_until_when_it_is_paused_and_why() {
  QFETCH(const QString, agent);
  QFETCH(const QString, says);
  std::ostringstream out, err;
  const Console console{out, err};
  nlohmann::json state = training_state().to_json();
  state["agent"] = nlohmann::json::parse(agent.toStdString());

  std::string text;
  for (const std::string& line : status_lines(state, console)) text += line + "\n";

  QVERIFY2(contains(text, says.toStdString()), text.c_str());
}

void IslandCommandsTest::a_blank_setting_is_shown_by_its_meaning() {
  CliRun atoll;
  join_home(atoll);

  const CliOutcome list = atoll({"config", "get"});
  const CliOutcome one = atoll({"config", "get", "island.threads"});

  QCOMPARE(one.out, std::string("0\n"));  // as it is, for scripts
  for (const char* said : {"0 (all cores)", "(always)", "0 (no limit)", "0 (whatever they do)", "none"}) {
    QVERIFY2(contains(list.out, said), list.out.c_str());
  }
  QVERIFY(contains(atoll({"config", "validate"}).out, "is not there"));
}

void IslandCommandsTest::gpus_that_are_not_there_are_refused() {
  CliRun atoll;
  join_home(atoll);
  GpuFacts two;
  two.driver_found = true;
  two.devices.resize(2);
  std::ofstream(atoll.path("probe.sh")) << "#!/bin/sh\necho '" << to_json(two).dump() << "'\n";
  std::filesystem::permissions(atoll.path("probe.sh"), std::filesystem::perms::owner_all);
  qputenv("ATOLL_GPU_PROBE", QByteArray::fromStdString(atoll.path("probe.sh").string()));

  const CliOutcome there = atoll({"config", "set", "island.gpus", "0-1"});
  const CliOutcome missing = atoll({"config", "set", "island.gpus", "1,9"});
  const CliOutcome joining = atoll({"join", "--gpus", "2"});

  QCOMPARE(there.exit_code, 0);
  QVERIFY2(contains(there.out, "in force from the next 'atoll join' on"), there.out.c_str());
  QCOMPARE(missing.exit_code, static_cast<int>(kExitUsage));
  QVERIFY2(contains(missing.err, "no GPU 9 (it has 2 GPUs, numbered from 0;"), missing.err.c_str());
  QVERIFY2(contains(joining.err, "no GPU 2"), joining.err.c_str());
  QCOMPARE(atoll({"config", "get", "island.gpus"}).out, std::string("0-1\n"));
  QCOMPARE(atoll({"config", "set", "island.gpus", "none"}).exit_code, 0);
}

void IslandCommandsTest::status_shows_where_the_time_of_a_step_goes() {
  std::ostringstream out, err;
  Console console{out, err};
  console.columns = 200;
  IslandState state = training_state();
  state.flops_per_second = 3.02e14;
  state.step_seconds = StepTimes{.total = 0.5, .data = 0.01};
  const auto text = [&] {
    std::string all;
    for (const std::string& line : status_lines(state.to_json(), console)) all += line + "\n";
    return all;
  };
  QVERIFY2(contains(text(), "step 500 ms  302 TFLOP/s  data 2 %\n"), text().c_str());  // more the device does not tell

  state.step_seconds->matmul = 0.3;
  state.step_seconds->attention = 0.1;
  state.step_seconds->communication = 0.05;
  state.step_seconds->loss = 0.002;  // too little to be told

  QVERIFY2(contains(text(),
                    "step 500 ms  302 TFLOP/s  data 2 %  matmul 60 %  attention 20 %  communication 10 %  "
                    "other 8 %\n"),
           text().c_str());
}

void IslandCommandsTest::the_watch_ends_by_ctrl_c() {
  CliRun atoll;
  join_home(atoll);
  FakeAgent agent;
  const auto server = ControlServer::start(atoll.path("island") / "agent.sock", "atoll agent", agent);
  std::jthread person([&] {
    while (agent.asked < 2) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    atoll.interrupt.raise("interrupted");
  });

  const CliOutcome outcome = atoll({"status", "--watch", "--json"});

  QCOMPARE(outcome.exit_code, 0);
  std::istringstream lines(outcome.out);
  std::string line;
  QVERIFY(std::getline(lines, line) && nlohmann::json::parse(line)["round"] == 42);
}

void IslandCommandsTest::the_watch_tells_how_old_its_data_is() {
  std::ostringstream out, err;
  const Console console{out, err};
  const nlohmann::json state = training_state().to_json();
  const auto text_of = [&](double age) {
    std::string text;
    for (const std::string& line : watch_lines({&state, {3, 2.9}, age, ""}, console)) text += line + "\n";
    return text;
  };

  QVERIFY2(contains(text_of(12), "last update 12 s ago"), text_of(12).c_str());
  QVERIFY(!contains(text_of(1), "last update"));
  QVERIFY(contains(text_of(1), "round [###"));
  QVERIFY(!contains(text_of(1), "run   "));
  std::string with_past;
  for (const std::string& line : watch_lines({&state, {3, 2.9}, 1, "", {5, 4}}, console)) with_past += line + "\n";
  QVERIFY2(contains(with_past, "run   '_\nloss  '_"), with_past.c_str());
}

void IslandCommandsTest::a_curve_has_gaps_where_there_is_nothing() {
  QCOMPARE(spark_line({0, NAN, 1}, 10, true), std::string("▁ █"));
  QCOMPARE(spark_line({0, 1}, 10, false), std::string("_'"));
  QCOMPARE(spark_line({1, 2, 3, 4}, 2, false), std::string("_'"));
  QCOMPARE(spark_line({}, 10, true), std::string());
}

void IslandCommandsTest::logs_are_shown_since_a_time_and_without_secrets() {
  CliRun atoll;
  join_home(atoll);
  std::ofstream(atoll.path("island") / "state" / "agent.log")
      << "2001-01-01T00:00:00.000 info long ago\n2999-01-01T00:00:00.000 error bad invite atoll1.c2VjcmV0.00000000\n";

  const CliOutcome all = atoll({"logs"}), recent = atoll({"logs", "--since", "1h"}),
                   wrong = atoll({"logs", "--since", "x"});

  QVERIFY2(contains(all.out, "long ago"), all.out.c_str());
  QVERIFY2(!contains(recent.out, "long ago") && contains(recent.out, "bad invite [redacted]"), recent.out.c_str());
  QCOMPARE(wrong.exit_code, static_cast<int>(kExitUsage));
}

void IslandCommandsTest::logs_are_followed_until_ctrl_c() {
  CliRun atoll;
  join_home(atoll);
  const auto log = atoll.path("island") / "state" / "trainer.log";
  std::ofstream(log) << "2026-01-01T00:00:00.000 info first\n";
  std::jthread person([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    std::ofstream(log, std::ios::app) << "2026-01-01T00:00:01.000 info second\n";
    std::this_thread::sleep_for(std::chrono::milliseconds(1500));
    atoll.interrupt.raise("interrupted");
  });

  const CliOutcome outcome = atoll({"logs", "-f", "--json"});

  QCOMPARE(outcome.exit_code, 0);
  QVERIFY2(contains(outcome.out, "info first") && contains(outcome.out, "info second"), outcome.out.c_str());
}

void IslandCommandsTest::checkpoints_tell_a_damaged_one() {
  CliRun atoll;
  join_home(atoll);
  QCOMPARE(atoll({"checkpoints"}).exit_code, 0);
  std::filesystem::create_directories(atoll.path("island") / "checkpoint");
  std::ofstream(atoll.path("island") / "checkpoint" / "outer.state") << "not a checkpoint";

  const CliOutcome outcome = atoll({"checkpoints", "verify", "--json"});

  QCOMPARE(outcome.exit_code, static_cast<int>(kExitOther));
  QCOMPARE(nlohmann::json::parse(outcome.out)["checkpoints"][0]["whole"].get<bool>(), false);
  QVERIFY2(contains(outcome.err, "remove it"), outcome.err.c_str());
}

void IslandCommandsTest::diag_lists_before_it_writes() {
  CliRun atoll;
  join_home(atoll);
  const std::string file = atoll.path("d.tar").string();

  const CliOutcome list = atoll({"diag", "--list", "-o", file});
  QVERIFY(contains(list.out, "system.txt") && !std::filesystem::exists(file));
  const CliOutcome made = atoll({"diag", "-o", file, "--json"});

  QCOMPARE(made.exit_code, 0);
  QCOMPARE(nlohmann::json::parse(made.out)["file"].get<std::string>(), file);
  QVERIFY(std::filesystem::exists(file));
  QCOMPARE(atoll({"diag", "-o", file}).exit_code, static_cast<int>(kExitUsage));
}

void IslandCommandsTest::config_sets_gets_and_explains() {
  CliRun atoll;

  const CliOutcome set = atoll({"config", "set", "limits.upload", "20Mbit/s"});
  QVERIFY2(set.exit_code == 0, set.err.c_str());
  QCOMPARE(atoll({"config", "get", "limits.upload"}).out, std::string("20 Mbit/s\n"));
  QVERIFY(contains(atoll({"config", "get", "--origin"}).out, "(settings)"));
  atoll({"config", "set", "limits.upload", "--unset"});
  QCOMPARE(atoll({"config", "get", "limits.upload", "--origin"}).out, std::string("none  (default)\n"));
  QCOMPARE(atoll({"config", "path"}).out, (atoll.path("island") / "config.toml").string() + "\n");
  QCOMPARE(atoll({"config", "set", "limits.upload"}).exit_code, static_cast<int>(kExitUsage));
}

void IslandCommandsTest::config_names_a_wrong_key_and_line() {
  CliRun atoll;
  std::filesystem::create_directories(atoll.path("island"));
  std::ofstream(atoll.path("island") / "config.toml") << "[limits]\nuplod = \"none\"\n";

  const CliOutcome validated = atoll({"config", "validate"});
  const CliOutcome json = atoll({"config", "validate", "--json"});

  QCOMPARE(validated.exit_code, static_cast<int>(kExitUsage));
  QVERIFY2(contains(validated.err, "line 2") && contains(validated.err, "'limits.upload'"), validated.err.c_str());
  QCOMPARE(nlohmann::json::parse(json.out)["defects"].size(), 1u);
  QCOMPARE(atoll({"config", "set", "limits.uplod", "none"}).exit_code, static_cast<int>(kExitUsage));
}

void IslandCommandsTest::config_tells_a_running_agent() {
  CliRun atoll;
  FakeAgent agent;
  const auto server = ControlServer::start(atoll.path("island") / "agent.sock", "atoll agent", agent);

  QCOMPARE(atoll({"config", "set", "log.level", "debug"}).exit_code, 0);

  QCOMPARE(agent.set, std::string(R"({"key":"log.level","value":"debug"})"));
}

QTEST_GUILESS_MAIN(IslandCommandsTest)
#include "island_commands_test.moc"
