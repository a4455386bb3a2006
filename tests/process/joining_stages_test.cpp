// From an invite to the first inner step through an agent, with real processes: what a person watches on the way, and
// what the island tells once it trains.
#include <QProcess>
#include <QtTest>
#include <algorithm>
#include <map>
#include <set>

#include "net/control/control_client.h"
#include "tests/process/agent_service.h"
#include "tests/process/local_run.h"

using namespace atl;
using namespace atl::test;

namespace {

class Events {
 public:
  explicit Events(const std::filesystem::path& socket) {
    const auto connects = [&] {
      auto client = ControlClient::connect(socket, Deadline::after(std::chrono::seconds(60)));
      if (client.ok()) client_ = std::move(*client);
      return client.ok();
    };
    if (!wait_for(connects)) qFatal("the agent does not answer");
    (void)call("events.subscribe");
  }
  nlohmann::json call(const char* method, const nlohmann::json& params = nlohmann::json::object()) {
    return require(client_->call(method, params, Deadline::after(std::chrono::seconds(60))));
  }
  // Until an event of that name comes for which `holds`; each on the way is given to `see`.
  nlohmann::json await(const std::string& name, const std::function<bool(const nlohmann::json&)>& holds,
                       const std::function<void(const std::string&, const nlohmann::json&)>& see = {}) {
    const Deadline deadline = Deadline::after(kAgentLimit);
    for (;;) {
      const nlohmann::json event = require(client_->next_event(deadline));
      const std::string is = event["event"].get<std::string>();
      if (see) see(is, event["data"]);
      if (is == name && holds(event["data"])) return event["data"];
    }
  }

 private:
  std::unique_ptr<ControlClient> client_;
};

}  // namespace

class JoiningStagesTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase();
  void cleanupTestCase();
  void each_stage_is_told_from_the_invite_to_the_first_step();
  void an_attempt_begins_with_its_ring();
  void what_is_known_is_in_the_state_and_in_the_history();
  void the_run_before_it_came_is_in_a_newcomers_history();

 private:
  std::unique_ptr<LocalRun> run_;
  std::vector<std::unique_ptr<QProcess>> peers_;
  std::unique_ptr<AgentService> service_;
  std::unique_ptr<Events> events_;
};

void JoiningStagesTest::initTestCase() {
  run_ = std::make_unique<LocalRun>(small_run(2));
  for (const char* name : {"reef", "cay"}) peers_.push_back(run_->start_island(name));
  QVERIFY(run_->wait_until([](const HubState& state) { return state.outer_step >= 1; }, kAgentLimit));
  const IslandHome home{run_->directory() / "islands" / "newcomer"};
  service_ = std::make_unique<AgentService>(home);
  events_ = std::make_unique<Events>(service_->home().socket);
}

