// An island's engine: on GPUs that compute what the processor does, else on the processor, where that is sane.
#include "trainer/island/island_engine.h"

#include <QtTest>

#include "tests/fakes/fake_gpus.h"
#include "trainer/island/engine_options.h"

namespace {

using namespace atl;
using namespace atl::test;

constexpr std::uint64_t kGigabyte = 1'000'000'000;

ModelConfig model() {
  ModelConfig config;
  config.vocab_size = 256;
  config.hidden_size = 64;
  config.intermediate_size = 128;
  config.num_hidden_layers = 2;
  config.num_attention_heads = 4;
  config.num_key_value_heads = 2;
  config.head_dim = 16;
  config.max_position_embeddings = 64;
  return config;
}

RunConfig run_config() {
  RunConfig run;
  run.sequences_per_step = 4;
  run.sequence_length = 64;
  return run;
}

GpuLook gpus_with(std::uint64_t free_bytes, int count = 1) {
  GpuLook look;
  for (int i = 0; i < count; ++i) look.usable.push_back(fake_gpu(i, free_bytes));
  return look;
}

Result<IslandEngine> make(FakeGpus& gpus, DeviceChoice device, std::uint64_t total = 64 * kGigabyte) {
  const IslandMachine machine{.gpus = gpus, .memory = {total, total}, .slow = {.say = [](const std::string& text) {
                                                                        qFatal("said: %s", text.c_str());
                                                                      }}};
  return make_island_engine(model(), run_config(), {.threads = 2}, device, machine, [](const IslandShape& island) {
    return engine_options(run_config(), island, /*threads=*/2);
  });
}

bool contains(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

}  // namespace

class IslandEngineTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void the_peak_of_gpus_is_their_sum_where_all_are_known() {
    const UsableGpu h100 = fake_gpu(0, kGigabyte), pcie = fake_gpu(1, kGigabyte, "NVIDIA H100 PCIe");
    const UsableGpu strange = fake_gpu(2, kGigabyte, "Some Card 9000");

    QCOMPARE(peak_flops_of(std::vector{h100}), std::optional<double>(989e12));
    QCOMPARE(peak_flops_of(std::vector{h100, pcie, h100}), std::optional<double>(2 * 989e12 + 756e12));
    QVERIFY(!peak_flops_of(std::vector{h100, strange}));
  }

  void gpus_that_compute_as_the_processor_does_train();
  void an_engine_that_gpus_do_not_take_is_the_processors_data();
  void an_engine_that_gpus_do_not_take_is_the_processors();
  void too_little_memory_of_gpus_leaves_the_processor();
  void what_the_processor_can_never_hold_in_their_place_is_an_error();
  void who_asked_for_gpus_is_told_why_there_are_none();
  void of_fewer_local_ranks_the_first_gpus_compute();
};

void IslandEngineTest::gpus_that_compute_as_the_processor_does_train() {
  FakeGpus gpus({gpus_with(70 * kGigabyte, 2)});

  const auto made = make(gpus, DeviceChoice::kAuto);

  QVERIFY2(made.ok(), made.ok() ? "" : made.error().message.c_str());
  QVERIFY(made->on_gpus && made->engine != nullptr);
  QCOMPARE(made->plan.island.local_ranks, std::int64_t{2});
  QCOMPARE(made->plan.island.precision, Precision::kBf16);
  QCOMPARE(made->peak_flops, std::optional<double>(2 * 989e12));
  QCOMPARE(made->trouble, std::string());
  QCOMPARE(gpus.made, 2);  // for the check, then to train
}

void IslandEngineTest::an_engine_that_gpus_do_not_take_is_the_processors_data() {
  QTest::addColumn<int>("fails_at");
  QTest::newRow("the check's") << 1;
  QTest::newRow("the one that trains") << 2;
}

void IslandEngineTest::an_engine_that_gpus_do_not_take_is_the_processors() {
  QFETCH(const int, fails_at);
  FakeGpus gpus({gpus_with(70 * kGigabyte)});
  gpus.fails_at = fails_at;

  const auto made = make(gpus, DeviceChoice::kAuto);

  QVERIFY2(made.ok(), made.ok() ? "" : made.error().message.c_str());
  QVERIFY(!made->on_gpus && made->engine != nullptr);
  QVERIFY(!made->peak_flops);
  QCOMPARE(made->plan.island.precision, Precision::kFp32);
  QCOMPARE(made->trouble, std::string("the GPUs are left idle, and the processor computes: out of memory"));
}

void IslandEngineTest::too_little_memory_of_gpus_leaves_the_processor() {
  FakeGpus gpus({gpus_with(1000)});

  const auto made = make(gpus, DeviceChoice::kAuto);

  QVERIFY(made.ok() && !made->on_gpus);
  QVERIFY2(contains(made->trouble, "of each GPU"), made->trouble.c_str());
  QCOMPARE(gpus.made, 0);
}

void IslandEngineTest::what_the_processor_can_never_hold_in_their_place_is_an_error() {
  FakeGpus broken({gpus_with(70 * kGigabyte)});
  broken.fails_at = 1;
  FakeGpus none({{.usable = {}, .amiss = false, .why = "no GPU"}});

  const auto replaced = make(broken, DeviceChoice::kAuto, /*total=*/1000);
  const auto alone = make(none, DeviceChoice::kAuto, /*total=*/1000);

  QVERIFY(!replaced.ok());
  QVERIFY2(contains(replaced.error().message, "out of memory"), replaced.error().message.c_str());
  QVERIFY2(contains(replaced.error().message, "the processor would want"), replaced.error().message.c_str());
  QVERIFY2(contains(replaced.error().message, "smaller model"), replaced.error().message.c_str());
  // Without GPUs it is its owner's word that this machine trains: it goes on, and says what it lacks.
  QVERIFY(alone.ok());
  QVERIFY2(contains(alone->plan.trouble(), "of memory"), alone->plan.trouble().c_str());
}

void IslandEngineTest::who_asked_for_gpus_is_told_why_there_are_none() {
  FakeGpus broken({gpus_with(70 * kGigabyte)});
  broken.fails_at = 2;
  FakeGpus small({gpus_with(1000)});

  const auto failed = make(broken, DeviceChoice::kGpu), full = make(small, DeviceChoice::kGpu);

  QVERIFY(!failed.ok() && !full.ok());
  QVERIFY2(contains(failed.error().message, "out of memory"), failed.error().message.c_str());
  QVERIFY2(contains(full.error().message, "of each GPU"), full.error().message.c_str());
}

void IslandEngineTest::of_fewer_local_ranks_the_first_gpus_compute() {
  FakeGpus gpus({gpus_with(70 * kGigabyte, 4)});
  std::vector<std::size_t> used;
  gpus.made_of = [&](std::span<const UsableGpu> of) {
    used.push_back(of.size());
    return Result<std::unique_ptr<DeviceGroup>>(
        std::make_unique<CpuDeviceGroup>(static_cast<int>(of.size()), 1, std::chrono::seconds(60)));
  };
  const IslandMachine machine{.gpus = gpus, .memory = {64 * kGigabyte, 64 * kGigabyte}, .slow = {.say = {}}};

  const auto made =
      make_island_engine(model(), run_config(), {.local_ranks = 2, .threads = 2}, DeviceChoice::kAuto, machine,
                         [](const IslandShape& island) { return engine_options(run_config(), island, 2); });

  QVERIFY(made.ok() && made->on_gpus);
  QCOMPARE(used, (std::vector<std::size_t>{2, 2}));
}

QTEST_APPLESS_MAIN(IslandEngineTest)
#include "island_engine_test.moc"
