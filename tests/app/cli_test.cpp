// Each subcommand in-process: exit codes, messages, what a script reads.
#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <QtTest>
#include <atomic>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "app/cli/demo/demo_data.h"
#include "app/cli/demo/demo_directory.h"
#include "app/cli/own_address.h"
#include "net/base/file.h"
#include "net/control/control_server.h"
#include "net/control/home.h"
#include "net/control/island_state.h"
#include "net/data/dataset.h"
#include "net/hub/hub.h"
#include "net/wire/run_config.h"
#include "tests/app/cli_run.h"

using namespace atl;
using atl::test::CliOutcome;
using atl::test::CliRun;
using atl::test::contains;

namespace {

class FakeTrainerControl : public ControlService {
 public:
  Result<nlohmann::json> call(std::string_view method, const nlohmann::json&) override {
    if (method == "leave") left = true;
    if (method == "leave") return nlohmann::json::object();
    IslandState state;
    state.state = IslandPhase::kTraining;
    state.run_name = "gcide";
    state.round = 42;
    state.inner_step = 371;
    state.inner_steps = 500;
    state.loss_nats = 2.914;
    state.tokens_per_second = 318'000;
    return state.to_json();
  }
  std::atomic<bool> left = false;
};

std::vector<std::string> words(const QStringList& arguments) {
  std::vector<std::string> list;
  for (const QString& argument : arguments) list.push_back(argument.toStdString());
  return list;
}

}  // namespace

class CliTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void a_wrong_flag_is_a_usage_error_data();
  void a_wrong_flag_is_a_usage_error();
  void who_names_no_command_sees_which_there_are_data();
  void who_names_no_command_sees_which_there_are();
  void a_time_wants_its_unit_data();
  void a_time_wants_its_unit();
  void an_unknown_flag_gets_a_suggestion_data();
  void an_unknown_flag_gets_a_suggestion();
  void a_model_that_is_there_is_not_written_over();
  void wrong_numbers_are_named_in_words_data();
  void wrong_numbers_are_named_in_words();
  void an_unknown_word_is_named();
  void a_demo_that_cannot_work_is_refused_at_once_data();
  void a_demo_that_cannot_work_is_refused_at_once();
  void a_damaged_cached_dataset_is_prepared_again();
  void the_last_three_demo_directories_stay();
  void every_command_has_examples();
  void data_prepare_makes_a_dataset_and_says_what_is_wrong();
  void data_prepare_says_what_it_leaves_out();
  void hub_init_makes_a_run_of_the_preset_with_overrides();
  void hub_init_makes_the_learning_rate_decay_data();
  void hub_init_makes_the_learning_rate_decay();
  void hub_init_refuses_bad_configurations_data();
  void hub_init_refuses_bad_configurations();
  void hub_invite_prints_the_invite_alone();
  void hub_serves_until_it_is_interrupted();
  void hub_status_tells_how_many_fragments_there_are();
  void a_hub_on_all_addresses_invites_to_one_that_can_be_dialled();
  void a_home_that_never_joined_has_no_model();
  void a_directory_of_train_is_a_home();
  void what_does_not_run_is_started_again_by_the_words_that_are_told();
  void the_model_of_a_run_that_was_left_is_exported_by_its_id();
  void status_tells_unjoined_from_not_running();
  void status_shows_what_the_trainer_says();
  void leave_asks_the_trainer();
  void trainer_commands_pass_flags_and_exit_code_on();
  void eval_and_sample_compute_on_what_is_given_or_configured();
};

void CliTest::a_wrong_flag_is_a_usage_error_data() {
  QTest::addColumn<QStringList>("arguments");
  QTest::newRow("nothing") << QStringList{};
  QTest::newRow("unknown command") << QStringList{"dance"};
  QTest::newRow("unknown flag") << QStringList{"status", "--loudly"};
  QTest::newRow("missing argument") << QStringList{"data", "prepare"};
  QTest::newRow("no number") << QStringList{"demo", "--islands", "many"};
  QTest::newRow("two invites") << QStringList{"join", "atoll1.x", "--invite-stdin"};
}

void CliTest::a_wrong_flag_is_a_usage_error() {
  QFETCH(const QStringList, arguments);
  CliRun atoll;

  const CliOutcome outcome = atoll(words(arguments));

  QCOMPARE(outcome.exit_code, static_cast<int>(kExitUsage));
  QVERIFY(!outcome.err.empty());
}

void CliTest::who_names_no_command_sees_which_there_are_data() {
  QTest::addColumn<QStringList>("arguments");
  QTest::addColumn<QString>("one");
  QTest::newRow("atoll") << QStringList{} << "demo";
  QTest::newRow("hub") << QStringList{"hub"} << "serve";
  QTest::newRow("data") << QStringList{"data"} << "prepare";
  QTest::newRow("config") << QStringList{"config"} << "validate";
}

void CliTest::who_names_no_command_sees_which_there_are() {
  QFETCH(const QStringList, arguments);
  QFETCH(const QString, one);
  CliRun atoll;

  const CliOutcome outcome = atoll(words(arguments));

  QCOMPARE(outcome.exit_code, static_cast<int>(kExitUsage));
  QVERIFY2(contains(outcome.out, one.toStdString()) && contains(outcome.out, "Example"), outcome.out.c_str());
  QVERIFY2(contains(outcome.err, "wants one of the commands above"), outcome.err.c_str());
}

