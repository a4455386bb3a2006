// The files and messages of net/control, without sockets.
#include <QtTest>

#include <QTemporaryDir>
#include <cmath>
#include <nlohmann/json.hpp>

#include "net/base/file.h"
#include "net/control/home.h"
#include "net/control/hub_state.h"
#include "net/control/island_state.h"
#include "net/control/json_fields.h"
#include "tests/fakes/hub_states.h"

using namespace atl;

class ControlStateTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void a_hub_state_survives_the_round_trip();
  void an_island_state_survives_the_round_trip();
  void a_loss_that_is_no_number_travels_as_null();
  void a_state_with_a_wrong_field_names_it_data();
  void a_state_with_a_wrong_field_names_it();
  void a_join_file_survives_the_round_trip();
  void a_join_file_is_written_as_before_and_one_of_before_is_read();
  void a_join_file_that_names_no_gpus_means_all();
  void a_home_without_a_join_file_has_not_joined();
  void a_join_file_of_another_version_is_refused();
  void the_environment_chooses_the_home();
};

namespace {

HubState example() {
  HubState state = test::training_run(/*islands=*/2, /*rounds=*/2);
  state.max_rounds = 30;
  state.fragments = 2;
  state.rounds[1].outer_hashes_equal.reset();
  state.first_validation = {0, 5.5};
  state.evaluations = {{"hellaswag", "acc", {{0, 0.25}, {10, 0.3125}}, {{"acc", 0.3125}, {"acc_norm", 0.5}}},
                       {"lambada", "acc", {}, {}}};
  return state;
}

}  // namespace

void ControlStateTest::a_hub_state_survives_the_round_trip() {
  const HubState state = example();

  const auto read = HubState::from_json(nlohmann::json::parse(state.to_json().dump()));

  QVERIFY2(read.ok(), read.ok() ? "" : read.error().message.c_str());
  QCOMPARE(read->to_json().dump(), state.to_json().dump());
  QVERIFY(read->rounds[0].outer_hashes_equal.has_value());
  QVERIFY(!read->rounds[1].outer_hashes_equal.has_value());
  QVERIFY(!read->last_validation.has_value());
  QCOMPARE(read->fragments, 2u);
  nlohmann::json of_before = state.to_json();
  of_before.erase("fragments");
  of_before.erase("evaluations");
  QCOMPARE(HubState::from_json(of_before)->fragments, 1u);
  QVERIFY(HubState::from_json(of_before)->evaluations.empty());
}

void ControlStateTest::an_island_state_survives_the_round_trip() {
  IslandState state;
  state.state = IslandPhase::kTraining;
  state.island = "isl-0";
  state.pid = 42;
  state.parameters = 800'000;
  state.validation_loss_nats = 1.5;
  state.accepted_round = 3;

  const auto read = IslandState::from_json(nlohmann::json::parse(state.to_json().dump()));

  QVERIFY(read.ok());
  QCOMPARE(read->to_json().dump(), state.to_json().dump());
  QVERIFY(!read->last_sync_seconds.has_value());
}

void ControlStateTest::a_loss_that_is_no_number_travels_as_null() {
  IslandState state;
  state.loss_nats = std::nan("");

  const auto read = IslandState::from_json(nlohmann::json::parse(state.to_json().dump()));

  QVERIFY(read.ok());
  QVERIFY(std::isnan(read->loss_nats));
}

void ControlStateTest::a_state_with_a_wrong_field_names_it_data() {
  QTest::addColumn<QString>("key");
  QTest::addColumn<QString>("value");
  QTest::newRow("missing") << "run_id"
                           << "";
  QTest::newRow("negative") << "outer_step"
                            << "-1";
  QTest::newRow("too large") << "outer_step"
                             << "4294967296";
  QTest::newRow("text") << "max_rounds"
                        << "\"many\"";
  QTest::newRow("text for fragments") << "fragments"
                                      << "\"two\"";
  QTest::newRow("islands no list") << "islands"
                                   << "{}";
  QTest::newRow("rounds of numbers") << "rounds"
                                     << "[1]";
}

void ControlStateTest::a_state_with_a_wrong_field_names_it() {
  QFETCH(const QString, key);
  QFETCH(const QString, value);
  nlohmann::json json = example().to_json();
  if (value.isEmpty())
    json.erase(key.toStdString());
  else
    json[key.toStdString()] = nlohmann::json::parse(value.toStdString());

  const auto read = HubState::from_json(json);

  QVERIFY(!read.ok());
  QCOMPARE(read.error().code, ErrorCode::kProtocol);
  QVERIFY(QString::fromStdString(read.error().message).contains(key == "rounds" ? "round" : key));
}

