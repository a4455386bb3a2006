// The configuration: which value is in force, what is refused and how it says so.
#include <QTemporaryDir>
#include <QtTest>
#include <fstream>
#include <nlohmann/json.hpp>

#include "app/config/config.h"
#include "app/config/config_queries.h"
#include "app/config/gpu_list.h"
#include "app/config/quantity.h"

using namespace atl;
using namespace std::chrono_literals;

namespace {

class Files {
 public:
  Files() : sources{path("config.toml"), path("state/settings.json")} {}
  std::filesystem::path path(const std::string& name) const {
    return std::filesystem::path(directory_.path().toStdString()) / name;
  }
  void write(const std::string& toml) const { std::ofstream(sources.file) << toml; }

 private:
  QTemporaryDir directory_;

 public:
  ConfigSources sources;
};

std::string message_of(const ConfigSources& sources) {
  const auto config = Config::load(sources);
  return config.ok() ? "" : config.error().message;
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

class ConfigTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void every_default_is_a_value_that_may_be_written();
  void what_is_nearer_to_the_owner_goes_first();
  void a_defect_is_named_with_its_line_data();
  void a_defect_is_named_with_its_line();
  void every_defect_is_named_at_once();
  void gpus_are_numbers_and_ranges_data();
  void gpus_are_numbers_and_ranges();
  void the_printed_file_is_one_that_can_be_read();
  void values_with_units_mean_what_they_say();
  void one_meaning_has_one_text_data();
  void one_meaning_has_one_text();
  void a_setting_is_kept_and_taken_back();
  void a_settings_file_that_is_none_is_refused();
  void the_protocol_gets_and_sets();
};

void ConfigTest::every_default_is_a_value_that_may_be_written() {
  for (const ConfigKey& key : config_keys()) {
    const auto value = normalise_config_value(key, key.default_value);
    QVERIFY2(value.ok(), key.name);
    QCOMPARE(*value, std::string(key.default_value));
  }
}

void ConfigTest::what_is_nearer_to_the_owner_goes_first() {
  Files files;
  const auto upload = [&] { return Config::load(files.sources)->value("limits.upload"); };
  QCOMPARE(upload().origin, std::string("default"));

  files.write("# mine\n[limits]\nupload = \"10 Mbit/s\"\n");
  QCOMPARE(upload().text, std::string("10 Mbit/s"));
  QCOMPARE(upload().origin, files.sources.file.string() + " line 3");
  QVERIFY(write_setting(files.sources.settings, "limits.upload", "20 Mbit/s").ok());
  QCOMPARE(upload().origin, std::string("settings"));
  files.sources.environment["ATOLL_LIMITS_UPLOAD"] = "30 Mbit/s";
  QCOMPARE(upload().origin, std::string("ATOLL_LIMITS_UPLOAD"));
  files.sources.command_line["limits.upload"] = "40 Mbit/s";
  QCOMPARE(upload().text, std::string("40 Mbit/s"));
  QCOMPARE(upload().origin, std::string("command line"));
}

void ConfigTest::a_defect_is_named_with_its_line_data() {
  QTest::addColumn<QString>("toml");
  QTest::addColumn<QString>("says");
  QTest::newRow("no TOML") << "[limits]\nupload = = 3\n"
                           << "line 2: ";
  QTest::newRow("misspelt") << "[limits]\n\nuplaod = \"none\"\n"
                            << "line 3: there is no key 'limits.uplaod'; did you mean 'limits.upload'?";
  QTest::newRow("without section") << "upload = \"none\"\n"
                                   << "did you mean 'limits.upload'?";
  QTest::newRow("no unit") << "[limits]\nupload = 20\n"
                           << "line 2: limits.upload = '20': must be a rate of at least 1 Mbit/s with its unit";
  QTest::newRow("too large") << "[island]\nthreads = 5000\n"
                             << "from 0 to 1024";
  QTest::newRow("list") << "[island]\nname = [0, 1]\n"
                        << "line 2: island.name: must be a text";
  QTest::newRow("table in table") << "[island.name]\nx = 1\n"
                                  << "line 1: island.name";
  QTest::newRow("word") << "[log]\nlevel = \"loud\"\n"
                        << "one of: error warning info debug";
  QTest::newRow("hours") << "[schedule]\nhours = \"22-6\"\n"
                         << "22:00-06:00";
  QTest::newRow("gpus") << "[island]\ngpus = \"0-\"\n"
                        << "line 2: island.gpus: '0-' names no GPUs; say all, none, or numbers from 0 to 63";
  QTest::newRow("steps") << "[checkpoints]\nkeep_rounds = \"12, x\"\n"
                         << "must be rounds, for instance 12, several apart by commas";
  QTest::newRow("endpoint") << "[store]\nendpoint = \"store.example:9000\"\n"
                            << "line 2: store.endpoint = 'store.example:9000': must be https://HOST";
  QTest::newRow("endpoint with a path") << "[store]\nendpoint = \"https://store.example/bucket\"\n"
                                        << "must be https://HOST";
  QTest::newRow("file") << "[store]\ncredentials_file = \"keys\"\n"
                        << "must be an absolute path, or empty";
  QTest::newRow("two lines") << "[island]\nname = \"a\\nb\"\n"
                             << "must be one line";
}

void ConfigTest::a_defect_is_named_with_its_line() {
  QFETCH(const QString, toml);
  QFETCH(const QString, says);
  Files files;
  files.write(toml.toStdString());

  const std::string message = message_of(files.sources);

  QVERIFY2(contains(message, says.toStdString()), message.c_str());
  QVERIFY(contains(message, "config.toml"));
}

void ConfigTest::every_defect_is_named_at_once() {
  Files files;
  files.write("[log]\nlevel = \"loud\"\nmax_size = \"much\"\n");
  files.sources.environment["ATOLL_ISLAND_THREADS"] = "-1";

  const std::string message = message_of(files.sources);

  QVERIFY(contains(message, "line 2"));
  QVERIFY(contains(message, "line 3"));
  QVERIFY(contains(message, "ATOLL_ISLAND_THREADS: "));
}

void ConfigTest::gpus_are_numbers_and_ranges_data() {
  QTest::addColumn<QString>("text");
  QTest::addColumn<QString>("kept");  // empty: refused
  QTest::addColumn<QString>("visible");
  QTest::newRow("all") << "all"
                       << "all"
                       << "as it is";
  QTest::newRow("none") << "none"
                        << "none"
                        << "";
  QTest::newRow("one") << "3"
                       << "3"
                       << "3";
  QTest::newRow("a range") << "0-3"
                           << "0-3"
                           << "0,1,2,3";
  QTest::newRow("in any order, twice") << "6, 0-2,1,3"
                                       << "0-3,6"
                                       << "0,1,2,3,6";
  QTest::newRow("the last") << "63"
                            << "63"
                            << "63";
  for (const char* wrong : {"", "x", "64", "-1", "3-1", "0-", "0,", ",0", "0,,1", "0-1-2", "0-4294967296", "GPU-1"}) {
    QTest::newRow(qPrintable(QString("'%1'").arg(wrong))) << wrong << ""
                                                          << "";
  }
}

void ConfigTest::gpus_are_numbers_and_ranges() {
  QFETCH(const QString, text);
  QFETCH(const QString, kept);
  QFETCH(const QString, visible);

  const auto gpus = parse_gpu_list(text.toStdString());

  QCOMPARE(gpus.ok(), !kept.isEmpty());
  if (kept.isEmpty()) {
    QCOMPARE(gpus.error().code, ErrorCode::kInvalidArgument);
    return;
  }
  QCOMPARE(gpus->text(), kept.toStdString());
  QCOMPARE(*parse_gpu_list(gpus->text()), *gpus);
  QCOMPARE(gpus->visible_devices().value_or("as it is"), visible.toStdString());
  QCOMPARE(gpus->contains(6), text.contains("6,") || text == "all");
}

void ConfigTest::the_printed_file_is_one_that_can_be_read() {
  Files files;
  std::string text = config_file_template();
  files.write(text);
  QCOMPARE(message_of(files.sources), std::string());

  // With the values uncommented: every key is in it.
  std::string values;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const bool value = line.starts_with("# ") && contains(line, " = ");
    values += (value ? line.substr(2) : line) + "\n";
  }
  files.write(values);

