// What computes: GPUs, where there are any that can, or the processor; and what the owner is told.
#include "trainer/device/device_choice.h"

#include <QTemporaryDir>
#include <QtTest>
#include <atomic>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "net/base/deadline.h"
#include "tests/fakes/fake_gpus.h"
#include "tests/fakes/patience.h"
#include "trainer/device/gpu_look.h"

namespace {

using namespace atl;
using namespace atl::test;
using namespace std::chrono_literals;

constexpr std::uint64_t kGigabyte = 1'000'000'000;
const GpuLook kTwo{.usable = {fake_gpu(0, 70 * kGigabyte), fake_gpu(1, 70 * kGigabyte)}, .amiss = false, .why = {}};
const GpuLook kNone{.usable = {}, .amiss = false, .why = "this machine has no GPU"};
const GpuLook kOldDriver{.usable = {}, .amiss = true, .why = "the driver is too old"};

AskedGpu card(int ordinal, const char* name, std::uint64_t gigabytes, const char* trouble = "") {
  AskedGpu asked;
  asked.gpu = {ordinal, name, gigabytes * kGigabyte, gigabytes * kGigabyte};
  asked.trouble = trouble;
  return asked;
}

bool contains(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

const SlowGpus kPatient{.say = [](const std::string& text) { qFatal("said: %s", text.c_str()); }};

}  // namespace

class DeviceChoiceTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void tests_compute_on_the_processor();
  void gpus_compute_where_there_are_any_and_they_can();
  void the_processor_leaves_gpus_unasked();
  void without_gpus_the_processor_computes_without_a_word();
  void gpus_that_cannot_compute_are_told_and_replaced_data();
  void gpus_that_cannot_compute_are_told_and_replaced();
  void who_asked_for_gpus_gets_them_or_the_reason_data() { gpus_that_cannot_compute_are_told_and_replaced_data(); }
  void who_asked_for_gpus_gets_them_or_the_reason();
  void it_is_tried_again_with_what_others_left();
  void it_is_not_tried_again_for_nothing();
  void a_driver_that_hangs_is_told_of_meanwhile();
  void a_card_that_fails_is_left_out_and_told();
  void cards_of_the_kind_with_the_most_memory_compute();
  void a_driver_in_the_kernel_is_seen();
  void the_environment_says_which_may_be_used();
};

// tests/fakes/processor_alone.cpp, which every test program has.
void DeviceChoiceTest::tests_compute_on_the_processor() {
  if (visible_gpus() == VisibleGpus::kSome) QSKIP("the environment names GPUs: they are tried");
  QVERIFY(visible_gpus() == VisibleGpus::kNone);
}

void DeviceChoiceTest::gpus_compute_where_there_are_any_and_they_can() {
  for (const DeviceChoice choice : {DeviceChoice::kAuto, DeviceChoice::kGpu}) {
    FakeGpus gpus({kTwo});
    std::size_t made_on = 0;
    const auto outcome = choose_device(
        choice, gpus,
        [&](std::span<const UsableGpu> usable) {
          made_on = usable.size();
          return ok_status();
        },
        kPatient);

    QVERIFY(outcome.ok() && outcome->on_gpus);
    QCOMPARE(outcome->trouble, std::string());
    QCOMPARE(made_on, std::size_t{2});
  }
}

void DeviceChoiceTest::the_processor_leaves_gpus_unasked() {
  FakeGpus gpus({kTwo});

  const auto outcome = choose_device(
      DeviceChoice::kProcessor, gpus,
      [](std::span<const UsableGpu>) -> Status {
        return Error{ErrorCode::kInternal, "was asked"};
      },
      kPatient);

  QVERIFY(outcome.ok() && !outcome->on_gpus && outcome->trouble.empty());
  QCOMPARE(gpus.looked, 0);
}

void DeviceChoiceTest::without_gpus_the_processor_computes_without_a_word() {
  FakeGpus gpus({kNone});

  const auto outcome = choose_device(
      DeviceChoice::kAuto, gpus, [](std::span<const UsableGpu>) { return ok_status(); }, kPatient);

  QVERIFY(outcome.ok() && !outcome->on_gpus);
  QCOMPARE(outcome->trouble, std::string());
}

void DeviceChoiceTest::gpus_that_cannot_compute_are_told_and_replaced_data() {
  QTest::addColumn<bool>("old_driver");
  QTest::addColumn<QByteArray>("why");
  QTest::newRow("a driver that is too old") << true << QByteArray("the driver is too old");
  QTest::newRow("what computes on them is not made") << false << QByteArray("another gradient");
}

void DeviceChoiceTest::gpus_that_cannot_compute_are_told_and_replaced() {
  QFETCH(const bool, old_driver);
  QFETCH(const QByteArray, why);
  FakeGpus gpus({old_driver ? kOldDriver : kTwo});

  const auto outcome = choose_device(
      DeviceChoice::kAuto, gpus,
      [](std::span<const UsableGpu>) -> Status {
        return Error{ErrorCode::kInternal, "another gradient"};
      },
      kPatient);

  QVERIFY(outcome.ok() && !outcome->on_gpus);
  QCOMPARE(outcome->trouble, "the GPUs are left idle, and the processor computes: " + why.toStdString());
}

void DeviceChoiceTest::who_asked_for_gpus_gets_them_or_the_reason() {
  QFETCH(const bool, old_driver);
  QFETCH(const QByteArray, why);
  FakeGpus gpus({old_driver ? kOldDriver : kTwo});
  FakeGpus none({kNone});
  const auto make = [](std::span<const UsableGpu>) -> Status {
    return Error{ErrorCode::kInternal, "another gradient"};
  };

  const auto outcome = choose_device(DeviceChoice::kGpu, gpus, make, kPatient);
  const auto without = choose_device(DeviceChoice::kGpu, none, make, kPatient);

  QVERIFY(!outcome.ok() && !without.ok());
  QVERIFY2(contains(outcome.error().message, why.constData()), outcome.error().message.c_str());
  QVERIFY2(contains(outcome.error().message, "auto"), outcome.error().message.c_str());
  QVERIFY2(contains(without.error().message, "this machine has no GPU"), without.error().message.c_str());
}

