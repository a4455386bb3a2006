// What the island's GPUs do, asked of two cards of a fake driver.
#include "app/agent/gpu_sampler.h"

#include <QtTest>

#include "net/base/mutex.h"

using namespace atl;
using namespace std::chrono_literals;

namespace {

constexpr int kLimitMilliseconds = 60'000;  // for anything; a hang, not a slow machine

class Samples {
 public:
  GpuSampler sampler(const std::string& nvml = FAKE_NVML_LIBRARY) {
    return GpuSampler({.program = ATOLL_BIN_DIR "/atoll-gpu-probe", .nvml = nvml}, 20ms,
                      [this](const std::vector<GpuReading>& gpus) {
                        const MutexLock lock(mutex_);
                        all_.push_back(gpus);
                      });
  }
  std::size_t count() const {
    const MutexLock lock(mutex_);
    return all_.size();
  }
  std::vector<GpuReading> last() const {
    const MutexLock lock(mutex_);
    return all_.back();
  }

 private:
  mutable Mutex mutex_;
  std::vector<std::vector<GpuReading>> all_ ATOLL_GUARDED_BY(mutex_);
};

}  // namespace

class GpuSamplerTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase() { qunsetenv("FAKE_NVML"); }
  void cards_are_asked_while_they_are_watched();
  void only_the_cards_that_are_watched_are_told();
  void a_machine_without_gpus_is_not_asked_again_and_again();
};

void GpuSamplerTest::cards_are_asked_while_they_are_watched() {
  Samples samples;
  GpuSampler sampler = samples.sampler();
  QTest::qWait(200);
  QCOMPARE(samples.count(), std::size_t{0});

  sampler.watch(GpuList{});
  QTRY_VERIFY_WITH_TIMEOUT(samples.count() >= 3, kLimitMilliseconds);
  sampler.watch(std::nullopt);

  const std::vector<GpuReading> gpus = samples.last();
  QCOMPARE(gpus.size(), std::size_t{2});
  QCOMPARE(*gpus[0].now.utilisation, 0.07);
  QCOMPARE(gpus[0].now.name, std::string("NVIDIA H100 80GB HBM3"));
  QCOMPARE(gpus[1].now.index, 1u);
  QCOMPARE(gpus[1].now.throttling, std::string("heat"));
  QTest::qWait(500);  // until the child is gone
  const std::size_t then = samples.count();
  QTest::qWait(300);
  QCOMPARE(samples.count(), then);
}

void GpuSamplerTest::only_the_cards_that_are_watched_are_told() {
  Samples samples;
  GpuSampler sampler = samples.sampler();

  sampler.watch(GpuList{std::vector<unsigned>{1}});

  QTRY_VERIFY_WITH_TIMEOUT(samples.count() >= 1, kLimitMilliseconds);
  QCOMPARE(samples.last().size(), std::size_t{1});
  QCOMPARE(samples.last()[0].now.index, 1u);
}

void GpuSamplerTest::a_machine_without_gpus_is_not_asked_again_and_again() {
  Samples samples;
  GpuSampler sampler = samples.sampler("/nowhere/libnvidia-ml.so.1");

  sampler.watch(GpuList{});
  QTRY_VERIFY_WITH_TIMEOUT(sampler.problem().find("/nowhere") != std::string::npos, kLimitMilliseconds);
  QTest::qWait(300);

  QCOMPARE(samples.count(), std::size_t{0});
}

QTEST_GUILESS_MAIN(GpuSamplerTest)
#include "gpu_sampler_test.moc"
