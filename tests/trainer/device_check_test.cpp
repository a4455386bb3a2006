// Devices that compute something else than they should do not train.
#include "trainer/engine/device_check.h"

#include <QtTest>

#include <functional>

#include "trainer/device/cpu_device_group.h"

namespace {

using namespace atl;

// Changes each operation before it is run.
using Mistake = std::function<void(Operation&)>;

class WrongDevice final : public Device {
 public:
  WrongDevice(std::unique_ptr<Device> device, Mistake mistake)
      : device_(std::move(device)), mistake_(std::move(mistake)) {}

  void take_arena(Arena arena, std::int64_t bytes) override { device_->take_arena(arena, bytes); }
  void make_events(int count) override { device_->make_events(count); }
  void run(StreamId stream, const Operation& operation) override {
    Operation wrong = operation;
    mistake_(wrong);
    device_->run(stream, wrong);
  }
  void record(StreamId stream, int event) override { device_->record(stream, event); }
  void wait(StreamId stream, int event) override { device_->wait(stream, event); }
  void join() override { device_->join(); }
  void synchronize() override { device_->synchronize(); }
  void mark() override { device_->mark(); }
  void await_mark() override { device_->await_mark(); }
  void upload(const Tensor& to, std::span<const std::byte> from) override { device_->upload(to, from); }
  void download(const Tensor& from, std::span<std::byte> to) override { device_->download(from, to); }
  void send_result(int slot, std::span<const Tensor> from) override { device_->send_result(slot, from); }
  void await_result(int slot, std::span<std::byte> to) override { device_->await_result(slot, to); }
  void reset() noexcept override { device_->reset(); }
  void abort(const std::string& reason) noexcept override { device_->abort(reason); }

 private:
  const std::unique_ptr<Device> device_;
  const Mistake mistake_;
};

class WrongGroup final : public DeviceGroup {
 public:
  WrongGroup(int ranks, Mistake mistake) : group_(ranks, 1, std::chrono::seconds(60)), mistake_(std::move(mistake)) {}

  int world_size() const override { return group_.world_size(); }
  StepTraits traits() const override { return group_.traits(); }
  std::unique_ptr<Device> device(LocalRank rank) override {
    return std::make_unique<WrongDevice>(group_.device(rank), mistake_);
  }
  void abort(const std::string& reason) noexcept override { group_.abort(reason); }
  bool reset() override { return group_.reset(); }

 private:
  CpuDeviceGroup group_;
  const Mistake mistake_;
};

ModelConfig model() {
  ModelConfig config;
  config.vocab_size = 32'000;
  config.hidden_size = 1024;
  config.intermediate_size = 2304;
  config.num_hidden_layers = 12;
  config.num_attention_heads = 16;
  config.num_key_value_heads = 4;
  config.head_dim = 64;
  config.tie_word_embeddings = true;
  return config;
}

template <class Op>
Mistake change(void (*change)(Op&)) {
  return [=](Operation& operation) {
    if (auto* op = std::get_if<Op>(&operation)) change(*op);
  };
}

const std::vector<std::pair<const char*, Mistake>> kMistakes{
    {"the backward rotation turns forward", change<Rope>([](Rope& o) { o.direction = 1; })},
    {"positions begin anew too early", change<Rope>([](Rope& o) { o.length -= 1; })},
    {"a residual is left out", change<MatMul>([](MatMul& o) { o.add.reset(); })},
    {"a gradient is not added up", change<MatMul>([](MatMul& o) { o.accumulate = false; })},
    {"a norm has another epsilon", change<RmsNorm>([](RmsNorm& o) { o.epsilon = 1; })},
    {"a norm's residual is left out", change<RmsNormBackward>([](RmsNormBackward& o) { o.residual.reset(); })},
    {"attention sees half of a sequence", change<Attention>([](Attention& o) {
       o.shape.sequences *= 2;
       o.shape.length /= 2;
     })},
    {"the loss has no gradient", change<CrossEntropy>([](CrossEntropy& o) { o.gradient = false; })},
};

}  // namespace

class DeviceCheckTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void devices_that_compute_as_this_processor_does_pass_data() { rows(); }
  void devices_that_compute_as_this_processor_does_pass();
  void a_mistake_of_any_operation_is_named_data();
  void a_mistake_of_any_operation_is_named();
  void a_mistake_of_fused_attention_alone_is_named_data();
  void a_mistake_of_fused_attention_alone_is_named();
  void a_device_that_reads_and_writes_texts_as_this_processor_does_passes();
  void a_mistake_of_inference_is_named_data();
  void a_mistake_of_inference_is_named();

 private:
  static void rows();
};

void DeviceCheckTest::rows() {
  QTest::addColumn<int>("ranks");
  QTest::addColumn<bool>("bf16");
  for (const int ranks : {1, 3}) {
    for (const bool bf16 : {false, true}) QTest::addRow("%d ranks, bf16 %d", ranks, bf16) << ranks << bf16;
  }
}