void JoiningStagesTest::cleanupTestCase() {
  service_.reset();
  for (const auto& peer : peers_) peer->terminate();
  for (const auto& peer : peers_) peer->waitForFinished(120'000);
}

void JoiningStagesTest::each_stage_is_told_from_the_invite_to_the_first_step() {
  const std::string invite = require(encode_invite(run_->invite()));
  std::string stages;
  std::map<std::string, double> bytes;  // by stage, of its download
  const auto see = [&](const std::string& event, const nlohmann::json& data) {
    if (event != "join.progress") return;
    const std::string stage = data["stage"].get<std::string>();
    const std::string word = stage + ":" + data["status"].get<std::string>() + " ";
    if (!stages.ends_with(word)) stages += word;
    if (data.contains("total_bytes")) bytes[stage] = std::max(bytes[stage], data["total_bytes"].get<double>());
  };

  (void)events_->call("invite.look", {{"invite", invite}});
  const nlohmann::json looked = events_->await("invite.looked", [](const nlohmann::json&) { return true; });
  (void)events_->call("join", {{"invite", invite}, {"name", "newcomer"}, {"listen", "127.0.0.1:0"}, {"threads", 1u}});
  const nlohmann::json last = events_->await(
      "join.progress",
      [](const nlohmann::json& data) {
        return data["status"] == "failed" || (data["stage"] == "first_step" && data["status"] == "done");
      },
      see);

  QVERIFY2(last["status"] == "done", last.dump().c_str());
  QCOMPARE(looked["run_name"].get<std::string>(), std::string("test run"));
  QVERIFY(looked["parameters"].get<std::uint64_t>() > 0 && !looked["model"].get<std::string>().empty());
  // A round that is committed meanwhile may have it fetch the state again.
  QVERIFY2(stages.starts_with("check:running check:done key:running key:done enrol:running enrol:done check:running "
                              "check:done trainer:running trainer:done data:running data:done state:running ") &&
               stages.ends_with("first_step:done ") && stages.find(" state:done ") != std::string::npos,
           stages.c_str());
  QVERIFY2(bytes["data"] > 0 && bytes["state"] > 0, stages.c_str());
}

void JoiningStagesTest::an_attempt_begins_with_its_ring() {
  const nlohmann::json begin = events_->await("sync.phase", [](const nlohmann::json& data) {
    if (data.value("phase", "") != "begin" || data["ring"].size() != 3) return false;
    return std::all_of(data["ring"].begin(), data["ring"].end(),
                       [](const nlohmann::json& member) { return member["tokens"] > 0; });
  });

  std::set<std::string> names;
  for (const nlohmann::json& member : begin["ring"]) names.insert(member["name"].get<std::string>());
  QCOMPARE(names, (std::set<std::string>{"reef", "cay", "newcomer"}));
  QVERIFY(begin["round"].is_number_unsigned() && begin["attempt"].is_number_unsigned());
  QVERIFY(begin["ring"][0].contains("edge_bytes_per_second"));
}

void JoiningStagesTest::what_is_known_is_in_the_state_and_in_the_history() {
  const nlohmann::json state = service_->state();
  QVERIFY2(state["learning_rate"].is_number() && state["learning_rate"] > 0, state.dump().c_str());
  QVERIFY(state["gradient_norm"].is_number() && state["gradient_norm"] > 0);
  QVERIFY(state["disk_free_bytes"].is_number() && state["disk_free_bytes"] > 0);
  for (const char* metric : {"learning_rate", "gradient_norm"}) {
    const auto kept = [&] {
      const auto answer = service_->call("metrics.query", {{"name", metric}});
      return answer.ok() && !(*answer)["mean"].empty();
    };
    QVERIFY2(wait_for(kept), metric);
  }

  const nlohmann::json page = events_->call("logs.read", {{"limit", 1000}});

  const auto of = [&](const char* source) {
    const nlohmann::json& lines = page["lines"];
    return std::any_of(lines.begin(), lines.end(),
                       [&](const nlohmann::json& line) { return line["source"] == source; });
  };
  QVERIFY2(of("agent") && of("trainer"), page.dump().c_str());
}

void JoiningStagesTest::the_run_before_it_came_is_in_a_newcomers_history() {
  nlohmann::json listed, loss;
  const auto told = [&] {
    auto rounds = service_->call("rounds.list", {{"limit", 500u}, {"past", true}});
    auto mean = service_->call("metrics.query", {{"name", "run.mean_loss_nats"}, {"axis", "step"}});
    if (!rounds.ok() || !mean.ok() || (*rounds)["past"].empty() || (*rounds)["rounds"].empty()) return false;
    listed = std::move(*rounds);
    loss = std::move(*mean);
    return true;
  };
  QVERIFY(wait_for(told));

  QVERIFY2(listed["rounds"].back()["round"] > 0, listed.dump().c_str());
  QCOMPARE(listed["past"][0]["round"].get<int>(), 0);
  QVERIFY(listed["past"][0]["mean_loss_nats"] > 0);
  const double first_round = service_->state()["inner_steps"].get<double>();
  QVERIFY2(loss["step"][0].get<double>() < first_round, loss.dump().c_str());
}

QTEST_GUILESS_MAIN(JoiningStagesTest)
#include "joining_stages_test.moc"
