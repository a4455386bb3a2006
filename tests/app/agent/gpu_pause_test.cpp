// Which GPUs a trainer is started with, and how that changes while it runs: two cards of a fake driver.
#include <QtTest>
#include <fstream>
#include <nlohmann/json.hpp>

#include "app/agent/agent_config.h"
#include "app/agent/paused_gpus.h"
#include "app/config/gpu_list.h"
#include "net/base/file.h"
#include "net/control/control_client.h"
#include "tests/app/agent/ruled_agent.h"

using namespace atl;
using namespace atl::test;

namespace {

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// An agent whose trainer writes down which GPUs it may use, a line each time it is started.
class GpuAgent {
 public:
  explicit GpuAgent(DeviceChoice device = DeviceChoice::kGpu, const std::string& gpus = "all")
      : device_(device), gpus_(gpus) {
    start();
  }
  void start() {
    AgentOptions options;
    options.gpu_limits.probe = {.program = ATOLL_BIN_DIR "/atoll-gpu-probe", .nvml = FAKE_NVML_LIBRARY};
    const ConfigSources sources = config_sources(home());
    options.read_config = [sources] { return Config::load(sources); };
    agent_.emplace(files_, std::move(options), device_, gpus_,
                   "echo \"${CUDA_VISIBLE_DEVICES-as ours}\" >> \"$(dirname $0)/starts\"");
  }
  void end() { agent_.reset(); }

  std::vector<std::string> starts() const {
    std::ifstream file(files_.path("starts"));
    std::vector<std::string> lines;
    for (std::string line; std::getline(file, line);) lines.push_back(line);
    return lines;
  }
  Result<nlohmann::json> call(const char* method, const nlohmann::json& params) const {
    const Deadline deadline = Deadline::after(std::chrono::seconds(60));
    ATOLL_ASSIGN_OR_RETURN(const auto client, ControlClient::connect(home().socket, deadline));
    return client->call(method, params, deadline);
  }
  RuledAgent& agent() { return *agent_; }
  AgentHome home() const { return agent_home_in(files_.path("home")); }

 private:
  const DeviceChoice device_;
  const std::string gpus_;
  const Directory files_;
  std::optional<RuledAgent> agent_;
};

std::vector<std::string> lines(std::initializer_list<const char*> texts) { return {texts.begin(), texts.end()}; }

// All but some, as CUDA_VISIBLE_DEVICES.
std::string all_but(std::vector<unsigned> others) { return *GpuList{}.without(others).visible_devices(); }

}  // namespace

class GpuPauseTest : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void initTestCase() {
    qunsetenv("FAKE_NVML");
    qunsetenv("CUDA_VISIBLE_DEVICES");  // the agents pass on what they have, and their trainers compute nothing
  }
  void a_list_without_some_names_every_other_that_there_could_be();
  void pauses_survive_the_round_trip_and_end();
  void wrong_files_are_refused();
  void a_gpu_is_left_and_taken_back_while_the_trainer_runs();
  void a_pause_of_a_gpu_ends_by_itself_and_outlives_the_agent();
  void another_list_of_gpus_is_followed_at_once();
  void what_cannot_be_paused_says_why_data();
  void what_cannot_be_paused_says_why();
  void an_island_on_its_processor_has_no_gpu_to_pause();
};

void GpuPauseTest::a_list_without_some_names_every_other_that_there_could_be() {
  const GpuList some{std::vector<unsigned>{0, 2, 5}};
  QCOMPARE(some.without({2}).text(), std::string("0,5"));
  QCOMPARE(some.without({7}).text(), std::string("0,2,5"));
  QCOMPARE(some.without({0, 2, 5}).text(), std::string("none"));
  QCOMPARE(GpuList{}.without({}).text(), std::string("all"));
  QCOMPARE(GpuList{}.without({1, 4}).text(), std::string("0,2-3,5-63"));
}

void GpuPauseTest::pauses_survive_the_round_trip_and_end() {
  PausedGpus paused;
  paused.pause(5, {});
  paused.pause(1, 100);
  paused.pause(5, 200);

  QCOMPARE(
      nlohmann::json::parse(paused.to_json()).dump(),
      std::string(R"({"paused":[{"gpu":1,"until_unix_seconds":100},{"gpu":5,"until_unix_seconds":200}],"version":1})"));
  const auto read = PausedGpus::from_json(paused.to_json());

  QVERIFY(read.ok());
  QVERIFY(*read == paused);
  QCOMPARE(read->at(99).numbers(), (std::vector<unsigned>{1, 5}));
  QCOMPARE(read->at(100).numbers(), (std::vector<unsigned>{5}));
  QVERIFY(paused.resume(5) && !paused.resume(5));
  QVERIFY(load_paused_gpus("/no/such/paused_gpus.json")->pauses.empty());
}

void GpuPauseTest::wrong_files_are_refused() {
  for (const char* text :
       {"", "[]", R"({"version": 2, "paused": []})", R"({"version": 1})", R"({"version": 1, "paused": [{"gpu": 64}]})",
        R"({"version": 1, "paused": [{"gpu": -1}]})"}) {
    QVERIFY2(!PausedGpus::from_json(text).ok(), text);
  }
}