// Wherever one is typed: "5" of what?
void CliTest::a_time_wants_its_unit_data() {
  QTest::addColumn<QStringList>("command");
  QTest::addColumn<QString>("time");
  const std::pair<const char*, QStringList> options[] = {
      {"--for", {"pause"}}, {"--since", {"logs"}}, {"--expires", {"hub", "invite"}}};
  for (const auto& [option, command] : options) {
    for (const char* time : {"5", "soon", "5y", "5m30s", "-5m", "0h", "99999999d"}) {
      QTest::addRow("%s %s", option, time) << QStringList(command) + QStringList{option} << time;
    }
  }
}

void CliTest::a_time_wants_its_unit() {
  QFETCH(const QStringList, command);
  QFETCH(const QString, time);
  CliRun atoll;

  const CliOutcome outcome = atoll(words(command + QStringList{time}));

  QCOMPARE(outcome.exit_code, static_cast<int>(kExitUsage));
  const std::string option = command.back().toStdString();
  QVERIFY2(contains(outcome.err, option + ": must be a time with its unit, for instance 90s, 30m"),
           outcome.err.c_str());
}

void CliTest::an_unknown_flag_gets_a_suggestion_data() {
  QTest::addColumn<QStringList>("arguments");
  QTest::addColumn<QString>("says");
  QTest::newRow("near") << QStringList{"status", "--jsn"}
                        << "atoll: there is no option '--jsn' here; did you mean '--json'?; see atoll status --help\n";
  QTest::newRow("of a part") << QStringList{"hub", "serve", "--lisen=0.0.0.0:1"}
                             << "atoll: there is no option '--lisen' here; did you mean '--listen'?; see atoll hub "
                                "serve --help\n";
  QTest::newRow("before its command") << QStringList{"--home", "d", "rounds"}
                                      << "atoll: there is no option '--home' here; it stands behind its command: "
                                         "atoll rounds --home; see atoll rounds --help\n";
  QTest::newRow("before a part of its command")
      << QStringList{"config", "--home", "d", "set", "island.name", "shelf"}
      << "atoll: there is no option '--home' here; it stands behind its command: atoll config set --home; see atoll "
         "config set --help\n";
  QTest::newRow("near none") << QStringList{"status", "--zzzzzzzzzz"}
                             << "atoll: there is no option '--zzzzzzzzzz' here; see atoll status --help\n";
  QTest::newRow("where a command is wanted")
      << QStringList{"hub", "--frobnicate"} << "atoll: there is no option '--frobnicate' here; see atoll hub --help\n";
  QTest::newRow("a command, nearly") << QStringList{"hub", "stauts"}
                                     << "atoll: there is no command 'stauts' here; did you mean 'status'?; see atoll "
                                        "hub --help\n";
  QTest::newRow("a command, near none") << QStringList{"swim"}
                                        << "atoll: there is no command 'swim'; see atoll --help\n";
  QTest::newRow("a word too many") << QStringList{"status", "gcide"}
                                   << "atoll: nothing is expected for 'gcide' here; see atoll status --help\n";
}

void CliTest::an_unknown_flag_gets_a_suggestion() {
  QFETCH(const QStringList, arguments);
  QFETCH(const QString, says);
  CliRun atoll;

  QCOMPARE(QString::fromStdString(atoll(words(arguments)).err), says);
}

void CliTest::a_model_that_is_there_is_not_written_over() {
  CliRun atoll;
  atoll.fake_trainer("exit 0");
  QVERIFY(make_directories(atoll.path("island"), FileMode::kPrivate).ok());
  QVERIFY(save_join_file(atoll.path("island") / "join.json", JoinFile{}).ok());
  const std::string model = atoll.path("model").string();
  QVERIFY(make_directories(model, FileMode::kPrivate).ok());
  QCOMPARE(atoll({"export", "--output", model}).exit_code, 0);  // an empty directory is nobody's
  QVERIFY(write_file_atomically(atoll.path("model") / "config.json", "{}", FileMode::kPrivate).ok());

  const CliOutcome again = atoll({"export", "--output", model});

  QCOMPARE(again.exit_code, static_cast<int>(kExitUsage));
  QVERIFY2(contains(again.err, "--force"), again.err.c_str());
  QCOMPARE(atoll({"export", "--output", model, "--force"}).exit_code, 0);
}

void CliTest::wrong_numbers_are_named_in_words_data() {
  QTest::addColumn<QStringList>("arguments");
  QTest::addColumn<QString>("says");
  QTest::newRow("nan minutes") << QStringList{"demo", "--minutes", "nan"} << "--minutes: must be a positive number";
  QTest::newRow("infinite minutes") << QStringList{"demo", "--minutes", "inf"} << "must be a positive number";
  QTest::newRow("no minutes") << QStringList{"demo", "--minutes", "0"} << "must be a positive number";
  QTest::newRow("no rounds") << QStringList{"demo", "--rounds", "0"} << "--rounds: must be a whole number from 1";
  QTest::newRow("negative tokens") << QStringList{"sample", "--tokens", "-3"} << "must be a whole number from 1";
  QTest::newRow("no rate") << QStringList{"hub", "init", "--data", "d", "--name", "n", "--lr", "0"}
                           << "--lr: must be a positive number";
  QTest::newRow("negative decay") << QStringList{"hub", "init", "--data", "d", "--name", "n", "--decay-steps", "-1"}
                                  << "--decay-steps: must be a whole number from 0";
  QTest::newRow("half a step") << QStringList{"train", "--dir", "d", "--decay-start", "0.5"}
                               << "--decay-start: must be a whole number from 0";
  QTest::newRow("rate of a word") << QStringList{"train", "--dir", "d", "--final-lr", "low"} << "--final-lr: must be";
}

