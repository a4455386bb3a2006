// What a machine's GPUs are taken for by CUDA's answers, without a GPU (fake_cuda_runtime.h).
#include "trainer/device/gpus.h"

#include <QtTest>

#include <cstdlib>

#include "tests/fakes/fake_cuda_runtime.h"
#include "trainer/device/gpu_look.h"

namespace {

using namespace atl;
using namespace atl::test;

bool contains(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

}  // namespace

class GpusTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void init() { ::unsetenv("CUDA_VISIBLE_DEVICES"); }  // these GPUs are the fake's

  void those_that_answer_are_usable() {
    FakeCuda cuda({.gpus = 2, .gpu_bytes = 1000});

    const GpuLook look = gpus_of_machine()->look();

    QCOMPARE(look.usable.size(), std::size_t{2});
    QCOMPARE(look.usable[1].ordinal, 1);
    QCOMPARE(look.usable[1].name, std::string("Fake GPU"));
    QCOMPARE(look.usable[1].free_bytes, std::uint64_t{1000});
    QVERIFY(!look.amiss && look.why.empty());
  }

  void a_card_that_fails_costs_itself_alone() {
    FakeCuda cuda({.gpus = 3});
    cuda.fail("cudaGetDeviceProperties", 2, cudaErrorIllegalAddress);

    const GpuLook look = gpus_of_machine()->look();

    QCOMPARE(look.usable.size(), std::size_t{2});
    QCOMPARE(look.usable[1].ordinal, 2);
    QVERIFY(look.amiss);
    QVERIFY2(contains(look.why, "GPU 1"), look.why.c_str());
  }

  void an_old_driver_is_amiss_and_none_is_not_data();
  void an_old_driver_is_amiss_and_none_is_not();

  void gpus_that_were_named_and_are_not_there_are_told() {
    FakeCuda cuda({.gpus = 1});
    cuda.fail("cudaGetDeviceCount", 1, cudaErrorNoDevice);
    ::setenv("CUDA_VISIBLE_DEVICES", "5", 1);

    const GpuLook look = gpus_of_machine()->look();

    QVERIFY(look.usable.empty());
    QVERIFY2(contains(look.why, "CUDA_VISIBLE_DEVICES=5"), look.why.c_str());
    QCOMPARE(look.amiss, kernel_has_driver());
  }

  // A driver that hangs does so only for whoever asks it.
  void who_may_use_none_asks_nothing() {
    ::setenv("CUDA_VISIBLE_DEVICES", "", 1);  // a call of CUDA would abort: there is no fake

    const GpuLook look = gpus_of_machine()->look();

    QVERIFY(look.usable.empty() && !look.amiss);
    QVERIFY2(contains(look.why, "island.gpus"), look.why.c_str());
  }
};

void GpusTest::an_old_driver_is_amiss_and_none_is_not_data() {
  QTest::addColumn<int>("error");
  QTest::addColumn<int>("driver");
  QTest::addColumn<bool>("amiss");  // where the kernel has no driver
  QTest::addColumn<QByteArray>("says");
  QTest::newRow("too old") << int{cudaErrorInsufficientDriver} << 12020 << true
                           << QByteArray("CUDA 12.2 and is too old");
  QTest::newRow("no driver") << int{cudaErrorInsufficientDriver} << 0 << false << QByteArray("no NVIDIA driver");
  QTest::newRow("a toolkit's stub") << int{cudaErrorStubLibrary} << 0 << false << QByteArray("no NVIDIA driver");
  QTest::newRow("a driver, and no card") << int{cudaErrorNoDevice} << 13000 << false << QByteArray("has no GPU");
  QTest::newRow("a driver's library alone")
      << int{cudaErrorInitializationError} << 13000 << false << QByteArray("nvidia-smi");
}

void GpusTest::an_old_driver_is_amiss_and_none_is_not() {
  QFETCH(const int, error);
  QFETCH(const int, driver);
  QFETCH(const bool, amiss);
  QFETCH(const QByteArray, says);
  if (kernel_has_driver()) QSKIP("this machine has a driver, so that others' are taken for amiss");
  FakeCuda cuda({.gpus = 0, .driver = driver});
  cuda.fail("cudaGetDeviceCount", 1, static_cast<cudaError_t>(error));

  const GpuLook look = gpus_of_machine()->look();

  QVERIFY(look.usable.empty());
  QCOMPARE(look.amiss, amiss);
  QVERIFY2(contains(look.why, says.constData()), look.why.c_str());
}

QTEST_APPLESS_MAIN(GpusTest)
#include "gpus_test.moc"
