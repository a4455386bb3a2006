// The owner's limits on the GPUs, on two cards of a fake driver whose figures are files.
#include "app/agent/gpu_guard.h"

#include <QScopeGuard>
#include <QTemporaryDir>
#include <QtTest>
#include <fstream>
#include <nlohmann/json.hpp>

#include "app/agent/agent.h"
#include "net/base/file.h"
#include "net/base/mutex.h"
#include "net/control/control_client.h"

using namespace atl;
using namespace std::chrono_literals;

namespace {

constexpr int kLimitMilliseconds = 60'000;  // for anything; a hang, not a slow machine

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

class Cards {
 public:
  Cards() { qputenv("FAKE_NVML_DIR", QByteArray::fromStdString(directory_.path().toStdString())); }

  std::filesystem::path path(const std::string& name) const {
    return std::filesystem::path(directory_.path().toStdString()) / name;
  }
  void set_celsius(int celsius) const {
    if (!write_file_atomically(path("celsius"), std::to_string(celsius), FileMode::kPrivate).ok()) qFatal("no file");
  }
  std::string watts(int card) const {
    const auto text = read_file(path("watts." + std::to_string(card)));
    return text.ok() ? *text : "as before";
  }
  bool has_power_file() const { return std::filesystem::exists(path("power")); }

  GpuLimits limits(std::optional<double> watts, std::optional<double> celsius) const {
    return {{.program = ATOLL_BIN_DIR "/atoll-gpu-probe", .nvml = FAKE_NVML_LIBRARY}, watts, celsius, 20ms};
  }
  GpuGuard guard(const GpuLimits& limits) {
    return GpuGuard(limits, path("power"), [this](const event::GpuAlert& alert) {
      const MutexLock lock(mutex_);
      alerts_.push_back(data_of(alert));
    });
  }
  std::vector<nlohmann::json> alerts() {
    const MutexLock lock(mutex_);
    return alerts_;
  }

 private:
  QTemporaryDir directory_;
  Mutex mutex_;
  std::vector<nlohmann::json> alerts_ ATOLL_GUARDED_BY(mutex_);
};

}  // namespace

class GpuGuardTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void training_goes_on_well_below_the_cap();
  void power_is_limited_while_a_trainer_runs();
  void the_next_agent_restores_what_a_killed_one_limited();
  void a_limit_that_is_refused_is_a_warning_data();
  void a_limit_that_is_refused_is_a_warning();
  void heat_is_told_until_it_is_gone();
  void a_card_of_others_may_be_hot();
  void a_driver_that_cannot_be_asked_is_a_warning();
  void an_agent_pauses_its_trainer_while_it_is_hot();
};

void GpuGuardTest::training_goes_on_well_below_the_cap() {
  HeatWatch watch(80);

  QVERIFY(!watch.next(80) && !watch.too_hot());
  QVERIFY(watch.next(81) && watch.too_hot());
  QVERIFY(!watch.next(90) && !watch.next(75) && watch.too_hot());
  QVERIFY(watch.next(74) && !watch.too_hot());
}

void GpuGuardTest::power_is_limited_while_a_trainer_runs() {
  Cards cards;
  {
    GpuGuard guard = cards.guard(cards.limits(300, {}));
    guard.set_training(GpuList{std::vector<unsigned>{1}});
    QTRY_COMPARE_WITH_TIMEOUT(cards.watts(1), std::string("300"), kLimitMilliseconds);
    guard.set_training(std::nullopt);
    QTRY_COMPARE_WITH_TIMEOUT(cards.watts(1), std::string("700"), kLimitMilliseconds);
    guard.set_training(GpuList{});
    QTRY_COMPARE_WITH_TIMEOUT(cards.watts(0), std::string("300"), kLimitMilliseconds);
    QTRY_COMPARE_WITH_TIMEOUT(cards.watts(1), std::string("300"), kLimitMilliseconds);
    QVERIFY(cards.has_power_file());
    QVERIFY2(guard.warning().empty(), guard.warning().c_str());
  }

  QCOMPARE(cards.watts(0), std::string("700"));
  QCOMPARE(cards.watts(1), std::string("700"));
  QVERIFY(!cards.has_power_file());
  QVERIFY(cards.alerts().empty());
}

void GpuGuardTest::the_next_agent_restores_what_a_killed_one_limited() {
  Cards cards;
  std::ofstream(cards.path("watts.0")) << 300;
  std::ofstream(cards.path("power")) << "0=650\n1=700\nnonsense\n";

  { const GpuGuard guard = cards.guard(cards.limits({}, {})); }

  QCOMPARE(cards.watts(0), std::string("650"));
  QCOMPARE(cards.watts(1), std::string("as before"));  // it has its limit of before
  QVERIFY(!cards.has_power_file());
}

void GpuGuardTest::a_limit_that_is_refused_is_a_warning_data() {
  QTest::addColumn<double>("watts");
  QTest::addColumn<QString>("says");
  QTest::newRow("denied") << 300.0 << "GPU 0: Insufficient Permissions";
  QTest::newRow("too little") << 100.0 << "GPU 0: takes a power limit from 200 to 700 W, not 100 W";
}