void CliTest::wrong_numbers_are_named_in_words() {
  QFETCH(const QStringList, arguments);
  QFETCH(const QString, says);
  CliRun atoll;

  const CliOutcome outcome = atoll(words(arguments));

  QCOMPARE(outcome.exit_code, static_cast<int>(kExitUsage));
  QVERIFY2(contains(outcome.err, says.toStdString()), outcome.err.c_str());
}

void CliTest::an_unknown_word_is_named() {
  CliRun atoll;

  const CliOutcome of_hub = atoll({"hub", "bogus"});

  QCOMPARE(of_hub.exit_code, static_cast<int>(kExitUsage));
  QVERIFY2(contains(of_hub.err, "'bogus'"), of_hub.err.c_str());
  QVERIFY(contains(atoll({"dance"}).err, "'dance'"));
}

void CliTest::a_demo_that_cannot_work_is_refused_at_once_data() {
  QTest::addColumn<QStringList>("flags");
  QTest::addColumn<QString>("says");
  QTest::newRow("nobody to kill") << QStringList{"--kill", "--islands", "1"} << "--kill needs at least 2 islands";
  QTest::newRow("no time to kill") << QStringList{"--kill", "--rounds", "5"} << "6 rounds";
  QTest::newRow("no place for the summary")
      << QStringList{"--summary", "/no/such/place/s.json"} << "/no/such/place/s.json";
  QTest::newRow("summary is a directory") << QStringList{"--summary", "/tmp"} << "--summary /tmp";
}

void CliTest::a_demo_that_cannot_work_is_refused_at_once() {
  QFETCH(const QStringList, flags);
  QFETCH(const QString, says);
  CliRun atoll;
  std::vector<std::string> list{"demo", "--text", atoll.write_text().string()};
  for (const QString& flag : flags) list.push_back(flag.toStdString());

  const CliOutcome outcome = atoll(list);

  QCOMPARE(outcome.exit_code, static_cast<int>(kExitUsage));
  QVERIFY2(contains(outcome.err, says.toStdString()), outcome.err.c_str());
  QVERIFY(!std::filesystem::exists(atoll.path("state")));
}

void CliTest::a_damaged_cached_dataset_is_prepared_again() {
  CliRun atoll;
  const std::vector<std::string> text{atoll.write_text().string()};
  int prepared = 0;
  const auto first = demo_data(text, [&] { ++prepared; });
  QVERIFY2(first.ok(), first.ok() ? "" : first.error().message.c_str());
  const auto shard = first->directory / Dataset::open(first->directory)->manifest().train.front().file;
  std::fstream(shard, std::ios::in | std::ios::out | std::ios::binary).seekp(-2, std::ios::end).put('\x01');

  const auto second = demo_data(text, [&] { ++prepared; });
  const auto third = demo_data(text, [&] { ++prepared; });

  QVERIFY2(second.ok(), second.ok() ? "" : second.error().message.c_str());
  QCOMPARE(prepared, 2);
  QVERIFY(third->prepared_before);
  QVERIFY(Dataset::open(third->directory)->verify().ok());
}

void CliTest::the_last_three_demo_directories_stay() {
  CliRun atoll;
  const auto parent = atoll.path("state") / "atoll" / "demo";
  for (const char* name :
       {"2026-01-01T10-00-00-999999991", "2026-01-02T10-00-00-999999992", "2026-01-03T10-00-00-999999993", "my-own"}) {
    std::filesystem::create_directories(parent / name);
  }

  const auto made = make_demo_directory("");

  QVERIFY(made.ok() && std::filesystem::exists(*made));
  QVERIFY(!std::filesystem::exists(parent / "2026-01-01T10-00-00-999999991"));
  QVERIFY(std::filesystem::exists(parent / "2026-01-02T10-00-00-999999992"));
  QVERIFY(std::filesystem::exists(parent / "2026-01-03T10-00-00-999999993"));
  QVERIFY(std::filesystem::exists(parent / "my-own"));
}

// Manual pages are made of every command's help.
void CliTest::every_command_has_examples() {
  CliRun atoll;
  QCOMPARE(atoll({"man", atoll.path("man1").string()}).exit_code, 0);
  int commands = 0;
  for (const auto& page : std::filesystem::directory_iterator(atoll.path("man1"))) {
    const QString text = QString::fromStdString(read_file(page.path()).value());
    const QString usage = text.section(".SH SYNOPSIS\n\\fB", 1).section("\\fR", 0, 0);  // "atoll hub init"
    QVERIFY2(usage.startsWith("atoll"), page.path().c_str());
    const bool is_group = text.contains(".SH COMMANDS");
    QVERIFY2(text.section(".SH EXAMPLES\n", 1).contains(is_group ? "atoll " : usage), qPrintable(usage));
    ++commands;
  }
  QVERIFY(commands > 50);
  const CliOutcome help = atoll({"hub", "init", "--help"});
  QCOMPARE(help.exit_code, 0);
  QVERIFY2(contains(help.out, "Example"), help.out.c_str());
}

