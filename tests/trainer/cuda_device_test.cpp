// The CUDA device without a GPU (cuda_machine.h): what it computes, in which order, and what it says where it cannot.
#include "trainer/device/cuda_device.h"

#include <QtTest>
#include <atomic>
#include <numeric>
#include <thread>

#include "kernels/model/model_kernels.h"
#include "tests/trainer/cuda_machine.h"
#include "tests/trainer/naive_operations.h"

namespace {

using namespace atl;
using namespace atl::test;
using namespace std::chrono_literals;

// Kept buffers with values, on a device.
class Bench {
 public:
  Tensor add(DType dtype, std::int64_t rows, std::int64_t columns, std::uint32_t seed) {
    std::mt19937 random(seed);
    std::normal_distribution<float> normal;
    const auto numel = static_cast<std::size_t>(rows * columns);
    std::vector<float> values(numel);
    for (float& value : values) value = normal(random);
    std::vector<std::byte> bytes(numel * static_cast<std::size_t>(size_of(dtype)));
    if (dtype == DType::kBfloat16) {
      std::vector<Bf16> rounded(numel);
      value_kernels().round_to_bf16(values.data(), rows * columns, rounded.data());
      value_kernels().widen(rounded.data(), rows * columns, values.data());
      std::memcpy(bytes.data(), rounded.data(), bytes.size());
    } else {
      std::memcpy(bytes.data(), values.data(), bytes.size());
    }
    elements_.emplace_back(values.begin(), values.end());
    bytes_.push_back(std::move(bytes));
    return kept_.add("", dtype, rows, columns);
  }

  // Largest error of buffer `result` beside the operation's definition, as a part of its largest value.
  double error_of(CudaDevice& device, const Operation& operation, const Tensor& result) {
    device.take_arena(Arena::kKept, kept_.bytes());
    for (std::size_t b = 0; b < bytes_.size(); ++b) device.upload(whole(b), bytes_[b]);
    device.run(StreamId::kCompute, operation);
    const auto b = static_cast<std::size_t>(result.buffer);
    std::vector<std::byte> got(bytes_[b].size());
    device.download(whole(b), got);
    std::visit(NaiveOperations(elements_), operation);
    double error = 0, most = 0;
    for (std::size_t i = 0; i < elements_[b].size(); ++i) {
      float value = 0;
      if (result.dtype == DType::kBfloat16) {
        value_kernels().widen(reinterpret_cast<const Bf16*>(got.data()) + i, 1, &value);
      } else {
        std::memcpy(&value, got.data() + 4 * i, 4);
      }
      const double off = std::abs(static_cast<double>(value) - elements_[b][i]);
      error = off <= error ? error : off;  // NaN too
      most = std::max(most, std::abs(elements_[b][i]));
    }
    return error / most;
  }

 private:
  Tensor whole(std::size_t b) const {
    Tensor tensor{.arena = Arena::kKept, .buffer = static_cast<std::int32_t>(b)};
    tensor.dtype = DType::kFloat32;
    tensor.columns = tensor.stride = static_cast<std::int64_t>(bytes_[b].size()) / 4;
    if (bytes_[b].size() % 4 != 0) {
      tensor.dtype = DType::kBfloat16;
      tensor.columns = tensor.stride = static_cast<std::int64_t>(bytes_[b].size()) / 2;
    }
    tensor.byte = kept_.buffers()[b].byte;
    return tensor;
  }

  KeptBuffers kept_;
  std::vector<std::vector<double>> elements_;
  std::vector<std::vector<std::byte>> bytes_;
};

}  // namespace

Q_DECLARE_METATYPE(std::vector<int>)
Q_DECLARE_METATYPE(atl::DType)

class CudaDeviceTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void a_product_is_that_of_its_definition_data();
  void a_product_is_that_of_its_definition();
  void an_upload_is_done_in_order_and_its_source_may_change();
  void streams_wait_for_events_and_meet_in_a_join();
  void the_host_runs_one_mark_ahead();
  void what_there_is_no_memory_for_is_said_with_how_much();
  void an_operation_that_is_refused_is_named();
  void ranks_have_a_gpu_each_or_share_one_data();
  void ranks_have_a_gpu_each_or_share_one();
};