// As when two islands start at once, and each has seen the memory that the other takes.
void DeviceChoiceTest::it_is_tried_again_with_what_others_left() {
  const GpuLook less{.usable = {fake_gpu(0, 30 * kGigabyte), fake_gpu(1, 70 * kGigabyte)}, .amiss = false, .why = {}};
  FakeGpus gpus({kTwo, less});
  std::vector<std::uint64_t> seen;

  const auto outcome = choose_device(
      DeviceChoice::kAuto, gpus,
      [&](std::span<const UsableGpu> usable) -> Status {
        seen.push_back(usable.front().free_bytes);
        if (seen.size() == 1) return Error{ErrorCode::kInternal, "out of memory"};
        return ok_status();
      },
      kPatient);

  QVERIFY(outcome.ok() && outcome->on_gpus && outcome->trouble.empty());
  QCOMPARE(seen, (std::vector<std::uint64_t>{70 * kGigabyte, 30 * kGigabyte}));
}

void DeviceChoiceTest::it_is_not_tried_again_for_nothing() {
  FakeGpus gpus({kTwo});
  int tries = 0;

  (void)choose_device(
      DeviceChoice::kAuto, gpus,
      [&](std::span<const UsableGpu>) -> Status {
        ++tries;
        return Error{ErrorCode::kInternal, "another gradient"};
      },
      kPatient);

  QCOMPARE(tries, 1);
}

void DeviceChoiceTest::a_driver_that_hangs_is_told_of_meanwhile() {
  FakeGpus gpus({kTwo});
  std::atomic<bool> told = false;
  std::string said;
  gpus.on_look = [&] {
    const Deadline deadline = Deadline::after(std::chrono::milliseconds(kPatience));
    while (!told && !deadline.expired()) std::this_thread::sleep_for(1ms);
  };
  const auto say = [&](const std::string& text) {
    said = text;
    told = true;
  };

  const auto outcome = choose_device(DeviceChoice::kAuto, gpus, [](std::span<const UsableGpu>) { return ok_status(); },
                                     {.say = say, .after = 5ms});

  QVERIFY(outcome.ok() && told);
  QVERIFY2(contains(said, "island.device processor"), said.c_str());
}

void DeviceChoiceTest::a_card_that_fails_is_left_out_and_told() {
  const GpuLook look =
      choose_alike({card(0, "H100", 80), card(1, "H100", 0, "unspecified launch failure"), card(2, "H100", 80)});

  QCOMPARE(look.usable.size(), std::size_t{2});
  QCOMPARE(look.usable[1].ordinal, 2);
  QVERIFY(look.amiss);
  QVERIFY2(contains(look.why, "GPU 1 (H100): unspecified launch failure"), look.why.c_str());
  FakeGpus gpus({look});
  const auto outcome = choose_device(
      DeviceChoice::kAuto, gpus, [](std::span<const UsableGpu>) { return ok_status(); }, kPatient);
  QVERIFY(outcome.ok() && outcome->on_gpus);
  QVERIFY2(contains(outcome->trouble, "GPU 1 (H100)"), outcome->trouble.c_str());

  const GpuLook all_fail = choose_alike({card(0, "", 0, "out of order")});
  QVERIFY(all_fail.usable.empty() && all_fail.amiss);
  QCOMPARE(all_fail.why, std::string("GPU 0: out of order"));
}

void DeviceChoiceTest::cards_of_the_kind_with_the_most_memory_compute() {
  const GpuLook look = choose_alike({card(0, "T400", 4), card(1, "RTX 4090", 24), card(2, "RTX 4090", 24)});

  QCOMPARE(look.usable.size(), std::size_t{2});
  QCOMPARE(look.usable[0].ordinal, 1);
  QVERIFY(!look.amiss);  // a card for the screen is nothing to complain about
  QVERIFY2(contains(look.why, "GPU 0 (T400)"), look.why.c_str());
}

void DeviceChoiceTest::a_driver_in_the_kernel_is_seen() {
  const QTemporaryDir root;
  const std::filesystem::path path = root.path().toStdString();

  QVERIFY(!kernel_has_driver(path));
  std::filesystem::create_directories(path / "proc/driver/nvidia");
  std::ofstream(path / "proc/driver/nvidia/version") << "NVRM";
  QVERIFY(kernel_has_driver(path));
}

void DeviceChoiceTest::the_environment_says_which_may_be_used() {
  const auto clean =
      qScopeGuard([before = qgetenv("CUDA_VISIBLE_DEVICES")] { qputenv("CUDA_VISIBLE_DEVICES", before); });
  qunsetenv("CUDA_VISIBLE_DEVICES");
  QVERIFY(visible_gpus() == VisibleGpus::kAll);
  qputenv("CUDA_VISIBLE_DEVICES", "2,5");
  QVERIFY(visible_gpus() == VisibleGpus::kSome);
  ::setenv("CUDA_VISIBLE_DEVICES", "", 1);
  QVERIFY(visible_gpus() == VisibleGpus::kNone);
  const GpuLook look = gpus_of_machine()->look();  // whatever this machine has
  QVERIFY(look.usable.empty() && !look.amiss);
}

QTEST_APPLESS_MAIN(DeviceChoiceTest)
#include "device_choice_test.moc"