void CliTest::data_prepare_makes_a_dataset_and_says_what_is_wrong() {
  CliRun atoll;
  const std::string text = atoll.write_text().string(), output = atoll.path("data").string();

  const CliOutcome made = atoll({"data", "prepare", text, "--output", output});
  const CliOutcome again = atoll({"data", "prepare", text, "--output", output});
  const CliOutcome missing = atoll({"data", "prepare", "/no/such/text", "--output", atoll.path("other").string()});

  QCOMPARE(made.exit_code, 0);
  QVERIFY2(contains(made.out, "training and"), made.out.c_str());
  const CliOutcome info = atoll({"data", "info", output, "--verify", "--json"});
  QVERIFY2(info.exit_code == 0, info.err.c_str());
  const auto manifest = DatasetManifest::from_json(info.out);
  QVERIFY2(manifest.ok() && manifest->tokenizer == "bytes" && !manifest->train.empty(), info.out.c_str());
  // The last line is the same.
  const CliOutcome as_json = atoll({"data", "prepare", text, "--output", output, "--force", "--json"});
  QVERIFY2(as_json.out.ends_with(info.out), as_json.out.c_str());
  QCOMPARE(again.exit_code, static_cast<int>(kExitUsage));
  QVERIFY(contains(again.err, "--force"));
  QVERIFY(contains(missing.err, "/no/such/text does not exist"));
}

void CliTest::data_prepare_says_what_it_leaves_out() {
  CliRun atoll;
  const std::filesystem::path corpus = atoll.path("corpus");
  std::filesystem::create_directory(corpus);
  std::filesystem::rename(atoll.write_text(), corpus / "book.TXT");
  std::ofstream(corpus / "notes.json") << "{}";
  std::ofstream(corpus / "holes.jsonl") << "{\"text\": null}\n{\"text\": \"caf\\u00e9\", \"score\": NaN}\n";

  const CliOutcome made = atoll({"data", "prepare", corpus.string(), "--output", atoll.path("data").string()});
  const CliOutcome as_json =
      atoll({"data", "prepare", corpus.string(), "--output", atoll.path("data").string(), "--force", "--json"});
  const CliOutcome klingon =
      atoll({"data", "prepare", corpus.string(), "--encoding", "klingon", "--output", atoll.path("other").string()});

  QVERIFY2(made.exit_code == 0, made.err.c_str());
  QVERIFY2(contains(made.err, "left out 1 file: ") && contains(made.err, "notes.json (a .json is more often"),
           made.err.c_str());
  QVERIFY2(contains(made.out, "1 document whose text is null or empty, left out") &&
               contains(made.out, "left out    1 file, named above"),
           made.out.c_str());
  const auto first = nlohmann::json::parse(as_json.out.substr(0, as_json.out.find('\n')), nullptr, false);
  QVERIFY2(!first.is_discarded() && first.value("files", 0) == 2, as_json.out.c_str());
  QCOMPARE(first["files_left_out"].size(), 1u);
  QVERIFY(contains(as_json.out, "\"without_text\":1"));
  QCOMPARE(klingon.exit_code, static_cast<int>(kExitUsage));
  QVERIFY2(contains(klingon.err, "no encoding 'klingon'"), klingon.err.c_str());
}

void CliTest::hub_init_makes_a_run_of_the_preset_with_overrides() {
  CliRun atoll;
  atoll({"data", "prepare", atoll.write_text().string(), "--output", atoll.path("data").string()});

  const CliOutcome made =
      atoll({"hub", "init", "--data", atoll.path("data").string(), "--name", "first", "--inner-steps", "7", "--islands",
             "2", "--wire", "fp32", "--lr", "0.0001", "--attention", "document"});

  QVERIFY2(made.exit_code == 0, made.err.c_str());
  const auto run = RunConfig::from_json(*read_file(atoll.path("hub") / "run.json"));
  QVERIFY2(run.ok(), run.ok() ? "" : run.error().message.c_str());
  QCOMPARE(run->name, std::string("first"));
  QCOMPARE(run->inner_steps, 7u);
  QCOMPARE(run->fragments, 1u);
  QCOMPARE(run->min_islands, 2u);
  QCOMPARE(run->wire, WireFormat::kFp32);
  QCOMPARE(run->attention, AttentionScope::kDocument);
  QCOMPARE(run->inner.learning_rate, 0.0001);
  QVERIFY(contains(run->model_json, "\"vocab_size\": 257"));
  QVERIFY2(contains(made.out, "each island wants 2") && !contains(made.out, "few machines"), made.out.c_str());
  const CliOutcome large = atoll({"hub", "init", "--home", atoll.path("large").string(), "--data",
                                  atoll.path("data").string(), "--name", "large", "--preset", "10b"});
  const CliOutcome parts =
      atoll({"hub", "init", "--home", atoll.path("parts").string(), "--data", atoll.path("data").string(), "--name",
             "parts", "--preset", "1b", "--fragments", "4"});
  QVERIFY2(contains(parts.out, "500 inner steps a round, each averages one of 4 fragments, "),
           (parts.out + parts.err).c_str());
  const auto in_parts = RunConfig::from_json(*read_file(atoll.path("parts") / "run.json"));
  QCOMPARE(in_parts->fragments, 4u);
  QCOMPARE(in_parts->connections_per_edge, 4u);  // the preset has 8, for an edge
  QVERIFY2(contains(large.out, "each island wants 450 GB of memory") && contains(large.out, "few machines"),
           (large.out + large.err).c_str());
}