void GpuPauseTest::a_gpu_is_left_and_taken_back_while_the_trainer_runs() {
  GpuAgent island;
  QTRY_COMPARE_WITH_TIMEOUT(island.starts(), lines({"as ours"}), kRuleMilliseconds);

  const auto paused = island.call("gpu.pause", {{"gpu", 1}});

  QVERIFY2(paused.ok(), paused.ok() ? "" : paused.error().message.c_str());
  QCOMPARE((*paused)["gpus"].get<std::string>(), std::string("0"));
  QTRY_COMPARE_WITH_TIMEOUT(island.starts(), lines({"as ours", all_but({1}).c_str()}), kRuleMilliseconds);
  QTRY_VERIFY_WITH_TIMEOUT(island.agent().trains(), kRuleMilliseconds);
  const NodeState state = island.agent().state();
  QCOMPARE(state.agent.paused_gpus, (std::vector<GpuPause>{{1, {}}}));
  QCOMPARE(state.agent.wish, Wish::kRun);
  QCOMPARE(state.agent.restarts, std::uint64_t{0});  // nothing has failed
  // Who looks on sees it, too: so it can be taken back there.
  QTRY_COMPARE_WITH_TIMEOUT(island.agent().state().gpus.size(), std::size_t{2}, kRuleMilliseconds);

  QVERIFY(island.call("gpu.resume", {{"gpu", 1}}).ok());

  QTRY_COMPARE_WITH_TIMEOUT(island.starts(), lines({"as ours", all_but({1}).c_str(), "as ours"}), kRuleMilliseconds);
  QVERIFY(island.agent().state().agent.paused_gpus.empty());
}

void GpuPauseTest::a_pause_of_a_gpu_ends_by_itself_and_outlives_the_agent() {
  GpuAgent island;
  QTRY_COMPARE_WITH_TIMEOUT(island.starts().size(), std::size_t{1}, kRuleMilliseconds);
  QVERIFY(island.call("gpu.pause", {{"gpu", 0}}).ok());
  QTRY_COMPARE_WITH_TIMEOUT(island.starts().size(), std::size_t{2}, kRuleMilliseconds);
  island.end();

  island.start();

  QTRY_COMPARE_WITH_TIMEOUT(island.starts().size(), std::size_t{3}, kRuleMilliseconds);
  QCOMPARE(island.starts().back(), all_but({0}));
  QVERIFY(island.call("gpu.pause", {{"gpu", 0}, {"for_seconds", 1}}).ok());
  QTRY_COMPARE_WITH_TIMEOUT(island.starts().back(), std::string("as ours"), kRuleMilliseconds);
  QVERIFY(island.agent().state().agent.paused_gpus.empty());
}

void GpuPauseTest::another_list_of_gpus_is_followed_at_once() {
  GpuAgent island;
  QTRY_COMPARE_WITH_TIMEOUT(island.starts(), lines({"as ours"}), kRuleMilliseconds);

  QVERIFY(island.call("config.set", {{"key", "island.gpus"}, {"value", "1"}}).ok());

  QTRY_COMPARE_WITH_TIMEOUT(island.starts(), lines({"as ours", "1"}), kRuleMilliseconds);
  QCOMPARE(load_join_file(island.home().island.join_file())->gpus, std::string("1"));
  // What is set besides changes nothing of it.
  QVERIFY(island.call("config.set", {{"key", "rules.load"}, {"value", "5000"}}).ok());
  const auto missing = island.call("config.set", {{"key", "island.gpus"}, {"value", "0,7"}});
  QVERIFY(!missing.ok());
  QVERIFY2(contains(missing.error().message, "no GPU 7 (it has 2 GPUs, numbered from 0;"),
           missing.error().message.c_str());
  QVERIFY(island.call("config.set", {{"key", "island.gpus"}, {"value", nullptr}}).ok());
  QTRY_COMPARE_WITH_TIMEOUT(island.starts(), lines({"as ours", "1", "as ours"}), kRuleMilliseconds);
}

void GpuPauseTest::what_cannot_be_paused_says_why_data() {
  QTest::addColumn<QByteArray>("params");
  QTest::addColumn<QString>("says");
  QTest::newRow("not there") << QByteArray(R"({"gpu": 7})") << "this machine has no GPU 7 (it has 2 GPUs";
  QTest::newRow("beyond all") << QByteArray(R"({"gpu": 64})") << "a number from 0 to 63";
  QTest::newRow("none of the island's") << QByteArray(R"({"gpu": 1})") << "does not train on GPU 1 (it may use 0;";
  QTest::newRow("the last") << QByteArray(R"({"gpu": 0})") << "GPU 0 is the last that this island trains on";
  QTest::newRow("no number") << QByteArray(R"({"gpu": "one"})") << "gpu";
  QTest::newRow("none named") << QByteArray("{}") << "gpu";
  QTest::newRow("for no time") << QByteArray(R"({"gpu": 0, "for_seconds": 0})") << "for_seconds must be more than 0";
}

void GpuPauseTest::what_cannot_be_paused_says_why() {
  QFETCH(const QByteArray, params);
  QFETCH(const QString, says);
  GpuAgent island(DeviceChoice::kAuto, "0");

  const auto answer = island.call("gpu.pause", nlohmann::json::parse(params.toStdString()));

  QVERIFY(!answer.ok());
  QCOMPARE(answer.error().code, ErrorCode::kInvalidArgument);
  QVERIFY2(contains(answer.error().message, says.toStdString()), answer.error().message.c_str());
  QVERIFY(contains(island.call("gpu.resume", {{"gpu", 0}}).error().message, "GPU 0 is not paused"));
}

void GpuPauseTest::an_island_on_its_processor_has_no_gpu_to_pause() {
  GpuAgent island(DeviceChoice::kProcessor);

  const auto answer = island.call("gpu.pause", {{"gpu", 0}});

  QVERIFY(!answer.ok());
  QVERIFY2(contains(answer.error().message, "uses no GPU (island.device)"), answer.error().message.c_str());
}

QTEST_GUILESS_MAIN(GpuPauseTest)
#include "gpu_pause_test.moc"