void GpuGuardTest::a_limit_that_is_refused_is_a_warning() {
  QFETCH(const double, watts);
  QFETCH(const QString, says);
  Cards cards;
  std::ofstream(cards.path("denied")) << "yes";
  GpuGuard guard = cards.guard(cards.limits(watts, {}));

  guard.set_training(GpuList{});

  QTRY_VERIFY_WITH_TIMEOUT(!guard.warning().empty(), kLimitMilliseconds);
  QVERIFY2(contains(guard.warning(), says.toStdString()), guard.warning().c_str());
  QVERIFY(contains(guard.warning(), "Training goes on"));
  QTRY_COMPARE_WITH_TIMEOUT(cards.alerts().size(), std::size_t{1}, kLimitMilliseconds);
  QCOMPARE(cards.alerts().at(0)["kind"].get<std::string>(), std::string("power"));
  QVERIFY(!guard.too_hot());
}

void GpuGuardTest::heat_is_told_until_it_is_gone() {
  Cards cards;
  cards.set_celsius(70);
  GpuGuard guard = cards.guard(cards.limits({}, 80));
  guard.set_training(GpuList{});

  cards.set_celsius(81);
  QTRY_VERIFY_WITH_TIMEOUT(guard.too_hot(), kLimitMilliseconds);
  QVERIFY2(contains(guard.warning(), "GPU 1 is too hot (limits.gpu_temperature is 80 C)"), guard.warning().c_str());
  guard.set_training(std::nullopt);  // as the agent does then
  cards.set_celsius(74);
  QTRY_VERIFY_WITH_TIMEOUT(!guard.too_hot(), kLimitMilliseconds);

  QTRY_COMPARE_WITH_TIMEOUT(cards.alerts().size(), std::size_t{2}, kLimitMilliseconds);
  const auto alerts = cards.alerts();
  QCOMPARE(alerts[0].dump(),
           std::string(R"({"cap_celsius":80.0,"celsius":81.0,"gpu":1,"kind":"temperature","pauses":true})"));
  QCOMPARE(alerts[1]["pauses"].get<bool>(), false);
}

void GpuGuardTest::a_card_of_others_may_be_hot() {
  Cards cards;
  cards.set_celsius(99);
  GpuGuard guard = cards.guard(cards.limits(300, 80));

  guard.set_training(GpuList{std::vector<unsigned>{0}});

  QTRY_COMPARE_WITH_TIMEOUT(cards.watts(0), std::string("300"), kLimitMilliseconds);
  guard.set_training(GpuList{});
  QTRY_VERIFY_WITH_TIMEOUT(guard.too_hot(), kLimitMilliseconds);
  QTRY_COMPARE_WITH_TIMEOUT(cards.alerts().size(), std::size_t{1},
                            kLimitMilliseconds);  // of the second set of cards alone
}

void GpuGuardTest::a_driver_that_cannot_be_asked_is_a_warning() {
  Cards cards;
  GpuLimits limits = cards.limits({}, 80);
  limits.probe.nvml = "/nowhere/libnvidia-ml.so.1";
  GpuGuard guard = cards.guard(limits);

  guard.set_training(GpuList{});

  QTRY_VERIFY_WITH_TIMEOUT(contains(guard.warning(), "limits.gpu_temperature is not watched"), kLimitMilliseconds);
  QVERIFY(contains(guard.warning(), "/nowhere") && !guard.too_hot());
}

void GpuGuardTest::an_agent_pauses_its_trainer_while_it_is_hot() {
  Cards cards;
  cards.set_celsius(70);
  std::ofstream(cards.path("trainer.sh")) << "#!/bin/sh\nexec sleep 600\n";
  std::filesystem::permissions(cards.path("trainer.sh"), std::filesystem::perms::owner_all);
  AgentOptions options;
  options.home = agent_home_in(cards.path("home"));
  std::filesystem::create_directory(cards.path("home"));
  QVERIFY(save_join_file(options.home.island.join_file(), {}).ok());
  options.trainer = cards.path("trainer.sh");
  options.gpu_limits = cards.limits(300, 80);
  const auto agent = Agent::start(options);
  QVERIFY2(agent.ok(), agent.ok() ? "" : agent.error().message.c_str());
  AbortSignal end;
  const std::jthread loop([&] { (void)(*agent)->run(end); });
  const auto over = qScopeGuard([&] { end.raise("the test is over"); });
  const auto state = [&] { return (*agent)->control().board().state(); };
  const auto trains = [&] { return state().agent.trainer_pid > 0; };
  QTRY_VERIFY_WITH_TIMEOUT(trains(), kLimitMilliseconds);
  QTRY_COMPARE_WITH_TIMEOUT(cards.watts(1), std::string("300"), kLimitMilliseconds);

  cards.set_celsius(81);

  QTRY_VERIFY_WITH_TIMEOUT(!trains() && state().island.state == IslandPhase::kPaused, kLimitMilliseconds);
  QCOMPARE(state().agent.wish, Wish::kRun);
  QVERIFY(contains(state().agent.warning, "too hot"));
  QTRY_COMPARE_WITH_TIMEOUT(cards.watts(1), std::string("700"), kLimitMilliseconds);
  cards.set_celsius(60);
  QTRY_VERIFY_WITH_TIMEOUT(trains(), kLimitMilliseconds);
}

QTEST_GUILESS_MAIN(GpuGuardTest)
#include "gpu_guard_test.moc"