void CliTest::hub_init_makes_the_learning_rate_decay_data() {
  QTest::addColumn<QStringList>("flags");
  QTest::addColumn<int>("start");
  QTest::addColumn<int>("steps");
  QTest::addColumn<double>("final_rate");
  QTest::addColumn<QString>("says");
  QTest::newRow("none") << QStringList{} << 0 << 0 << 0.0004
                        << "learning rate 0.004 after 40 steps of warm-up, no decay";
  QTest::newRow("with the last round") << QStringList{"--rounds", "100", "--inner-steps", "20", "--decay-steps", "500"}
                                       << 1500 << 500 << 0.0004 << "falls to 0.0004 from step 1,500 to step 2,000";
  QTest::newRow("at a step") << QStringList{"--decay-start", "900",  "--decay-steps", "100",    "--warmup-steps", "0",
                                            "--lr",          "0.01", "--final-lr",    "0.00001"}
                             << 900 << 100 << 0.00001
                             << "learning rate 0.01, falls to 1e-05 from step 900 to step 1,000";
}

void CliTest::hub_init_makes_the_learning_rate_decay() {
  QFETCH(const QStringList, flags);
  QFETCH(const int, start);
  QFETCH(const int, steps);
  QFETCH(const double, final_rate);
  QFETCH(const QString, says);
  CliRun atoll;
  atoll({"data", "prepare", atoll.write_text().string(), "--output", atoll.path("data").string()});
  std::vector<std::string> arguments{"hub", "init", "--data", atoll.path("data").string(), "--name", "first"};
  for (const QString& flag : flags) arguments.push_back(flag.toStdString());

  const CliOutcome made = atoll(arguments);

  QVERIFY2(made.exit_code == 0, made.err.c_str());
  const auto run = RunConfig::from_json(*read_file(atoll.path("hub") / "run.json"));
  QVERIFY2(run.ok(), run.ok() ? "" : run.error().message.c_str());
  QCOMPARE(run->inner.decay_start_step, static_cast<std::uint64_t>(start));
  QCOMPARE(run->inner.decay_steps, static_cast<std::uint64_t>(steps));
  QCOMPARE(run->inner.final_learning_rate, final_rate);
  QVERIFY2(contains(made.out, says.toStdString()), made.out.c_str());
}

void CliTest::hub_init_refuses_bad_configurations_data() {
  QTest::addColumn<QStringList>("flags");
  QTest::addColumn<QString>("says");
  QTest::newRow("no dataset") << QStringList{"--data", "/no/such/data"} << "atoll data prepare";
  QTest::newRow("no preset") << QStringList{"--preset", "huge"} << "one of demo, 150m, 1b, 10b";
  QTest::newRow("no model") << QStringList{"--model", "gpt"} << "no model 'gpt'";
  QTest::newRow("out of range") << QStringList{"--inner-steps", "0"} << "--inner-steps";
  QTest::newRow("attention to nothing") << QStringList{"--attention", "none"} << "must be one of packed, document";
  QTest::newRow("wire of benchmarks") << QStringList{"--wire", "int8-codebook"} << "--wire";
  QTest::newRow("decay of a run without an end") << QStringList{"--decay-steps", "10"} << "--decay-start N";
  QTest::newRow("decay longer than the run")
      << QStringList{"--decay-steps", "41", "--rounds", "2", "--inner-steps", "20"} << "choose fewer, or more --rounds";
  QTest::newRow("decay within the warm-up")
      << QStringList{"--decay-steps", "10", "--decay-start", "30", "--warmup-steps", "31"} << "--warmup-steps";
  QTest::newRow("start of no decay") << QStringList{"--decay-start", "30"} << "--decay-steps";
  QTest::newRow("end of no decay") << QStringList{"--final-lr", "0.001"} << "--decay-steps N";
  QTest::newRow("decay that rises") << QStringList{"--decay-steps", "9",     "--decay-start", "50",
                                                   "--lr",          "0.001", "--final-lr",    "0.01"}
                                    << "--final-lr";
  QTest::newRow("name of two lines") << QStringList{"--name", "two\nlines"} << "--name";
  QTest::newRow("name too long") << QStringList{"--name", QString(65, 'x')} << "64 bytes";
  QTest::newRow("longer than the model's positions")
      << QStringList{"--sequence-length", "2048"} << "max_position_embeddings";
  QTest::newRow("longer than the text") << QStringList{"--sequence-length", "1000000"} << "--sequence-length";
  QTest::newRow("more fragments than there can be") << QStringList{"--fragments", "5"} << "--fragments";
  QTest::newRow("more fragments than the model has parts")
      << QStringList{"--fragments", "4", "--model",
                     "@{\"hidden_size\": 8, \"intermediate_size\": 8, \"num_hidden_layers\": 1, "
                     "\"num_attention_heads\": 2, \"vocab_size\": 257}"}
      << "it has 3 parts that stay whole (the embedding, 1 block, the head); choose fewer --fragments";
  QTest::newRow("model of no size") << QStringList{"--model", "@{\"hidden_size\": 8}"} << "is missing";
  QTest::newRow("vocabulary too small")
      << QStringList{"--model",
                     "@{\"hidden_size\": 8, \"intermediate_size\": 8, \"num_hidden_layers\": 1, "
                     "\"num_attention_heads\": 2, \"vocab_size\": 100}"}
      << "vocab_size is 100";
  QTest::newRow("biases, which no island computes")
      << QStringList{"--model",
                     "@{\"hidden_size\": 8, \"intermediate_size\": 8, \"num_hidden_layers\": 1, "
                     "\"num_attention_heads\": 2, \"vocab_size\": 257, \"attention_bias\": true}"}
      << "attention_bias";
}