void ControlStateTest::a_join_file_survives_the_round_trip() {
  const QTemporaryDir directory;
  const IslandHome home{directory.path().toStdString()};
  JoinFile join;
  join.run_id = "0123456789abcdef";
  join.hub_addresses = {{"hub.example.org", 47000}, {"2001:db8::1", 47001}};
  join.display_name = "under the desk";
  join.bind = {"127.0.0.1", 0};
  join.local_ranks = 2;
  join.micro_batch = 3;
  join.device = DeviceChoice::kGpu;
  join.precision = PrecisionChoice::kBf16;
  join.gpus = "0-3";
  join.region = "Oslo";

  QVERIFY(save_join_file(home.join_file(), join).ok());
  const auto read = load_join_file(home.join_file());

  QVERIFY2(read.ok(), read.ok() ? "" : read.error().message.c_str());
  QCOMPARE(read->to_json(), join.to_json());
  QCOMPARE(read->hub_addresses[1].host, std::string("2001:db8::1"));
  QCOMPARE(read->gpus, std::string("0-3"));
  QCOMPARE(read->micro_batch, 3);
  QCOMPARE(read->device, DeviceChoice::kGpu);
  QCOMPARE(read->precision, PrecisionChoice::kBf16);
  QCOMPARE(read->region, std::string("Oslo"));
  QCOMPARE(std::filesystem::status(home.join_file()).permissions(),
           std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
}

// tests/golden/disk/make.py
void ControlStateTest::a_join_file_is_written_as_before_and_one_of_before_is_read() {
  const std::filesystem::path golden = std::filesystem::path(ATOLL_TEST_DATA_DIR) / "disk";
  JoinFile join;
  join.run_id = "0123456789abcdef";
  join.run_name = "Riff \u00e4";
  join.display_name = "under the desk";
  join.hub_addresses = {{"hub.example.org", 47000}, {"2001:db8::1", 47001}};
  join.bind = {"127.0.0.1", 0};
  join.local_ranks = 2;
  join.micro_batch = 3;
  join.device = DeviceChoice::kGpu;
  join.precision = PrecisionChoice::kBf16;
  join.region = "Oslo";
  join.gpus = "0-3";

  QCOMPARE(join.to_json(), *read_file(golden / "join.json"));
  const auto first = load_join_file(golden / "join-first.json");
  QVERIFY2(first.ok(), first.ok() ? "" : first.error().message.c_str());
  QCOMPARE(first->advertised_host, std::string("reef.example.org"));
  QCOMPARE(first->threads, 4);
  QCOMPARE(first->gpus, std::string("all"));
  QCOMPARE(first->micro_batch, 0);
  QCOMPARE(first->device, DeviceChoice::kAuto);
  QCOMPARE(first->precision, PrecisionChoice::kAuto);
}

void ControlStateTest::a_join_file_that_names_no_gpus_means_all() {
  JoinFile join;
  join.gpus = "none";
  auto json = nlohmann::json::parse(join.to_json());
  json.erase("gpus");
  json.erase("micro_batch");

  QCOMPARE(JoinFile::from_json(json.dump())->gpus, std::string("all"));
  QCOMPARE(JoinFile::from_json(json.dump())->micro_batch, 0);  // the trainer's choice
}

void ControlStateTest::a_home_without_a_join_file_has_not_joined() {
  const auto read = load_join_file("/no/such/home/join.json");

  QCOMPARE(read.error().code, ErrorCode::kNotJoined);
  QVERIFY(read.error().message.find("atoll join") != std::string::npos);
}

void ControlStateTest::a_join_file_of_another_version_is_refused() {
  auto json = nlohmann::json::parse(JoinFile{}.to_json());
  json["version"] = 2;

  QCOMPARE(JoinFile::from_json(json.dump()).error().code, ErrorCode::kVersionUnsupported);
}

void ControlStateTest::the_environment_chooses_the_home() {
  qputenv("HOME", "/home/somebody");
  qputenv("XDG_DATA_HOME", "");
  qunsetenv("ATOLL_HOME");
  QCOMPARE(default_island_home()->string(), std::string("/home/somebody/.local/share/atoll"));
  qputenv("XDG_DATA_HOME", "relative/is/ignored");
  QCOMPARE(default_hub_home()->string(), std::string("/home/somebody/.local/share/atoll-hub"));
  qputenv("XDG_DATA_HOME", "/data");
  QCOMPARE(default_island_home()->string(), std::string("/data/atoll"));
  qputenv("ATOLL_HOME", "/chosen");
  QCOMPARE(default_island_home()->string(), std::string("/chosen"));
}

QTEST_APPLESS_MAIN(ControlStateTest)
#include "control_state_test.moc"
