// Looking at an invite, joining and giving it up, through an agent's control socket: a real hub, and a trainer that is
// a script beside a control socket which the test serves.
#include <sys/stat.h>

#include <QTemporaryDir>
#include <QtTest>
#include <atomic>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "app/agent/agent.h"
#include "net/base/file.h"
#include "net/control/control_client.h"
#include "net/control/control_server.h"
#include "net/control/island_state.h"
#include "net/transport/socket.h"
#include "net/wire/invite.h"
#include "tests/net/hub/loopback_hub.h"

using namespace atl;
using namespace std::chrono_literals;

namespace {

constexpr std::chrono::seconds kLimit{60};  // for anything; a hang, not a slow machine

CheckReport report_of(Verdict verdict) {
  CheckRow row;
  row.id = "ram";
  row.verdict = verdict;
  row.text = "64 GB";
  row.fix = "buy more";
  CheckReport report;
  report.rows.push_back(row);
  return report;
}

// What a trainer serves.
class FakeTrainer final : public ControlService {
 public:
  explicit FakeTrainer(std::string run) : run_(std::move(run)) {}
  Result<nlohmann::json> call(std::string_view method, const nlohmann::json&) override {
    if (method == "stop") stopped = true;
    return state("joining", 0);
  }
  nlohmann::json state(const char* word, std::uint64_t tokens) const {
    IslandState state;
    state.state = parse_word<IslandPhase>(word);
    state.run_id = run_;
    state.tokens = tokens;
    return state.to_json();
  }
  std::atomic<bool> stopped{false};

 private:
  const std::string run_;
};

class Fixture {
 public:
  explicit Fixture(CheckTask::Check check = {}) {
    std::ofstream(path("trainer.sh")) << "#!/bin/sh\nexec sleep 600\n";
    ::chmod(path("trainer.sh").c_str(), 0755);
    AgentOptions options;
    options.home = home();
    options.trainer = path("trainer.sh");
    options.supervisor.end_within = std::chrono::seconds(1);
    options.check_node = std::move(check);
    auto agent = Agent::start(std::move(options));
    if (!agent.ok()) qFatal("%s", agent.error().message.c_str());
    agent_ = std::move(*agent);
    thread_ = std::thread([this] { (void)agent_->run(ending_); });
    auto client = ControlClient::connect(home().socket, Deadline::after(kLimit));
    if (!client.ok()) qFatal("%s", client.error().message.c_str());
    client_ = std::move(*client);
    (void)must("events.subscribe", nlohmann::json::object());
  }
  ~Fixture() {
    ending_.raise("the test is over");
    thread_.join();
  }

  std::filesystem::path path(const std::string& name) const {
    return std::filesystem::path(directory_.path().toStdString()) / name;
  }
  AgentHome home() const { return agent_home_in(path("")); }
  Result<nlohmann::json> call(const char* method, const nlohmann::json& params = nlohmann::json::object()) {
    return client_->call(method, params, Deadline::after(kLimit));
  }
  nlohmann::json must(const char* method, const nlohmann::json& params = nlohmann::json::object()) {
    const auto answer = call(method, params);
    if (!answer.ok()) qFatal("%s: %s", method, answer.error().message.c_str());
    return *answer;
  }
  // What came of the one before is told a moment before that is over.
  void join_again(const nlohmann::json& params) {
    const Deadline deadline = Deadline::after(kLimit);
    while (!call("join", params).ok() && !deadline.expired()) std::this_thread::sleep_for(5ms);
  }
  // The data of the next event of that name for which `holds`. Stages on the way are kept.
  nlohmann::json await(const std::string& name, const std::function<bool(const nlohmann::json&)>& holds = {}) {
    const Deadline deadline = Deadline::after(kLimit);
    for (;;) {
      const auto event = client_->next_event(deadline);
      if (!event.ok()) qFatal("no %s: %s; stages: %s", name.c_str(), event.error().message.c_str(), stages.c_str());
      all += event->dump() + "\n";
      const nlohmann::json& data = (*event)["data"];
      if ((*event)["event"] == "join.progress") {
        stages += data["stage"].get<std::string>() + ":" + data["status"].get<std::string>() + " ";
      }
      if ((*event)["event"] == name && (!holds || holds(data))) return data;
    }
  }
  nlohmann::json await_stage(const std::string& stage, const std::string& status) {
    return await("join.progress",
                 [&](const nlohmann::json& data) { return data["stage"] == stage && data["status"] == status; });
  }
  bool has_join_file() const { return std::filesystem::exists(home().island.join_file()); }
  bool has_left_file() const { return std::filesystem::exists(home().island.left_file()); }