  const auto file = read_config_file(files.sources.file);
  QVERIFY2(file->defects.empty(), file->defects.empty() ? "" : file->defects.front().c_str());
  QCOMPARE(file->entries.size(), config_keys().size());
}

void ConfigTest::values_with_units_mean_what_they_say() {
  QCOMPARE(config_bytes("1.5 GB"), 1'500'000'000u);
  QCOMPARE(cap_bytes_per_second("20 Mbit/s"), std::optional(2.5e6));
  QCOMPARE(cap_bytes_per_second("2.5 MB/s"), std::optional(2.5e6));
  QVERIFY(!cap_bytes_per_second("none"));
  QCOMPARE(config_seconds("10m"), 600u);
  QCOMPARE(parse_duration("90s"), std::optional(90s));
  QCOMPARE(parse_duration("24 h"), std::optional(std::chrono::seconds(24h)));
  QCOMPARE(parse_duration("36500d"), std::optional(std::chrono::seconds(36'500 * 24h)));
  for (const char* none : {"", "90", "s", "5y", "5m30s", "-1h", "1.5h", "36501d", "4294967296s"}) {
    QVERIFY2(!parse_duration(none), none);
  }
  QCOMPARE(config_steps("12, 500"), (std::set<std::uint32_t>{12, 500}));
  QVERIFY(config_steps("").empty());
}

void ConfigTest::one_meaning_has_one_text_data() {
  QTest::addColumn<QString>("key");
  QTest::addColumn<QString>("written");
  QTest::addColumn<QString>("kept");
  QTest::newRow("rate") << "limits.upload"
                        << " 20Mbit/s"
                        << "20 Mbit/s";
  QTest::newRow("no rate") << "limits.upload"
                           << "0"
                           << "none";
  QTest::newRow("hours") << "schedule.hours"
                         << "22:00-06:00,12:00 - 13:00"
                         << "22:00-06:00, 12:00-13:00";
  QTest::newRow("all hours") << "schedule.hours"
                             << " always"
                             << "";
  QTest::newRow("no other limits") << "limits.upload_by_hours"
                                   << "none"
                                   << "";
  QTest::newRow("hours up to midnight") << "schedule.hours"
                                        << "20:00-24:00,"
                                        << "20:00-24:00";
  QTest::newRow("outer steps") << "checkpoints.keep_rounds"
                               << " 500,12, 500 ,"
                               << "12, 500";
  QTest::newRow("no outer steps") << "checkpoints.keep_rounds"
                                  << ""
                                  << "";
  QTest::newRow("endpoint") << "store.endpoint"
                            << " https://store.example:9000 "
                            << "https://store.example:9000";
  QTest::newRow("no file") << "store.credentials_file"
                           << " "
                           << "";
  QTest::newRow("size") << "log.max_size"
                        << "50MB"
                        << "50 MB";
}

void ConfigTest::one_meaning_has_one_text() {
  QFETCH(const QString, key);
  QFETCH(const QString, written);
  QFETCH(const QString, kept);

  const auto value = normalise_config_value(**find_config_key(key.toStdString()), written.toStdString());

  QVERIFY2(value.ok(), value.ok() ? "" : value.error().message.c_str());
  QCOMPARE(QString::fromStdString(*value), kept);
}

void ConfigTest::a_setting_is_kept_and_taken_back() {
  Files files;
  QVERIFY(write_setting(files.sources.settings, "log.level", "debug").ok());
  QVERIFY(write_setting(files.sources.settings, "island.threads", "8").ok());
  QCOMPARE(Config::load(files.sources)->whole("island.threads"), 8);

  QVERIFY(write_setting(files.sources.settings, "log.level", std::nullopt).ok());

  QCOMPARE(Config::load(files.sources)->value("log.level").origin, std::string("default"));
  QCOMPARE(Config::load(files.sources)->whole("island.threads"), 8);
  QCOMPARE(write_setting(files.sources.settings, "island.threads", "many").error().code, ErrorCode::kInvalidArgument);
  QVERIFY(!std::filesystem::exists(files.sources.file));  // the user's file is not ours to write
}

void ConfigTest::a_settings_file_that_is_none_is_refused() {
  Files files;
  std::filesystem::create_directories(files.path("state"));
  for (const char* text : {"", "[]", "{\"log.level\": 3}", "{"}) {
    std::ofstream(files.sources.settings) << text;
    const auto config = Config::load(files.sources);
    QVERIFY(!config.ok());
    QCOMPARE(config.error().code, ErrorCode::kCorrupt);
    QVERIFY(contains(config.error().message, "settings.json"));
  }
}

void ConfigTest::the_protocol_gets_and_sets() {
  Files files;

  const auto set = set_config(files.sources, {{"key", "log.level"}, {"value", "debug"}});
  const auto all = get_config(files.sources, nlohmann::json::object());

  QVERIFY2(set.ok(), set.ok() ? "" : set.error().message.c_str());
  QCOMPARE(set->at("values")[0].at("value").get<std::string>(), std::string("debug"));
  QCOMPARE(set->at("values")[0].at("origin").get<std::string>(), std::string("settings"));
  QCOMPARE(all->at("values").size(), config_keys().size());
  QCOMPARE(set_config(files.sources, {{"key", "log.level"}, {"value", 3}}).error().code, ErrorCode::kInvalidArgument);
  QCOMPARE(set_config(files.sources, {{"key", 3}, {"value", "x"}}).error().code, ErrorCode::kInvalidArgument);
}

QTEST_GUILESS_MAIN(ConfigTest)
#include "config_test.moc"