void DeviceCheckTest::devices_that_compute_as_this_processor_does_pass() {
  QFETCH(const int, ranks);
  QFETCH(const bool, bf16);

  for (const AttentionScope attention : {AttentionScope::kPacked, AttentionScope::kDocument}) {
    const Status status = check_devices(model(), bf16 ? Precision::kBf16 : Precision::kFp32, attention,
                                        std::make_unique<CpuDeviceGroup>(ranks, 1, std::chrono::seconds(60)));

    QVERIFY2(status.ok(), status.ok() ? "" : status.error().message.c_str());
  }
}

void DeviceCheckTest::a_mistake_of_any_operation_is_named_data() {
  QTest::addColumn<int>("mistake");
  QTest::addColumn<bool>("bf16");
  for (std::size_t i = 0; i < kMistakes.size(); ++i) {
    for (const bool bf16 : {false, true}) {
      QTest::addRow("%s, bf16 %d", kMistakes[i].first, bf16) << static_cast<int>(i) << bf16;
    }
  }
}

void DeviceCheckTest::a_mistake_of_any_operation_is_named() {
  QFETCH(const int, mistake);
  QFETCH(const bool, bf16);

  const Status status =
      check_devices(model(), bf16 ? Precision::kBf16 : Precision::kFp32, AttentionScope::kDocument,
                    std::make_unique<WrongGroup>(1, kMistakes[static_cast<std::size_t>(mistake)].second));

  QVERIFY(!status.ok());
  QVERIFY2(QString::fromStdString(status.error().message).contains("another"), status.error().message.c_str());
}

void DeviceCheckTest::a_mistake_of_fused_attention_alone_is_named_data() {
  QTest::addColumn<bool>("backward");
  QTest::newRow("forward") << false;
  QTest::newRow("backward") << true;
}

// As cuDNN's kernels, which take no other lengths.
void DeviceCheckTest::a_mistake_of_fused_attention_alone_is_named() {
  QFETCH(const bool, backward);
  const auto halve = [](AttentionShape& shape) {
    if (shape.length % 64 != 0) return;
    shape.sequences *= 2;
    shape.length /= 2;
  };
  const Mistake mistake = [=](Operation& operation) {
    if (auto* op = std::get_if<Attention>(&operation); op != nullptr && !backward) halve(op->shape);
    if (auto* op = std::get_if<AttentionBackward>(&operation); op != nullptr && backward) halve(op->shape);
  };

  const Status status =
      check_devices(model(), Precision::kBf16, AttentionScope::kPacked, std::make_unique<WrongGroup>(1, mistake));

  QVERIFY(!status.ok());
  QVERIFY2(QString::fromStdString(status.error().message).contains("another"), status.error().message.c_str());
}

void DeviceCheckTest::a_device_that_reads_and_writes_texts_as_this_processor_does_passes() {
  for (const Precision precision : {Precision::kFp32, Precision::kBf16}) {
    const Status status =
        check_inference_device(model(), precision, std::make_unique<CpuDeviceGroup>(1, 1, std::chrono::seconds(60)));

    QVERIFY2(status.ok(), status.ok() ? "" : status.error().message.c_str());
  }
}

namespace {

const std::vector<std::pair<const char*, Mistake>> kMistakesOfInference{
    {"rows do not see the cache", change<CachedAttention>([](CachedAttention& o) { o.positions = o.slots; })},
    {"texts are of one slot", change<CachedAttention>([](CachedAttention& o) { o.capacity = 1; })},
    {"a residual is left out", change<MatMul>([](MatMul& o) { o.add.reset(); })},
    {"the label's probability is another's", change<LogProbability>([](LogProbability& o) {
       o.logits.byte += o.logits.extent_bytes() / o.logits.rows;
       o.logits.rows -= 1;
       o.labels.columns -= 1;
     })},
};

}  // namespace

void DeviceCheckTest::a_mistake_of_inference_is_named_data() {
  QTest::addColumn<int>("mistake");
  for (std::size_t i = 0; i < kMistakesOfInference.size(); ++i) {
    QTest::newRow(kMistakesOfInference[i].first) << static_cast<int>(i);
  }
}

void DeviceCheckTest::a_mistake_of_inference_is_named() {
  QFETCH(const int, mistake);

  const Status status = check_inference_device(
      model(), Precision::kFp32,
      std::make_unique<WrongGroup>(1, kMistakesOfInference[static_cast<std::size_t>(mistake)].second));

  QVERIFY(!status.ok());
  QVERIFY2(QString::fromStdString(status.error().message).contains("another"), status.error().message.c_str());
}

QTEST_GUILESS_MAIN(DeviceCheckTest)
#include "device_check_test.moc"