void CliTest::hub_init_refuses_bad_configurations() {
  QFETCH(const QStringList, flags);
  QFETCH(const QString, says);
  CliRun atoll;
  atoll({"data", "prepare", atoll.write_text().string(), "--output", atoll.path("data").string()});
  std::vector<std::string> arguments{"hub", "init"};
  if (!flags.contains("--name")) arguments.insert(arguments.end(), {"--name", "x"});
  if (!flags.contains("--data")) arguments.insert(arguments.end(), {"--data", atoll.path("data").string()});
  for (const QString& flag : flags) {
    arguments.push_back(flag.toStdString());
    if (!flag.startsWith('@')) continue;  // the content of a file
    std::ofstream(atoll.path("config.json")) << flag.mid(1).toStdString();
    arguments.back() = atoll.path("config.json").string();
  }

  const CliOutcome outcome = atoll(arguments);

  QVERIFY(outcome.exit_code == kExitUsage || outcome.exit_code == kExitOther);
  QVERIFY2(contains(outcome.err, says.toStdString()), outcome.err.c_str());
  QVERIFY(!std::filesystem::exists(atoll.path("hub") / "run.json"));
}

void CliTest::hub_invite_prints_the_invite_alone() {
  CliRun atoll;
  const auto hub = atoll.start_hub();

  const CliOutcome invite = atoll({"hub", "invite", "--home", atoll.path("hub-first").string(), "--uses", "3"});
  const CliOutcome to_file =
      atoll({"hub", "invite", "--home", atoll.path("hub-first").string(), "-o", atoll.path("invite.txt").string()});

  QCOMPARE(invite.exit_code, 0);
  QVERIFY(invite.out.starts_with("atoll1."));
  QCOMPARE(std::count(invite.out.begin(), invite.out.end(), '\n'), 1);
  QVERIFY(contains(invite.err, "3 islands"));
  QVERIFY(to_file.out.empty());
  QVERIFY(read_file(atoll.path("invite.txt"))->starts_with("atoll1."));
  QCOMPARE(std::filesystem::status(atoll.path("invite.txt")).permissions() & std::filesystem::perms::group_all,
           std::filesystem::perms::none);
}