  std::string stages, all;

 private:
  QTemporaryDir directory_;
  AbortSignal ending_;
  std::unique_ptr<Agent> agent_;
  std::thread thread_;
  std::unique_ptr<ControlClient> client_;
};

std::string invite_text(const LoopbackHub& hub) { return create_invite(hub.directory(), {}).value().text; }

// Of this hub's run, with what the test changes.
template <class Change>
std::string changed_invite(const LoopbackHub& hub, Change change) {
  Invite invite = decode_invite(invite_text(hub), std::chrono::sys_seconds{}).value();
  change(invite);
  return encode_invite(invite).value();
}

}  // namespace

class JoiningTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void a_look_tells_which_run_the_invite_is_for_and_costs_no_use();
  void a_look_tells_apart_what_is_wrong_data();
  void a_look_tells_apart_what_is_wrong();
  void a_new_look_takes_the_place_of_the_one_under_way();
  void each_stage_is_told_until_the_first_step();
  void a_machine_is_checked_for_what_it_is_to_compute_on();
  void a_machine_that_fails_its_check_fails_that_stage_and_uses_no_invite();
  void cancelled_before_the_enrolment_it_leaves_nothing();
  void cancelled_while_the_trainer_comes_it_leaves_a_membership_to_come_back_to();
  void there_is_nothing_to_cancel_without_a_joining_and_after_the_first_step();
  void another_run_is_left_once_the_hub_has_granted_the_enrolment();
  void a_run_that_is_not_left_goes_on();
  void what_a_failed_trainer_was_to_compute_on_is_not_remembered();
  void no_event_holds_the_invite();
};

void JoiningTest::a_look_tells_which_run_the_invite_is_for_and_costs_no_use() {
  const LoopbackHub hub(loopback_run(1, 0), kIslandCertificateLifetime, "Ada");
  const std::string text = invite_text(hub);
  const Invite invite = decode_invite(text, std::chrono::sys_seconds{}).value();
  Fixture f;

  QVERIFY(f.must("invite.look", {{"invite", text}})["started"].get<bool>());
  const nlohmann::json looked = f.await("invite.looked");
  (void)f.must("join", {{"invite", text}, {"listen", "127.0.0.1:0"}});

  QCOMPARE(looked["ok"].get<bool>(), true);
  QCOMPARE(looked["invite"].get<std::string>(), invite.id);
  QCOMPARE(looked["address"].get<std::string>(), to_string(hub.address()));
  QCOMPARE(looked["run_id"].get<std::string>(), hub.run().run_id);
  QCOMPARE(looked["run_name"].get<std::string>(), std::string("loopback"));
  QCOMPARE(looked["operator"].get<std::string>(), std::string("Ada"));
  QCOMPARE(looked["pin"].get<std::string>(), to_hex(invite.authority_pin));
  QVERIFY(f.await("join.done")["ok"].get<bool>());
}

void JoiningTest::a_look_tells_apart_what_is_wrong_data() {
  QTest::addColumn<QString>("what");
  QTest::addColumn<QString>("code");
  QTest::newRow("another authority") << "pin"
                                     << "pin_mismatch";
  QTest::newRow("hub down") << "down"
                            << "unreachable";
  QTest::newRow("expired") << "expired"
                           << "invite_expired";
  QTest::newRow("malformed") << "malformed"
                             << "invite_malformed";
}