void CudaDeviceTest::a_product_is_that_of_its_definition_data() {
  QTest::addColumn<DType>("operands");
  QTest::addColumn<DType>("out");
  QTest::addColumn<bool>("transpose_a");
  QTest::addColumn<bool>("transpose_b");
  QTest::addColumn<int>("more");  // 0: nothing, 1: accumulate, 2: add, 3: add in parts of wider matrices, at odd places
  const auto name = [](DType dtype) { return dtype == DType::kFloat32 ? "fp32" : "bf16"; };
  for (const auto& [operands, out] : {std::pair{DType::kFloat32, DType::kFloat32},
                                      {DType::kBfloat16, DType::kBfloat16},
                                      {DType::kBfloat16, DType::kFloat32}}) {
    for (int which = 0; which < 16; ++which) {
      const bool a = (which & 1) != 0, b = (which & 2) != 0;
      QTest::addRow("%s to %s, %s x %s, %d", name(operands), name(out), a ? "transposed" : "plain",
                    b ? "transposed" : "plain", which / 4)
          << operands << out << a << b << which / 4;
    }
  }
}

void CudaDeviceTest::a_product_is_that_of_its_definition() {
  QFETCH(DType, operands);
  QFETCH(DType, out);
  QFETCH(bool, transpose_a);
  QFETCH(bool, transpose_b);
  QFETCH(int, more);
  constexpr std::int64_t kM = 6, kN = 10, kK = 34;
  CudaMachine machine;
  const auto device = machine.device();
  Bench bench;
  const bool wide = more == 3;
  const auto add = [&](DType dtype, std::int64_t rows, std::int64_t columns, std::uint32_t seed) {
    const Tensor all = bench.add(dtype, rows, columns + (wide ? 4 + 2 * seed : 0), seed);
    return wide ? all.column_range(seed, columns) : all;
  };
  MatMul product;
  product.a = transpose_a ? add(operands, kK, kM, 1) : add(operands, kM, kK, 1);
  product.b = transpose_b ? add(operands, kN, kK, 2) : add(operands, kK, kN, 2);
  product.out = add(out, kM, kN, 3);
  product.transpose_a = transpose_a;
  product.transpose_b = transpose_b;
  product.accumulate = more == 1;
  if (more >= 2) product.add = add(out, kM, kN, 4);

  const double error = bench.error_of(*device, product, product.out);

  // 34 terms in fp32; or the one rounding.
  QVERIFY2(error <= (out == DType::kFloat32 ? 1e-5 : 0x1p-8), qPrintable(QString::number(error)));
}

void CudaDeviceTest::an_upload_is_done_in_order_and_its_source_may_change() {
  CudaMachine machine;
  const auto device = machine.device();
  constexpr std::int64_t kNumel = 10'000'000;  // more than all slots hold
  KeptBuffers kept;
  const Tensor large = kept.add("large", DType::kFloat32, 1, kNumel);
  const Tensor small = kept.add("small", DType::kFloat32, 1, 16);
  device->take_arena(Arena::kKept, kept.bytes());
  std::vector<float> values(kNumel), got(kNumel, -1), few(16, 1.0f);
  device->download(large, std::as_writable_bytes(std::span(got)));
  QCOMPARE(std::ranges::count(got, 0.0f), static_cast<std::ptrdiff_t>(kNumel));  // cleared when it was taken
  std::iota(values.begin(), values.end(), 0.0f);

  device->upload(large, std::as_bytes(std::span(values)));
  for (int i = 0; i < 40; ++i) {
    std::ranges::fill(few, static_cast<float>(i));
    device->upload(small, std::as_bytes(std::span(few)));
  }
  const std::vector<float> expected = values;
  std::ranges::fill(values, -2.0f);
  std::ranges::fill(few, -2.0f);
  device->download(large, std::as_writable_bytes(std::span(got)));
  device->download(small, std::as_writable_bytes(std::span(few)));

  QCOMPARE(got == expected, true);
  QCOMPARE(few, std::vector<float>(16, 39.0f));
}

