// The power that the owner allows the GPUs, on two cards of a fake driver whose figures are files.
#include "app/agent/gpu_guard.h"

#include <QTemporaryDir>
#include <QtTest>
#include <fstream>
#include <nlohmann/json.hpp>

#include "net/base/file.h"
#include "net/base/mutex.h"

using namespace atl;

namespace {

constexpr int kLimitMilliseconds = 60'000;  // for anything; a hang, not a slow machine

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

class Cards {
 public:
  Cards() { qputenv("FAKE_NVML_DIR", QByteArray::fromStdString(directory_.path().toStdString())); }

  std::filesystem::path path(const std::string& name) const {
    return std::filesystem::path(directory_.path().toStdString()) / name;
  }
  std::string watts(int card) const {
    const auto text = read_file(path("watts." + std::to_string(card)));
    return text.ok() ? *text : "as before";
  }
  bool has_power_file() const { return std::filesystem::exists(path("power")); }

  static GpuLimits limits(std::optional<double> watts) {
    return {{.program = ATOLL_BIN_DIR "/atoll-gpu-probe", .nvml = FAKE_NVML_LIBRARY}, watts};
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
  void power_is_limited_while_a_trainer_runs();
  void the_next_agent_restores_what_a_killed_one_limited();
  void another_limit_replaces_the_one_in_force();
  void a_limit_that_is_refused_is_a_warning_data();
  void a_limit_that_is_refused_is_a_warning();
};

void GpuGuardTest::power_is_limited_while_a_trainer_runs() {
  Cards cards;
  {
    GpuGuard guard = cards.guard(Cards::limits(300));
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

  { const GpuGuard guard = cards.guard(Cards::limits({})); }

  QCOMPARE(cards.watts(0), std::string("650"));
  QCOMPARE(cards.watts(1), std::string("as before"));  // it has its limit of before
  QVERIFY(!cards.has_power_file());
}

void GpuGuardTest::another_limit_replaces_the_one_in_force() {
  Cards cards;
  GpuGuard guard = cards.guard(Cards::limits(300));
  guard.set_training(GpuList{});
  QTRY_COMPARE_WITH_TIMEOUT(cards.watts(0), std::string("300"), kLimitMilliseconds);

  guard.set_power(400);
  QTRY_COMPARE_WITH_TIMEOUT(cards.watts(0), std::string("400"), kLimitMilliseconds);
  guard.set_power(std::nullopt);

  QTRY_COMPARE_WITH_TIMEOUT(cards.watts(0), std::string("700"), kLimitMilliseconds);
  QTRY_VERIFY_WITH_TIMEOUT(!cards.has_power_file(), kLimitMilliseconds);
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
  GpuGuard guard = cards.guard(Cards::limits(watts));

  guard.set_training(GpuList{});

  QTRY_VERIFY_WITH_TIMEOUT(!guard.warning().empty(), kLimitMilliseconds);
  QVERIFY2(contains(guard.warning(), says.toStdString()), guard.warning().c_str());
  QVERIFY(contains(guard.warning(), "Training goes on"));
  QTRY_COMPARE_WITH_TIMEOUT(cards.alerts().size(), std::size_t{1}, kLimitMilliseconds);
  QCOMPARE(cards.alerts().at(0)["kind"].get<std::string>(), std::string("power"));
}

QTEST_GUILESS_MAIN(GpuGuardTest)
#include "gpu_guard_test.moc"