void JoiningTest::a_look_tells_apart_what_is_wrong() {
  QFETCH(const QString, what);
  QFETCH(const QString, code);
  LoopbackHub hub(loopback_run(1, 0));
  std::string text = changed_invite(hub, [&](Invite& invite) {
    if (what == "pin") invite.authority_pin[0] ^= std::byte{1};
    if (what == "expired") invite.expires = std::chrono::sys_seconds(1s);
  });
  if (what == "malformed") text = "atoll1.AAAA.00000000";
  if (what == "down") hub.stop();
  Fixture f;

  const auto answer = f.call("invite.look", {{"invite", text}});

  if (what == "expired" || what == "malformed") {  // found out offline
    QVERIFY(!answer.ok());
    QCOMPARE(QString::fromStdString(std::string(to_string(answer.error().code))), code);
    return;
  }
  QVERIFY(answer.ok());
  const nlohmann::json looked = f.await("invite.looked");
  QCOMPARE(looked["ok"].get<bool>(), false);
  QCOMPARE(QString::fromStdString(looked["code"].get<std::string>()), code);
  QVERIFY(!looked["message"].get<std::string>().empty());
}

void JoiningTest::a_new_look_takes_the_place_of_the_one_under_way() {
  const LoopbackHub hub(loopback_run(1, 0));
  const UniqueFd silent = listen_tcp({"127.0.0.1", 0}).value();  // connects, and says nothing
  const std::string slow = changed_invite(hub, [&](Invite& invite) {
    invite.hub = {{"127.0.0.1", local_port(silent.get())}};
  });
  const std::string good = invite_text(hub);
  const std::string good_id = decode_invite(good, std::chrono::sys_seconds{}).value().id;
  Fixture f;

  (void)f.must("invite.look", {{"invite", slow}});
  (void)f.must("invite.look", {{"invite", good}});

  const nlohmann::json looked = f.await("invite.looked");
  QCOMPARE(looked["invite"].get<std::string>(), good_id);
  QCOMPARE(looked["ok"].get<bool>(), true);
}

void JoiningTest::each_stage_is_told_until_the_first_step() {
  const LoopbackHub hub(loopback_run(1, 0));
  Fixture f(
      [](const CheckTask::Wanted&, const AbortSignal&, const CheckTask::OnRow&) { return report_of(Verdict::kPass); });
  FakeTrainer service(hub.run().run_id);
  std::filesystem::create_directories(f.home().island.directory);
  const auto trainer = ControlServer::start(f.home().island.control_socket(), "atoll-trainer", service);
  QVERIFY(trainer.ok());

  (void)f.must("join", {{"invite", invite_text(hub)}, {"listen", "127.0.0.1:0"}});
  QVERIFY(f.await("join.done")["ok"].get<bool>());
  QCOMPARE(f.stages, std::string("check:running check:done key:running key:done enrol:running enrol:done "
                                 "check:running check:done trainer:running "));
  f.await_stage("data", "running");
  (*trainer)->publish("transfer", {{"what", "data"},
                                   {"status", "running"},
                                   {"done_bytes", 5},
                                   {"total_bytes", 10},
                                   {"bytes_per_second", 2.5},
                                   {"seconds_left", 2.0}});
  const nlohmann::json data =
      f.await("join.progress", [](const nlohmann::json& d) { return d.contains("done_bytes"); });
  (*trainer)->publish("transfer", {{"what", "data"}, {"status", "done"}, {"done_bytes", 10}, {"total_bytes", 10}});
  f.await_stage("data", "done");
  (*trainer)->publish("step", service.state("training", 4096));
  f.await_stage("first_step", "done");

  QCOMPARE(data["stage"].get<std::string>(), std::string("data"));
  QCOMPARE(data["seconds_left"].get<double>(), 2.0);
  QVERIFY2(QString::fromStdString(f.stages).endsWith("data:done state:done first_step:done "), f.stages.c_str());
}

// The check is asked before there is a join file, and after.
void JoiningTest::a_machine_is_checked_for_what_it_is_to_compute_on() {
  const LoopbackHub hub(loopback_run(1, 0));
  std::vector<std::optional<DeviceChoice>> devices;
  Fixture f([&](const CheckTask::Wanted& wanted, const AbortSignal&, const CheckTask::OnRow&) {
    devices.push_back(wanted.device);
    return report_of(Verdict::kPass);
  });

  (void)f.must("join", {{"invite", invite_text(hub)}, {"listen", "127.0.0.1:0"}, {"device", "gpu"}});
  QVERIFY(f.await("join.done")["ok"].get<bool>());

  QVERIFY((devices == std::vector<std::optional<DeviceChoice>>{DeviceChoice::kGpu, DeviceChoice::kGpu}));
}