void CudaDeviceTest::streams_wait_for_events_and_meet_in_a_join() {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    CudaMachine machine({.seed = seed, .most_delay = 200us});
    const auto device = machine.device();
    KeptBuffers kept;
    const Tensor x = kept.add("x", DType::kFloat32, 1, 64), y = kept.add("y", DType::kBfloat16, 1, 64);
    device->take_arena(Arena::kKept, kept.bytes());
    device->make_events(2);

    device->wait(StreamId::kCompute, 1);  // never recorded
    device->run(StreamId::kCompute, Fill{x, 3});
    device->record(StreamId::kCompute, 0);
    device->wait(StreamId::kCollective, 0);
    device->run(StreamId::kCollective, Convert{x, y});
    device->join();
    device->run(StreamId::kCompute, Fill{x, 5});
    device->run(StreamId::kCompute, Fill{x, 7});
    std::vector<Bf16> got(64);
    device->download(y, std::as_writable_bytes(std::span(got)));

    for (const Bf16 value : got) QCOMPARE(value.bits, std::uint16_t{0x4040});  // 3
  }
}

void CudaDeviceTest::the_host_runs_one_mark_ahead() {
  CudaMachine machine;
  const auto device = machine.device();
  std::atomic<bool> first = false;
  machine.cuda.hold_streams();
  QCOMPARE(FakeCuda::launch(device->stream(StreamId::kCompute), [&] { first = true; }), cudaSuccess);
  device->mark();
  device->await_mark();  // there is none before the last one
  QVERIFY(!first);
  device->mark();
  const int waits = machine.cuda.counts().host_waits;
  const std::jthread frees([&](const std::stop_token& stop) {
    while (!stop.stop_requested() && machine.cuda.counts().host_waits == waits) std::this_thread::yield();
    machine.cuda.let_streams_go();
  });
  device->await_mark();
  QVERIFY(first);
}

void CudaDeviceTest::what_there_is_no_memory_for_is_said_with_how_much() {
  CudaMachine machine({.gpu_bytes = 500'000'000});
  const auto device = machine.device();

  const QString message = failure_of([&] { device->take_arena(Arena::kStep, 2'000'000'000); });

  QVERIFY2(message.contains("2.00 GB of a step's activations"), qPrintable(message));
  QVERIFY2(message.contains("GPU 0 has 0.43 GB free of 0.50 GB"), qPrintable(message));
  QVERIFY2(message.contains("out of memory"), qPrintable(message));
  device->take_arena(Arena::kStep, 1'000'000);
}

void CudaDeviceTest::an_operation_that_is_refused_is_named() {
  CudaMachine machine;
  const auto device = machine.device();
  KeptBuffers kept;
  const Tensor x = kept.add("x", DType::kFloat32, 1, 64), y = kept.add("y", DType::kBfloat16, 1, 64);
  device->take_arena(Arena::kKept, kept.bytes());
  machine.cuda.fail("launch", 1, cudaErrorInvalidValue);

  const QString message = failure_of([&] { device->run(StreamId::kCompute, Convert{x, y}); });

  QVERIFY2(message.contains("Convert [1, 64] fp32: cudaErrorInvalidValue"), qPrintable(message));
}

void CudaDeviceTest::ranks_have_a_gpu_each_or_share_one_data() {
  QTest::addColumn<std::vector<int>>("ordinals");
  QTest::addColumn<bool>("good");
  QTest::newRow("each") << std::vector{2, 0, 1} << true;
  QTest::newRow("one for all") << std::vector{3, 3, 3} << true;
  QTest::newRow("none") << std::vector<int>{} << false;
  QTest::newRow("negative") << std::vector{-1} << false;
  QTest::newRow("two share") << std::vector{0, 0, 1} << false;
}

void CudaDeviceTest::ranks_have_a_gpu_each_or_share_one() {
  QFETCH(std::vector<int>, ordinals);
  QFETCH(bool, good);
  QCOMPARE(CudaDevices{.ordinals = ordinals}.validate().ok(), good);
  if (!good) return;
  CudaMachine machine({.gpus = 1 + std::ranges::max(ordinals)});
  QVERIFY(machine.group(ordinals)->world_size() == static_cast<int>(ordinals.size()));
  ordinals.back() = 7;
  const QString message = failure_of([&] { (void)machine.group(ordinals); });
  QVERIFY2(message.contains("GPU 7 is asked for"), qPrintable(message));
}

QTEST_GUILESS_MAIN(CudaDeviceTest)
#include "cuda_device_test.moc"
