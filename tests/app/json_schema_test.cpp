// What `--json` prints is what resources/schemas says. Each command's real output.
#include <QStandardPaths>
#include <QtTest>
#include <algorithm>
#include <future>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "app/agent/files/log_page.h"
#include "app/agent/history/history_feed.h"
#include "app/agent/history/history_queries.h"
#include "app/cli/bench/link_bench.h"
#include "net/base/file.h"
#include "net/control/control_server.h"
#include "net/control/home.h"
#include "net/control/hub_state.h"
#include "net/control/island_state.h"
#include "net/model_files/model_writer.h"
#include "tests/app/cli_run.h"
#include "tests/app/schema_defects.h"
#include "tests/fakes/told_events.h"

using namespace atl;
using atl::test::CliOutcome;
using atl::test::CliRun;
using atl::test::defects;

namespace {

IslandState training_state() {
  IslandState state;
  state.state = IslandPhase::kTraining;
  state.run_id = "0123456789abcdef";
  state.run_name = "gcide";
  state.inner_steps = 500;
  state.loss_nats = 2.9;
  state.learning_rate = 3e-4;
  state.gradient_norm = 0.25;
  state.flops_per_second = 3.02e14;
  state.step_seconds = StepTimes{.total = 0.5, .data = 0.01, .matmul = 0.3};
  return state;
}

class FakeAgent : public ControlService {
 public:
  Result<nlohmann::json> call(std::string_view method, const nlohmann::json&) override {
    if (method == "state.get") {
      nlohmann::json state = training_state().to_json();
      state["disk_free_bytes"] = 812e9;
      state["gpus"] = {{{"index", 0},
                        {"name", "NVIDIA H100 80GB HBM3"},
                        {"utilisation", 0.98},
                        {"power_watts", 612.5},
                        {"ecc_errors", 0}}};
      return state;
    }
    return Error{ErrorCode::kNotFound, "no such method"};
  }
};

// A home with everything in it that a command could show.
void fill_home(const CliRun& atoll) {
  const auto home = atoll.path("island");
  std::filesystem::create_directories(home / "state");
  std::filesystem::create_directories(home / "checkpoint");
  JoinFile join;
  join.run_name = "gcide";
  if (!save_join_file(home / "join.json", join).ok()) qFatal("join.json");
  std::ofstream(home / "checkpoint" / "outer.state") << "damaged";
  std::ofstream(home / "state" / "agent.log") << "2026-01-01T00:00:00.000 info first\n";
  auto store = HistoryStore::open(home / "state" / "history.sqlite");
  HistoryFeed feed(**store);
  IslandState state = training_state();
  test::ToldEvents told;
  const auto event = [&](const char* name, const nlohmann::json& data) {
    told.tell({{"event", name}, {"time", 1.7e9}, {"data", data}},
              [&](const HeardEvent& heard) { feed.take(heard, Clock::now()); });
  };
  event("round.begin", state.to_json());
  event("step", state.to_json());
  event("sync.phase", {{"round", 0}, {"attempt", 1}, {"phase", "apply"}, {"seconds", 1}, {"bytes", 2}});
  event("peer.up", {{"island", "isl-7"}, {"name", "attic"}});
  feed.flush();
}

// Of bytes, with the end of text.
std::string write_model(const CliRun& atoll) {
  ModelConfig config;
  config.vocab_size = 257, config.hidden_size = 4, config.intermediate_size = 8, config.num_hidden_layers = 1;
  config.num_attention_heads = config.num_key_value_heads = 1, config.head_dim = 4;
  const std::vector<float> values(static_cast<std::size_t>(canonical_layout(config).numel));
  const std::string model = atoll.path("model").string();
  if (!write_model_directory(model, config, values).ok()) qFatal("cannot write a model");
  return model;
}

// Commands, and the schema that what they print with --json fits.
std::vector<std::pair<const char*, const char*>> schema_of_command() {
  return {{"status", "status"},
          {"rounds", "rounds"},
          {"peers", "peers"},
          {"checkpoints", "checkpoints"},
          {"checkpoints verify", "checkpoints"},
          {"checkpoints prune", "checkpoints-prune"},
          {"logs", "log-line"},
          {"diag --list", "diag"},
          {"config get", "config"},
          {"config set log.level debug", "config"},
          {"config path", "config-path"},
          {"config validate", "config-validate"},
          {"bench all-reduce --islands 2 --payload 1MiB --repeat 1", "bench-all-reduce"},
          {"service status", "service-status"},
          {"version", "version"},
          {"bench quantise --payload 1MiB --threads 1", "bench-quantise"}};
}

}  // namespace

class JsonSchemaTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void outputs_fit_their_schemas_data();
  void outputs_fit_their_schemas();
  void every_command_that_prints_json_is_looked_at();
  void hub_outputs_fit_their_schemas();
  void a_measured_link_fits_its_schema();
  void a_merge_fits_its_schema();
  void a_runs_base_model_fits_its_schema();
  void metrics_fit_their_schema();
  void tokens_fit_their_schema();
  void a_page_of_logs_fits_its_schema();
  void a_schema_refuses_what_does_not_fit_data();
  void a_schema_refuses_what_does_not_fit();
};

void JsonSchemaTest::outputs_fit_their_schemas_data() {
  QTest::addColumn<QString>("schema");
  QTest::addColumn<QString>("command");
  for (const auto& [command, schema] : schema_of_command()) QTest::newRow(command) << schema << command;
}

void JsonSchemaTest::outputs_fit_their_schemas() {
  QFETCH(const QString, schema);
  QFETCH(const QString, command);
  if (schema == "service-status" && QStandardPaths::findExecutable("systemctl").isEmpty()) QSKIP("there is no systemd");
  CliRun atoll;
  fill_home(atoll);
  FakeAgent agent;
  std::unique_ptr<ControlServer> trainer;
  if (schema == "status")
    trainer = *ControlServer::start(atoll.path("island") / "control.sock", "atoll-trainer", agent);
  std::vector<std::string> arguments;
  for (const QString& word : command.split(' ')) arguments.push_back(word.toStdString());
  arguments.push_back("--json");

  const CliOutcome outcome = atoll(arguments);

  const nlohmann::json document = nlohmann::json::parse(outcome.out, nullptr, false);
  QVERIFY2(!document.is_discarded(), (outcome.out + outcome.err).c_str());
  QCOMPARE(defects(schema.toStdString(), document), std::string());
}

// By the options in the manual's pages, which are made of the commands.
void JsonSchemaTest::every_command_that_prints_json_is_looked_at() {
  std::set<QString> looked_at{"hub islands", "hub config", "hub data", "hub base-model", "hub invite", "hub invites",
                              "hub backup", "hub status", "bench link", "tokenize", "merge",  // below
                              "eval", "export", "sample",                                     // train_test
                              "data prepare", "data info",                                    // cli_test
                              // The tests of these commands read what they print.
                              "check", "hub remove", "hub invites revoke", "hub rollback", "hub restore", "hub decay",
                              "hub mixture", "pause", "resume", "finish", "stop",
                              "leave"};  // the agent's answer: control_method_test
  for (const auto& [command, schema] : schema_of_command()) looked_at.insert(command);
  CliRun atoll;
  QCOMPARE(atoll({"man", atoll.path("man1").string()}).exit_code, 0);

  int commands = 0;
  for (const auto& page : std::filesystem::directory_iterator(atoll.path("man1"))) {
    const QString text = QString::fromStdString(read_file(page.path()).value());
    if (!text.contains("\n\\fB\\-\\-json\\fR")) continue;
    ++commands;
    const QString usage = text.section(".SH SYNOPSIS\n\\fBatoll ", 1).section("\\fR", 0, 0).remove('\\');
    const auto is_it = [&](const QString& command) { return command == usage || command.startsWith(usage + ' '); };
    QVERIFY2(!usage.isEmpty() && std::ranges::any_of(looked_at, is_it), qPrintable(usage));
  }
  QVERIFY(commands > 25);
}

void JsonSchemaTest::hub_outputs_fit_their_schemas() {
  CliRun atoll;
  const std::string home = atoll.path("hub-first").string();
  const auto hub = atoll.start_hub();
  const auto document = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--json", "--home", home});
    return nlohmann::json::parse(atoll(arguments).out, nullptr, false);
  };

  QCOMPARE(defects("hub-islands", document({"hub", "islands"})), std::string());
  QCOMPARE(defects("hub-config", document({"hub", "config"})), std::string());
  QCOMPARE(defects("hub-data", document({"hub", "data"})), std::string());
  QCOMPARE(defects("hub-invite", document({"hub", "invite"})), std::string());
  QCOMPARE(defects("hub-invites", document({"hub", "invites"})), std::string());
  QCOMPARE(defects("hub-invite", document({"hub", "invite", "--output", atoll.path("invite.txt").string()})),
           std::string());
  QCOMPARE(defects("hub-backup", document({"hub", "backup", atoll.path("b.tar").string()})), std::string());
  QCOMPARE(defects("hub-status", hub->state().to_json()), std::string());
}