void CliTest::hub_serves_until_it_is_interrupted() {
  CliRun atoll;
  atoll.start_hub().reset();
  const std::string home = atoll.path("hub-first").string();
  CliOutcome served;
  std::thread serving([&] { served = atoll({"hub", "serve", "--home", home, "--listen", "127.0.0.1:0"}); });
  CliOutcome status;
  QTRY_VERIFY_WITH_TIMEOUT((status = atoll({"hub", "status", "--home", home, "--json"})).exit_code == 0, 60'000);

  const CliOutcome for_people = atoll({"hub", "status", "--home", home});
  atoll.interrupt.raise("interrupted");
  serving.join();
  const CliOutcome after = atoll({"hub", "status", "--home", home});

  QCOMPARE(nlohmann::json::parse(status.out)["name"].get<std::string>(), std::string("first"));
  QVERIFY(contains(for_people.out, "waiting"));
  QCOMPARE(served.exit_code, 0);
  QVERIFY(contains(served.out, "hub stopped"));
  QCOMPARE(after.exit_code, static_cast<int>(kExitNotRunning));
}

void CliTest::hub_status_tells_how_many_fragments_there_are() {
  CliRun atoll;
  atoll({"data", "prepare", atoll.write_text().string(), "--output", atoll.path("data").string()});
  atoll({"hub", "init", "--data", atoll.path("data").string(), "--name", "parts", "--fragments", "2"});
  CliOutcome served;
  std::thread serving([&] { served = atoll({"hub", "serve", "--listen", "127.0.0.1:0"}); });
  CliOutcome status;
  QTRY_VERIFY_WITH_TIMEOUT((status = atoll({"hub", "status", "--json"})).exit_code == 0, 60'000);

  const CliOutcome for_people = atoll({"hub", "status"});
  atoll.interrupt.raise("interrupted");
  serving.join();

  QCOMPARE(nlohmann::json::parse(status.out)["fragments"].get<int>(), 2);
  QVERIFY2(contains(for_people.out, "each round averages one of 2 fragments\n"), for_people.out.c_str());
}

void CliTest::a_hub_on_all_addresses_invites_to_one_that_can_be_dialled() {
  if (!own_address()) QSKIP("this machine has only its loopback address");
  CliRun atoll;
  atoll.start_hub().reset();
  const std::string home = atoll.path("hub-first").string();
  CliOutcome served;
  std::thread serving([&] { served = atoll({"hub", "serve", "--home", home, "--listen", "0.0.0.0:0"}); });
  CliOutcome status;
  QTRY_VERIFY_WITH_TIMEOUT((status = atoll({"hub", "status", "--home", home, "--json"})).exit_code == 0, 60'000);
  atoll.interrupt.raise("interrupted");
  serving.join();

  QVERIFY2(contains(served.out, *own_address()) && contains(served.out, "--advertise"), served.out.c_str());
  QVERIFY(!contains(nlohmann::json::parse(status.out)["addresses"].dump(), "0.0.0.0"));
}

void CliTest::a_home_that_never_joined_has_no_model() {
  CliRun atoll;
  for (const CliOutcome& outcome : {atoll({"export", "--output", atoll.path("m").string()}), atoll({"sample"})}) {
    QCOMPARE(outcome.exit_code, static_cast<int>(kExitNotJoined));
    QVERIFY2(contains(outcome.err, "has joined no run"), outcome.err.c_str());
  }
}

// `atoll train --dir t1` made it: island and hub are below it.
void CliTest::a_directory_of_train_is_a_home() {
  CliRun atoll;
  const std::filesystem::path train = atoll.path("t1");
  const IslandHome island = TrainHome{train}.island();
  QVERIFY(make_directories(island.directory, FileMode::kPrivate).ok());
  JoinFile join;
  join.run_name = "train";
  join.threads = 3;
  QVERIFY(save_join_file(island.join_file(), join).ok());

  const CliOutcome shown = atoll({"config", "get", "island.threads", "--home", train.string()});
  QVERIFY(make_directories(TrainHome{train}.hub().directory, FileMode::kPrivate).ok());
  std::ofstream(TrainHome{train}.hub().run_file()) << "{}";

  QCOMPARE(shown.out, std::string("3\n"));
  QCOMPARE(*island_home_or_default(train.string()), island.directory);
  QCOMPARE(*island_home_or_default(island.directory.string()), island.directory);
  QCOMPARE(*hub_home_or_default(train.string()), TrainHome{train}.hub().directory);
  QCOMPARE(*hub_home_or_default(atoll.path("none").string()), atoll.path("none"));
}

void CliTest::what_does_not_run_is_started_again_by_the_words_that_are_told() {
  CliRun atoll;
  const std::string train = atoll.path("t1").string(), hub = atoll.path("a hub").string(),
                    island = atoll.path("own").string();
  const TrainHome both{atoll.path("both")};  // a hub and an island side by side
  for (const IslandHome& home : {TrainHome{train}.island(), both.island(), IslandHome{island}}) {
    JoinFile join;
    join.run_name = home.directory == TrainHome{train}.island().directory ? "train" : "gcide";
    QVERIFY(make_directories(home.directory, FileMode::kPrivate).ok());
    QVERIFY(save_join_file(home.join_file(), join).ok());
  }
  for (const HubHome& home : {TrainHome{train}.hub(), both.hub(), HubHome{hub}, HubHome{atoll.path("hub")}}) {
    QVERIFY(make_directories(home.directory, FileMode::kPrivate).ok());
    std::ofstream(home.run_file()) << "{}";
  }
  qunsetenv("ATOLL_HOME");

  const CliOutcome alone = atoll({"status", "--home", train});
  const CliOutcome own = atoll({"status", "--home", island});
  const CliOutcome hub_alone = atoll({"hub", "status", "--home", train});
  const CliOutcome another = atoll({"hub", "status", "--home", hub});
  const CliOutcome usual = atoll({"hub", "status"});
  const std::string beside = both.island().directory.string();
  const CliOutcome neighbour = atoll({"status", "--home", beside});

  for (const CliOutcome* outcome : {&alone, &own, &hub_alone, &another, &usual, &neighbour}) {
    QCOMPARE(outcome->exit_code, static_cast<int>(kExitNotRunning));
  }
  QVERIFY2(contains(alone.err, "start it with: atoll train --dir " + train + "\n"), alone.err.c_str());
  QVERIFY2(contains(neighbour.err, "start it with: atoll join --home " + beside + "\n"), neighbour.err.c_str());
  QVERIFY2(contains(own.err, "start it with: atoll join --home " + island + "\n"), own.err.c_str());
  QVERIFY2(contains(hub_alone.err, "atoll status --home " + train), hub_alone.err.c_str());
  QVERIFY2(contains(another.err, "start it with: atoll hub serve --home " + hub + "\n"), another.err.c_str());
  QVERIFY2(contains(usual.err, "start it with: atoll hub serve\n"), usual.err.c_str());
}

void CliTest::the_model_of_a_run_that_was_left_is_exported_by_its_id() {
  CliRun atoll;
  atoll.fake_trainer("exit 0");
  const IslandHome home{atoll.path("island")};
  QVERIFY(make_directories(home.checkpoint_of("0123456789abcdef"), FileMode::kPrivate).ok());
  JoinFile join;
  join.run_id = "fedcba9876543210";
  QVERIFY(save_join_file(home.join_file(), join).ok());
  const auto exported = [&](const char* run) {
    return atoll({"export", "--run", run, "--output", atoll.path("m").string()});
  };

  QCOMPARE(exported("0123456789abcdef").exit_code, 0);
  QVERIFY(contains(*read_file(atoll.path("calls")), "--run=0123456789abcdef"));
  QCOMPARE(exported("fedcba9876543210").exit_code, 0);  // its own
  for (const char* none : {"aaaa", "../../tmp", ""}) {
    const CliOutcome outcome = exported(none);
    QVERIFY2(*none == '\0' ? outcome.exit_code == 0 : contains(outcome.err, "keeps no model of a run"),
             outcome.err.c_str());
  }
}

void CliTest::status_tells_unjoined_from_not_running() {
  CliRun atoll;

  const CliOutcome unjoined = atoll({"status", "--json"});
  JoinFile join;
  join.run_name = "gcide";
  QVERIFY(make_directories(atoll.path("island"), FileMode::kPrivate).ok());
  QVERIFY(save_join_file(atoll.path("island") / "join.json", join).ok());
  const CliOutcome stopped = atoll({"status", "--json"});

  QCOMPARE(unjoined.exit_code, static_cast<int>(kExitNotJoined));
  QCOMPARE(nlohmann::json::parse(unjoined.out)["state"].get<std::string>(), std::string("unjoined"));
  QCOMPARE(stopped.exit_code, static_cast<int>(kExitNotRunning));
  QCOMPARE(nlohmann::json::parse(stopped.out)["state"].get<std::string>(), std::string("stopped"));
  QVERIFY(contains(stopped.err, "atoll join"));
  // Without an agent, too; and from then on it is said how to come back.
  const CliOutcome left = atoll({"leave"});
  QCOMPARE(left.exit_code, 0);
  QVERIFY2(contains(left.out, "'atoll join' comes back"), left.out.c_str());
  const CliOutcome after = atoll({"status"});
  QCOMPARE(after.exit_code, static_cast<int>(kExitNotJoined));
  QVERIFY2(contains(after.err, "has left run gcide; come back to it with: atoll join"), after.err.c_str());
}

void CliTest::status_shows_what_the_trainer_says() {
  CliRun atoll;
  QVERIFY(make_directories(atoll.path("island"), FileMode::kPrivate).ok());
  QVERIFY(save_join_file(atoll.path("island") / "join.json", JoinFile{}).ok());
  FakeTrainerControl service;
  const auto server = ControlServer::start(atoll.path("island") / "control.sock", "atoll-trainer", service);

  const CliOutcome people = atoll({"status"});
  const CliOutcome script = atoll({"status", "--json"});

  QVERIFY(people.out.starts_with("training  run gcide  round 43  step 371/500  loss 2.914  318k tok/s\n"));
  QCOMPARE(nlohmann::json::parse(script.out)["round"].get<int>(), 42);
}

void CliTest::leave_asks_the_trainer() {
  CliRun atoll;
  QVERIFY(make_directories(atoll.path("island"), FileMode::kPrivate).ok());
  QVERIFY(save_join_file(atoll.path("island") / "join.json", JoinFile{}).ok());
  FakeTrainerControl service;
  const auto server = ControlServer::start(atoll.path("island") / "control.sock", "atoll-trainer", service);

  QCOMPARE(atoll({"leave"}).exit_code, 0);
  QVERIFY(service.left);
  QVERIFY(!std::filesystem::exists(atoll.path("island") / "join.json"));
}

void CliTest::trainer_commands_pass_flags_and_exit_code_on() {
  CliRun atoll;
  atoll.fake_trainer("exit 4");
  QVERIFY(make_directories(atoll.path("island"), FileMode::kPrivate).ok());
  QVERIFY(save_join_file(atoll.path("island") / "join.json", JoinFile{}).ok());

  QCOMPARE(atoll({"sample", "--model", "/m", "--prompt", "-once upon", "--tokens", "5"}).exit_code, 4);
  QCOMPARE(atoll({"eval", "--model", "/h", "--data", "/d", "--json"}).exit_code, 4);
  QCOMPARE(atoll({"eval", "--model", "/h", "--data", "web=/w", "--data", "code=/c"}).exit_code, 4);
  QCOMPARE(atoll({"export", "--output", "/o"}).exit_code, 4);

  QCOMPARE(*read_file(atoll.path("calls")),
           "sample --model=/m --prompt=-once upon --tokens=5 --device=auto\n"
           "eval --model=/h --data=/d --device=auto --json\n"
           "eval --model=/h --data=web=/w --data=code=/c --device=auto\n"
           "export --home=" +
               atoll.path("island").string() + " --output=/o --dtype=float32 --max-shard-bytes=5000000000\n");
}

void CliTest::eval_and_sample_compute_on_what_is_given_or_configured() {
  CliRun atoll;
  atoll.fake_trainer("echo \"cards $CUDA_VISIBLE_DEVICES\" >> '" + atoll.path("calls").string() + "'");
  const auto clean = qScopeGuard([] {
    qunsetenv("ATOLL_ISLAND_DEVICE");
    qunsetenv("ATOLL_ISLAND_GPUS");
  });
  qunsetenv("CUDA_VISIBLE_DEVICES");

  QCOMPARE(atoll({"sample", "--model", "/m", "--device", "gpu", "--gpus", "none"}).exit_code, 0);
  qputenv("ATOLL_ISLAND_DEVICE", "processor");
  qputenv("ATOLL_ISLAND_GPUS", "2,5");
  QCOMPARE(atoll({"sample", "--model", "/m"}).exit_code, 0);
  QCOMPARE(atoll({"eval", "--model", "/m", "--data", "/d", "--device", "auto"}).exit_code, 0);
  const CliOutcome wrong = atoll({"eval", "--model", "/m", "--data", "/d", "--device", "tpu"});

  QCOMPARE(*read_file(atoll.path("calls")),
           "sample --model=/m --device=gpu\ncards \n"
           "sample --model=/m --device=processor\ncards 2\n"
           "eval --model=/m --data=/d --device=auto\ncards 2\n");
  QCOMPARE(wrong.exit_code, static_cast<int>(kExitUsage));
  QVERIFY2(contains(wrong.err, "choose auto, processor or gpu"), wrong.err.c_str());
}

QTEST_GUILESS_MAIN(CliTest)
#include "cli_test.moc"