void JoiningTest::a_machine_that_fails_its_check_fails_that_stage_and_uses_no_invite() {
  const LoopbackHub hub(loopback_run(1, 0));
  Fixture f(
      [](const CheckTask::Wanted&, const AbortSignal&, const CheckTask::OnRow&) { return report_of(Verdict::kFail); });
  const std::string text = invite_text(hub);

  (void)f.must("join", {{"invite", text}, {"listen", "127.0.0.1:0"}});
  const nlohmann::json done = f.await("join.done");

  QCOMPARE(done["code"].get<std::string>(), std::string("permission_denied"));
  QCOMPARE(f.stages, std::string("check:running check:failed "));
  QVERIFY(!f.has_join_file() && !f.has_left_file());
  Fixture other;
  (void)other.must("join", {{"invite", text}, {"listen", "127.0.0.1:0"}});
  QVERIFY(other.await("join.done")["ok"].get<bool>());
}

void JoiningTest::cancelled_before_the_enrolment_it_leaves_nothing() {
  const LoopbackHub hub(loopback_run(1, 0));
  std::atomic<bool> checks{false};
  Fixture f([&](const CheckTask::Wanted&, const AbortSignal& abort, const CheckTask::OnRow&) -> Result<CheckReport> {
    checks = true;
    while (!abort.raised()) std::this_thread::sleep_for(5ms);
    return Error{ErrorCode::kAborted, abort.reason()};
  });
  const std::string text = invite_text(hub);
  (void)f.must("join", {{"invite", text}, {"listen", "127.0.0.1:0"}});
  QTRY_VERIFY_WITH_TIMEOUT(checks.load(), 20'000);

  QVERIFY(f.must("join.cancel")["cancelled"].get<bool>());
  const nlohmann::json done = f.await("join.done");

  QCOMPARE(done["ok"].get<bool>(), false);
  QCOMPARE(done["code"].get<std::string>(), std::string("aborted"));
  QCOMPARE(f.stages, std::string("check:running check:failed "));
  QVERIFY(!f.has_join_file() && !f.has_left_file());
  Fixture other;
  (void)other.must("join", {{"invite", text}, {"listen", "127.0.0.1:0"}});
  QVERIFY(other.await("join.done")["ok"].get<bool>());  // no use was lost
}

void JoiningTest::cancelled_while_the_trainer_comes_it_leaves_a_membership_to_come_back_to() {
  const LoopbackHub hub(loopback_run(1, 0));
  Fixture f;
  FakeTrainer service(hub.run().run_id);
  const auto trainer = ControlServer::start(f.home().island.control_socket(), "atoll-trainer", service);
  QVERIFY(trainer.ok());
  (void)f.must("join", {{"invite", invite_text(hub)}, {"listen", "127.0.0.1:0"}});
  f.await_stage("data", "running");
  f.stages.clear();

  QVERIFY(f.must("join.cancel")["cancelled"].get<bool>());

  QCOMPARE(f.await_stage("data", "failed")["text"].get<std::string>(), std::string("the joining was cancelled"));
  QVERIFY(!f.has_join_file() && f.has_left_file());
  const auto state = [&] { return f.must("state.get"); };
  QTRY_VERIFY_WITH_TIMEOUT(state()["agent"]["trainer_pid"] == 0 && state()["state"] == "unjoined", 30'000);
  QVERIFY(service.stopped);                        // it was asked, not killed
  (void)f.must("join", nlohmann::json::object());  // without an invite
  QVERIFY(f.await("join.done")["ok"].get<bool>());
  QVERIFY(f.has_join_file());
}

void JoiningTest::there_is_nothing_to_cancel_without_a_joining_and_after_the_first_step() {
  const LoopbackHub hub(loopback_run(1, 0));
  Fixture f;
  QCOMPARE(f.must("join.cancel")["cancelled"].get<bool>(), false);
  FakeTrainer service(hub.run().run_id);
  const auto trainer = ControlServer::start(f.home().island.control_socket(), "atoll-trainer", service);
  QVERIFY(trainer.ok());
  (void)f.must("join", {{"invite", invite_text(hub)}, {"listen", "127.0.0.1:0"}});
  f.await_stage("data", "running");
  (*trainer)->publish("step", service.state("training", 4096));
  f.await_stage("first_step", "done");

  QCOMPARE(f.must("join.cancel")["cancelled"].get<bool>(), false);

  QVERIFY(f.has_join_file());
}

void JoiningTest::another_run_is_left_once_the_hub_has_granted_the_enrolment() {
  const LoopbackHub first(loopback_run(1, 0)), second(loopback_run(1, 0));
  Fixture f;
  FakeTrainer service(first.run().run_id);
  auto trainer = ControlServer::start(f.home().island.control_socket(), "atoll-trainer", service);
  QVERIFY(trainer.ok());
  (void)f.must("join", {{"invite", invite_text(first)}, {"listen", "127.0.0.1:0"}});
  f.await_stage("data", "running");
  std::filesystem::create_directories(f.home().island.checkpoint());

  f.join_again({{"invite", invite_text(second)}, {"listen", "127.0.0.1:0"}, {"leave", true}});
  const nlohmann::json done = f.await("join.done");

  QVERIFY2(done["ok"].get<bool>(), done.dump().c_str());
  QVERIFY(service.stopped);
  QCOMPARE(load_join_file(f.home().island.join_file())->run_id, second.run().run_id);
  QVERIFY(std::filesystem::exists(f.home().island.checkpoint_of(first.run().run_id)));
  QTRY_VERIFY_WITH_TIMEOUT(f.must("state.get")["agent"]["trainer_pid"] != 0, 30'000);
}

void JoiningTest::a_run_that_is_not_left_goes_on() {
  const LoopbackHub first(loopback_run(1, 0));
  LoopbackHub second(loopback_run(1, 0));
  const std::string text = invite_text(second);
  Fixture f;
  (void)f.must("join", {{"invite", invite_text(first)}, {"listen", "127.0.0.1:0"}});
  QVERIFY(f.await("join.done")["ok"].get<bool>());

  f.join_again({{"invite", text}});
  const nlohmann::json refused = f.await("join.done");
  second.stop();
  f.join_again({{"invite", text}, {"leave", true}});
  const nlohmann::json unreached = f.await("join.done");

  QCOMPARE(refused["code"].get<std::string>(), std::string("invite_other_run"));
  QVERIFY(refused["message"].get<std::string>().find("--yes") != std::string::npos);
  QCOMPARE(unreached["code"].get<std::string>(), std::string("unreachable"));
  QCOMPARE(load_join_file(f.home().island.join_file())->run_id, first.run().run_id);
  QTRY_VERIFY_WITH_TIMEOUT(f.must("state.get")["agent"]["trainer_pid"] != 0, 30'000);
  QCOMPARE(f.must("state.get")["agent"]["wish"].get<std::string>(), std::string("run"));
}

void JoiningTest::what_a_failed_trainer_was_to_compute_on_is_not_remembered() {
  const LoopbackHub hub(loopback_run(1, 0));
  Fixture f;
  std::ofstream(f.path("trainer.sh")) << "#!/bin/sh\nexit 1\n";
  (void)f.must("join", {{"invite", invite_text(hub)}, {"listen", "127.0.0.1:0"}, {"device", "gpu"}});
  QVERIFY(f.await("join.done")["ok"].get<bool>());
  f.await_stage("trainer", "failed");

  f.join_again(nlohmann::json::object());
  QVERIFY(f.await("join.done")["ok"].get<bool>());

  QCOMPARE(load_join_file(f.home().island.join_file())->device, DeviceChoice::kAuto);
}

void JoiningTest::no_event_holds_the_invite() {
  const LoopbackHub hub(loopback_run(1, 0));
  const std::string text = invite_text(hub);
  const std::string secret = text.substr(text.size() - 60, 40);  // the payload ends with secret and expiry
  Fixture f;

  (void)f.must("invite.look", {{"invite", text}});
  (void)f.await("invite.looked");
  (void)f.must("join", {{"invite", text}, {"listen", "127.0.0.1:0"}});
  (void)f.await("join.done");

  QVERIFY(f.all.find(secret) == std::string::npos);
  QVERIFY(f.all.find("atoll1.") == std::string::npos);
}

QTEST_GUILESS_MAIN(JoiningTest)
#include "joining_test.moc"