void JsonSchemaTest::a_measured_link_fits_its_schema() {
  const AbortSignal never;
  std::promise<std::uint16_t> port;
  const std::jthread listener([&] {
    (void)serve_link_bench({"127.0.0.1", 0}, Deadline::after(std::chrono::seconds(60)), never,
                           [&](std::uint16_t at) { port.set_value(at); });
  });
  CliRun atoll;

  const CliOutcome outcome =
      atoll({"bench", "link", "127.0.0.1:" + std::to_string(port.get_future().get()), "--seconds", "0.1", "--json"});

  QVERIFY2(outcome.exit_code == 0, outcome.err.c_str());
  QCOMPARE(defects("bench-link", nlohmann::json::parse(outcome.out)), std::string());
}

void JsonSchemaTest::a_merge_fits_its_schema() {
  CliRun atoll;
  const std::string model = write_model(atoll);

  const CliOutcome outcome = atoll({"merge", "--model", model, "-o", atoll.path("out").string(), "--json"});

  QCOMPARE(defects("merge", nlohmann::json::parse(outcome.out, nullptr, false)), std::string());
}

void JsonSchemaTest::a_runs_base_model_fits_its_schema() {
  CliRun atoll;
  const std::string data = atoll.path("data").string();
  QCOMPARE(atoll({"data", "prepare", atoll.write_text().string(), "--output", data}).exit_code, 0);
  const CliOutcome made = atoll({"hub", "init", "--data", data, "--name", "first", "--from", write_model(atoll)});
  QVERIFY2(made.exit_code == 0, made.err.c_str());

  const CliOutcome outcome = atoll({"hub", "base-model", "--json"});

  QCOMPARE(defects("hub-base-model", nlohmann::json::parse(outcome.out, nullptr, false)), std::string());
}

void JsonSchemaTest::metrics_fit_their_schema() {
  CliRun atoll;
  fill_home(atoll);
  const auto store = HistoryStore::open_to_read(atoll.path("island") / "state" / "history.sqlite");

  QCOMPARE(defects("metrics", *query_metrics(**store, {{"name", "loss_nats"}})), std::string());
}

void JsonSchemaTest::tokens_fit_their_schema() {
  CliRun atoll;
  const CliOutcome outcome = atoll({"tokenize", "--tokenizer", "bytes", "--json", atoll.write_text().string()});

  QCOMPARE(defects("tokenize", nlohmann::json::parse(outcome.out, nullptr, false)), std::string());
}

void JsonSchemaTest::a_page_of_logs_fits_its_schema() {
  CliRun atoll;
  fill_home(atoll);

  const auto page = read_log_page({{"agent", atoll.path("island") / "state" / "agent.log"}}, {});

  QCOMPARE(page->lines.size(), std::size_t{1});
  QCOMPARE(defects("logs", page->to_json()), std::string());
}

void JsonSchemaTest::a_schema_refuses_what_does_not_fit_data() {
  QTest::addColumn<QString>("schema");
  QTest::addColumn<QString>("document");
  QTest::newRow("no such state") << "status"
                                 << R"({"state": "dancing"})";
  QTest::newRow("nothing") << "status"
                           << "{}";
  QTest::newRow("a GPU that does more than it can")
      << "status"
      << R"({"state": "training", "gpus": [{"index": 0, "name": "H100", "utilisation": 98}]})";
  QTest::newRow("a log line of nobody")
      << "logs"
      << R"({"lines": [{"source": "x", "time": "", "level": "", "text": ""}], "cursor": "", "more": false})";
  QTest::newRow("a text for a number") << "diag"
                                       << R"({"file": "x", "bytes": "3", "entries": []})";
  QTest::newRow("an invite without an address")
      << "hub-invite"
      << R"({"id": "x", "invite": "atoll1.x", "file": null, "uses": 1, "expires_unix_seconds": 1, "hub_addresses": []})";
  QTest::newRow("a missing field") << "rounds"
                                   << R"({"run": "x", "rounds": []})";
}

void JsonSchemaTest::a_schema_refuses_what_does_not_fit() {
  QFETCH(const QString, schema);
  QFETCH(const QString, document);
  QVERIFY(!defects(schema.toStdString(), nlohmann::json::parse(document.toStdString())).empty());
}

QTEST_GUILESS_MAIN(JsonSchemaTest)
#include "json_schema_test.moc"
