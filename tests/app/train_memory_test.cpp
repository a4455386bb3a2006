// What `atoll train` refuses before it begins: runs that neither the processor's memory nor the GPUs' can ever hold.
#include "app/cli/train_memory.h"

#include <fmt/format.h>

#include <QtTest>

using namespace atl;

namespace {

constexpr std::uint64_t kGigabyte = 1'000'000'000;

// 149 million parameters: some 8 GB on a processor with one sequence at once, 4.4 GB beside GPUs, 5 GB on one of them.
RunConfig run_of_150m() {
  RunConfig run;
  run.model_json =
      R"({"vocab_size":32000,"hidden_size":1024,"intermediate_size":2304,"num_hidden_layers":12,"num_attention_heads":16,"num_key_value_heads":4,"head_dim":64,"tie_word_embeddings":true})";
  run.dataset_json = fmt::format(
      R"({{"format":"atoll-dataset","version":1,"tokenizer":"bytes","vocab_size":257,"train":{0},"validation":{0}}})",
      fmt::format(R"([{{"file":"a.bin","tokens":116,"bytes":264,"sha256":"{:064}"}}])", 0));
  run.sequences_per_step = 64;
  run.sequence_length = 1024;
  return run;
}

GpuFacts card_of(std::uint64_t bytes) {
  GpuFacts gpu;
  gpu.driver_found = true;
  gpu.devices.resize(1);
  gpu.devices.front().memory_bytes = bytes;
  return gpu;
}

// How often the GPUs were asked, and what came of it.
struct Outcome {
  int asked = 0;
  Status status = ok_status();
};

Outcome check(DeviceChoice device, std::uint64_t memory, const GpuFacts& gpu, bool kernels = true) {
  Outcome outcome;
  outcome.status = check_train_memory(run_of_150m(), std::nullopt, device,
                                      {.memory_bytes = memory, .gpu_kernels = kernels, .ask_gpus = [&] {
                                         ++outcome.asked;
                                         return gpu;
                                       }});
  return outcome;
}

}  // namespace

class TrainMemoryTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void what_main_memory_holds_asks_no_gpu();
  void gpus_hold_what_main_memory_does_not();
  void what_nothing_holds_is_refused_with_the_reason_data();
  void what_nothing_holds_is_refused_with_the_reason();
  void a_machine_that_does_not_say_refuses_nothing();
};

void TrainMemoryTest::what_main_memory_holds_asks_no_gpu() {
  const Outcome outcome = check(DeviceChoice::kAuto, 64 * kGigabyte, {});

  QVERIFY(outcome.status.ok());
  QCOMPARE(outcome.asked, 0);
}

void TrainMemoryTest::gpus_hold_what_main_memory_does_not() {
  for (const DeviceChoice device : {DeviceChoice::kAuto, DeviceChoice::kGpu}) {
    const Outcome outcome = check(device, 6 * kGigabyte, card_of(80 * kGigabyte));

    QVERIFY2(outcome.status.ok(), outcome.status.ok() ? "" : outcome.status.error().message.c_str());
  }
}

void TrainMemoryTest::what_nothing_holds_is_refused_with_the_reason_data() {
  QTest::addColumn<int>("device");
  QTest::addColumn<int>("memory");  // GB
  QTest::addColumn<int>("card");    // GB; 0: there is none
  QTest::addColumn<bool>("kernels");
  QTest::addColumn<QByteArray>("says");
  const auto row = [](const char* name, DeviceChoice device, int memory, int card, bool kernels, const char* says) {
    QTest::newRow(name) << static_cast<int>(device) << memory << card << kernels << QByteArray(says);
  };
  row("GPUs that are to lie idle", DeviceChoice::kProcessor, 6, 80, true, "on the processor; choose a smaller --model");
  row("none", DeviceChoice::kAuto, 6, 0, true, "there is no GPU");
  row("a small one", DeviceChoice::kAuto, 6, 2, true, "has 2.0 GB");
  row("no kernels", DeviceChoice::kAuto, 6, 80, false, "computes on CPUs alone");
  row("too little beside it", DeviceChoice::kAuto, 2, 80, true, "beside GPUs the run wants");
  row("asked for, and too small", DeviceChoice::kGpu, 6, 2, true, "has 2.0 GB");
}

void TrainMemoryTest::what_nothing_holds_is_refused_with_the_reason() {
  QFETCH(const int, device);
  QFETCH(const int, memory);
  QFETCH(const int, card);
  QFETCH(const bool, kernels);
  QFETCH(const QByteArray, says);
  const GpuFacts gpu = card > 0 ? card_of(static_cast<std::uint64_t>(card) * kGigabyte) : GpuFacts{};

  const Outcome outcome =
      check(static_cast<DeviceChoice>(device), static_cast<std::uint64_t>(memory) * kGigabyte, gpu, kernels);

  QVERIFY(!outcome.status.ok());
  QVERIFY2(QByteArray::fromStdString(outcome.status.error().message).contains(says),
           outcome.status.error().message.c_str());
}

void TrainMemoryTest::a_machine_that_does_not_say_refuses_nothing() {
  QVERIFY(check(DeviceChoice::kProcessor, 0, {}).status.ok());
}

QTEST_APPLESS_MAIN(TrainMemoryTest)
#include "train_memory_test.moc"
