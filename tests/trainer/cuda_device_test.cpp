// The CUDA device without a GPU: against a runtime, a cuBLASLt and an NCCL in host memory whose streams work late and
// out of step, the engine trains as on the processor, and what fails is said and leaves nobody waiting. Kernels are the
// processor's; the products, as cuBLASLt's descriptors have them.
#include "trainer/device/cuda_device.h"

#include <QtTest>
#include <atomic>
#include <numeric>
#include <thread>

#include "kernels/model/model_kernels.h"
#include "tests/fakes/fake_cublas_lt.h"
#include "tests/fakes/fake_cuda_runtime.h"
#include "tests/fakes/fake_nccl.h"
#include "tests/trainer/naive_operations.h"
#include "tests/trainer/reference.h"
#include "trainer/device/cuda_device_group.h"
#include "trainer/engine/fsdp_engine.h"

namespace {

using namespace atl;
using namespace atl::test;
using namespace std::chrono_literals;

// As engine_reference_test has them: fp32 sums of other orders.
constexpr double kForwardTolerance = 1e-5;
constexpr double kGradientTolerance = 1e-4;
constexpr double kParameterTolerance = 1e-4;
constexpr int kUploadsOfAStep = 7;  // of a rank whose share is one micro-batch

// All of a GPU machine that the device sees.
struct Machine {
  explicit Machine(FakeCudaOptions options = {}) : cuda(options) {}
  FakeCuda cuda;
  FakeCublasLt cublas;
  FakeNccl nccl{7};

  std::unique_ptr<DeviceGroup> group(std::vector<int> ordinals) {
    const CudaDevices devices{.ordinals = std::move(ordinals), .timeout = 120s};
    CudaLibraries libraries;
    libraries.cublas = FakeCublasLt::api();
    libraries.nccl = FakeNccl::api();
    return std::make_unique<CudaDeviceGroup>(devices, std::move(libraries));
  }
  std::unique_ptr<CudaDevice> device() {
    return std::make_unique<CudaDevice>(0, LocalRank{0}, FakeCublasLt::api(), make_own_attention(),
                                        [] { return std::shared_ptr<CudaClique>(make_lone_clique()); });
  }
};

EngineOptions options_of(const Reference& reference, int local_ranks) {
  EngineOptions options;
  options.local_ranks = local_ranks;
  options.adamw = reference.adamw();
  options.clip_norm = reference.numbers.at("adamw").at("clip_grad_norm").get<double>();
  return options;
}

std::unique_ptr<Engine> engine_of(const Reference& reference, const EngineOptions& options,
                                  std::unique_ptr<DeviceGroup> group) {
  auto engine = create_engine(reference.model.config, options, std::move(group)).value();
  engine->write_parameters(reference.model.parameters);
  return engine;
}

void ordinal_rows() {
  QTest::addColumn<std::vector<int>>("ordinals");
  QTest::newRow("a GPU") << std::vector{0};
  QTest::newRow("two GPUs") << std::vector{0, 1};
  QTest::newRow("two ranks on one") << std::vector{0, 0};
  QTest::newRow("three ranks on one") << std::vector{1, 1, 1};
}

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

QString failure_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const std::exception& error) {
    return error.what();
  }
  return {};
}

}  // namespace

Q_DECLARE_METATYPE(std::vector<int>)
Q_DECLARE_METATYPE(atl::DType)

class CudaDeviceTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void gradients_are_those_of_the_reference_data() { ordinal_rows(); }
  void gradients_are_those_of_the_reference();
  void five_steps_are_those_of_the_reference_data() { ordinal_rows(); }
  void five_steps_are_those_of_the_reference();
  void steps_in_bf16_are_those_of_the_processor_data() { ordinal_rows(); }
  void steps_in_bf16_are_those_of_the_processor();
  void later_steps_allocate_nothing_and_ask_for_no_algorithm_data() { ordinal_rows(); }
  void later_steps_allocate_nothing_and_ask_for_no_algorithm();
  void a_step_is_enqueued_while_the_one_before_it_is_not_done_data() { ordinal_rows(); }
  void a_step_is_enqueued_while_the_one_before_it_is_not_done();
  void a_step_that_is_not_finite_stops_the_one_that_was_begun_after_it_data() { ordinal_rows(); }
  void a_step_that_is_not_finite_stops_the_one_that_was_begun_after_it();
  void an_error_of_a_step_is_told_by_the_next_call_data() { ordinal_rows(); }
  void an_error_of_a_step_is_told_by_the_next_call();
  void a_step_says_how_long_its_parts_took_data() { ordinal_rows(); }
  void a_step_says_how_long_its_parts_took();
  void ranks_go_on_after_a_step_that_was_given_up_data() { ordinal_rows(); }
  void ranks_go_on_after_a_step_that_was_given_up();
  void a_rank_that_fails_is_told_of_and_keeps_nobody_waiting_data() { ordinal_rows(); }
  void a_rank_that_fails_is_told_of_and_keeps_nobody_waiting();
  void everything_is_given_back_data() { ordinal_rows(); }
  void everything_is_given_back();
  void a_product_is_that_of_its_definition_data();
  void a_product_is_that_of_its_definition();
  void an_upload_is_done_in_order_and_its_source_may_change();
  void streams_wait_for_events_and_meet_in_a_join();
  void the_host_runs_one_mark_ahead();
  void what_there_is_no_memory_for_is_said_with_how_much();
  void an_operation_that_is_refused_is_named();
  void ranks_have_a_gpu_each_or_share_one_data();
  void ranks_have_a_gpu_each_or_share_one();

 private:
  const Reference reference_;
};

void CudaDeviceTest::gradients_are_those_of_the_reference() {
  QFETCH(std::vector<int>, ordinals);
  Machine machine({.gpus = 2});
  const auto options = options_of(reference_, static_cast<int>(ordinals.size()));
  const auto engine = engine_of(reference_, options, machine.group(ordinals));
  const ReferenceBatch batch = reference_.batch("tokens");

  const GradientReport report = engine->gradients(batch.view()).value();
  const auto logits = engine->logits(batch.view()).value();

  const double expected = reference_.expected.floats("loss").value()[0];
  QVERIFY(std::abs(report.loss_nats - expected) / expected <= kForwardTolerance);
  QVERIFY(relative_difference(logits, reference_.expected.floats("logits").value()) <= kForwardTolerance);
  const auto [difference, name] = reference_.worst_tensor(report.gradients, "grad.");
  qInfo("largest difference of a gradient: %.2e", difference);
  QVERIFY2(difference <= kGradientTolerance, name.c_str());
}

void CudaDeviceTest::five_steps_are_those_of_the_reference() {
  QFETCH(std::vector<int>, ordinals);
  Machine machine({.gpus = 2, .seed = 100});
  const auto options = options_of(reference_, static_cast<int>(ordinals.size()));
  const auto engine = engine_of(reference_, options, machine.group(ordinals));
  const auto& adamw = reference_.numbers.at("adamw");

  for (std::size_t step = 0; step < 5; ++step) {
    const ReferenceBatch batch = reference_.batch("batch." + std::to_string(10 + step));
    const StepReport report = engine->train_step(batch.view(), adamw.at("lr").get<float>()).value();
    const double norm = adamw.at("grad_norms")[step].get<double>();
    QVERIFY(std::abs(report.gradient_norm - norm) / norm <= kGradientTolerance);
  }

  std::vector<float> parameters(static_cast<std::size_t>(engine->numel()));
  engine->read_parameters(parameters);
  const auto [difference, name] = reference_.worst_tensor(parameters, "adamw5.");
  qInfo("largest difference of a parameter: %.2e", difference);
  QVERIFY2(difference <= kParameterTolerance, name.c_str());
}

// Both round at the same places; sums of other orders fall to the other side of a rounding now and then, 2^-8 of one
// value among the batch's some thousand, whose mean the loss is.
void CudaDeviceTest::steps_in_bf16_are_those_of_the_processor() {
  QFETCH(std::vector<int>, ordinals);
  Machine machine({.gpus = 2, .seed = 200});
  auto options = options_of(reference_, static_cast<int>(ordinals.size()));
  options.precision = Precision::kBf16;
  options.micro_batch_sequences = 1;
  const auto on_gpus = engine_of(reference_, options, machine.group(ordinals));
  const auto on_cpu = Engine::create(reference_.model.config, options).value();
  on_cpu->write_parameters(reference_.model.parameters);

  for (std::size_t step = 0; step < 2; ++step) {
    const ReferenceBatch batch = reference_.batch("batch." + std::to_string(10 + step));
    const StepReport here = on_gpus->train_step(batch.view(), 1e-3f).value();
    const StepReport there = on_cpu->train_step(batch.view(), 1e-3f).value();
    qInfo("loss %.6f and %.6f", here.loss_nats, there.loss_nats);
    QVERIFY(std::abs(here.loss_nats - there.loss_nats) / there.loss_nats <= 0x1p-10);
    QVERIFY(std::abs(here.gradient_norm - there.gradient_norm) / there.gradient_norm <= 0x1p-6);
  }
}

void CudaDeviceTest::later_steps_allocate_nothing_and_ask_for_no_algorithm() {
  QFETCH(std::vector<int>, ordinals);
  Machine machine({.gpus = 2, .seed = 300});
  const auto engine =
      engine_of(reference_, options_of(reference_, static_cast<int>(ordinals.size())), machine.group(ordinals));
  const ReferenceBatch batch = reference_.batch("batch.10");
  QVERIFY(engine->train_step(batch.view(), 1e-3f).ok());
  const FakeCuda::Counts before = machine.cuda.counts();
  const FakeCublasLt::Counts asked = machine.cublas.counts();

  QVERIFY(engine->train_step(batch.view(), 1e-3f).ok());

  const FakeCuda::Counts after = machine.cuda.counts();
  QVERIFY(after.launches > before.launches);
  QCOMPARE(after.allocations, before.allocations);
  QCOMPARE(after.frees, before.frees);
  QCOMPARE(after.live_events, before.live_events);
  QVERIFY(machine.cublas.counts().products > asked.products);
  QCOMPARE(machine.cublas.counts().heuristics, asked.heuristics);
  // For a free slot of pinned memory, an upload each, and for the step's result: of each rank, tokens, labels, order,
  // two tables, scalars and sums, then what the step came to. None in between.
  const int most = static_cast<int>(ordinals.size()) * (kUploadsOfAStep + 1);
  QVERIFY2(after.host_waits - before.host_waits <= most,
           qPrintable(QString::number(after.host_waits - before.host_waits)));
}

// Nothing that is enqueued is done until both steps are: a host that waited for the first would wait for ever.
void CudaDeviceTest::a_step_is_enqueued_while_the_one_before_it_is_not_done() {
  QFETCH(std::vector<int>, ordinals);
  const ReferenceBatch first = reference_.batch("batch.10"), second = reference_.batch("batch.11");
  const auto steps = [&](const std::function<void(FakeCuda&, Engine&, std::vector<StepReport>&)>& take) {
    Machine machine({.gpus = 2, .seed = 800});
    const auto engine =
        engine_of(reference_, options_of(reference_, static_cast<int>(ordinals.size())), machine.group(ordinals));
    std::vector<StepReport> reports{engine->train_step(first.view(), 1e-3f).value()};
    take(machine.cuda, *engine, reports);
    std::vector<float> parameters(static_cast<std::size_t>(engine->numel()));
    engine->read_parameters(parameters);
    return std::pair(reports, parameters);
  };

  const auto [reports, parameters] = steps([&](FakeCuda& cuda, Engine& engine, std::vector<StepReport>& told) {
    QCOMPARE(engine.steps_ahead(), 1);
    cuda.hold_streams();
    const FakeCuda::Counts before = cuda.counts();
    QVERIFY(engine.begin_step(second.view(), 1e-3f).ok());
    const FakeCuda::Counts between = cuda.counts();
    QVERIFY(engine.begin_step(first.view(), 1e-3f).ok());
    const FakeCuda::Counts after = cuda.counts();
    // All of a step is enqueued; what is waited for is a free slot of pinned memory for each upload.
    QVERIFY(between.launches > before.launches);
    QCOMPARE(after.launches - between.launches, between.launches - before.launches);
    QCOMPARE(after.host_waits - before.host_waits, 2 * static_cast<int>(ordinals.size()) * kUploadsOfAStep);
    cuda.let_streams_go();
    told.push_back(engine.finish_step().value());
    told.push_back(engine.finish_step().value());
    // A wait for each result.
    QCOMPARE(cuda.counts().host_waits - after.host_waits, 2 * static_cast<int>(ordinals.size()));
  });

  const auto [expected, expected_parameters] = steps([&](FakeCuda&, Engine& engine, std::vector<StepReport>& told) {
    told.push_back(engine.train_step(second.view(), 1e-3f).value());
    told.push_back(engine.train_step(first.view(), 1e-3f).value());
  });
  QCOMPARE(reports.size(), std::size_t{3});
  for (std::size_t i = 0; i < reports.size(); ++i) {
    QCOMPARE(reports[i].loss_nats, expected[i].loss_nats);
    QCOMPARE(reports[i].gradient_norm, expected[i].gradient_norm);
    QVERIFY(reports[i].parts.has_value());
  }
  QVERIFY(parameters == expected_parameters);
}

void CudaDeviceTest::a_step_that_is_not_finite_stops_the_one_that_was_begun_after_it() {
  QFETCH(std::vector<int>, ordinals);
  Machine machine({.gpus = 2, .seed = 900});
  const auto engine =
      engine_of(reference_, options_of(reference_, static_cast<int>(ordinals.size())), machine.group(ordinals));
  const auto parameters = [&] {
    std::vector<float> values(static_cast<std::size_t>(engine->numel()));
    engine->read_parameters(values);
    return values;
  };
  const ReferenceBatch batch = reference_.batch("batch.10");

  // A learning rate that spoils every parameter, and so the next step's loss.
  QVERIFY(engine->train_step(batch.view(), std::numeric_limits<float>::infinity()).ok());
  QVERIFY(engine->begin_step(batch.view(), 1e-3f).ok());
  engine->write_parameters(reference_.model.parameters);
  QVERIFY(engine->begin_step(batch.view(), 1e-3f).ok());
  const auto first = engine->finish_step(), second = engine->finish_step();

  QCOMPARE(first.error().code, ErrorCode::kNonFinite);
  QVERIFY2(first.error().message.starts_with("step 2: loss "), first.error().message.c_str());
  QCOMPARE(second.error().code, ErrorCode::kNonFinite);
  QVERIFY2(second.error().message.starts_with("step 3 was not taken"), second.error().message.c_str());
  QVERIFY(parameters() == reference_.model.parameters);
  QCOMPARE(engine->optimizer_steps(), std::int64_t{1});
}

void CudaDeviceTest::an_error_of_a_step_is_told_by_the_next_call() {
  QFETCH(std::vector<int>, ordinals);
  Machine machine({.gpus = 2, .seed = 1000});
  const auto engine =
      engine_of(reference_, options_of(reference_, static_cast<int>(ordinals.size())), machine.group(ordinals));
  const ReferenceBatch batch = reference_.batch("batch.10");
  QVERIFY(engine->train_step(batch.view(), 1e-3f).ok());

  QVERIFY(engine->begin_step(batch.view(), 1e-3f).ok());
  machine.cuda.fail("cudaEventSynchronize", 1, cudaErrorIllegalAddress);
  const Status next = engine->begin_step(batch.view(), 1e-3f);
  const auto result = engine->finish_step();
  const auto loss = engine->evaluate(batch.view());

  for (const Error& error : {next.error(), result.error(), loss.error()}) {
    QVERIFY2(error.message.find("local rank ") != std::string::npos, error.message.c_str());
    QVERIFY2(error.message.find("cudaErrorIllegalAddress") != std::string::npos, error.message.c_str());
  }
  QCOMPARE(engine->steps_under_way(), 0);
}

void CudaDeviceTest::a_step_says_how_long_its_parts_took() {
  QFETCH(std::vector<int>, ordinals);
  Machine machine({.gpus = 2, .seed = 700});
  auto options = options_of(reference_, static_cast<int>(ordinals.size()));
  options.micro_batch_sequences = 1;
  const auto engine = engine_of(reference_, options, machine.group(ordinals));

  for (int step = 0; step < 2; ++step) {
    const StepReport report = engine->train_step(reference_.batch("batch.10").view(), 1e-3f).value();

    QVERIFY(report.parts.has_value());
    double sum = 0;
    for (const StepPart part : {StepPart::kMatMul, StepPart::kAttention, StepPart::kElementwise, StepPart::kLoss,
                                StepPart::kOptimiser, StepPart::kCommunication}) {
      QVERIFY2((*report.parts)[part] > 0, qPrintable(QString::number(static_cast<int>(part))));
      sum += (*report.parts)[part];
    }
    QVERIFY(sum <= report.seconds);  // one stream's, of the host's time
  }
}

void CudaDeviceTest::ranks_go_on_after_a_step_that_was_given_up() {
  QFETCH(std::vector<int>, ordinals);
  Machine machine({.gpus = 2, .seed = 400});
  auto options = options_of(reference_, static_cast<int>(ordinals.size()));
  options.micro_batch_sequences = 1;
  bool give_up = true;
  options.on_micro_batch = [&] { return !give_up; };
  const auto engine = engine_of(reference_, options, machine.group(ordinals));
  const ReferenceBatch batch = reference_.batch("tokens");

  const auto given_up = engine->gradients(batch.view());
  give_up = false;
  const auto report = engine->gradients(batch.view());

  QVERIFY(!given_up.ok());
  QCOMPARE(given_up.error().code, ErrorCode::kAborted);
  const double expected = reference_.expected.floats("loss").value()[0];
  QVERIFY(std::abs(report.value().loss_nats - expected) / expected <= kForwardTolerance);
  const auto [difference, name] = reference_.worst_tensor(report.value().gradients, "grad.");
  QVERIFY2(difference <= kGradientTolerance, name.c_str());
}

void CudaDeviceTest::a_rank_that_fails_is_told_of_and_keeps_nobody_waiting() {
  QFETCH(std::vector<int>, ordinals);
  Machine machine({.gpus = 2, .seed = 500});
  const auto engine =
      engine_of(reference_, options_of(reference_, static_cast<int>(ordinals.size())), machine.group(ordinals));
  const ReferenceBatch batch = reference_.batch("tokens");
  QVERIFY(engine->evaluate(batch.view()).ok());

  for (const int nth : {1, 20, 45}) {
    machine.cuda.fail("launch", nth, cudaErrorIllegalAddress);
    const auto failed = engine->gradients(batch.view());
    QVERIFY(!failed.ok());
    const QString message = QString::fromStdString(failed.error().message);
    QVERIFY2(message.contains("local rank "), qPrintable(message));
    QVERIFY2(message.contains("cudaErrorIllegalAddress") || message.contains("cublasLtMatmul"), qPrintable(message));
  }

  const double loss = engine->evaluate(batch.view()).value();
  const double expected = reference_.expected.floats("loss").value()[0];
  QVERIFY(std::abs(loss - expected) / expected <= kForwardTolerance);
}

void CudaDeviceTest::everything_is_given_back() {
  QFETCH(std::vector<int>, ordinals);
  Machine machine({.gpus = 2, .seed = 600});
  {
    const auto engine =
        engine_of(reference_, options_of(reference_, static_cast<int>(ordinals.size())), machine.group(ordinals));
    QVERIFY(engine->train_step(reference_.batch("batch.10").view(), 1e-3f).ok());
    QVERIFY(machine.cuda.counts().live_allocations > 0);
  }
  QCOMPARE(machine.cuda.counts().live_allocations, 0);
  QCOMPARE(machine.cuda.counts().live_streams, 0);
  QCOMPARE(machine.cuda.counts().live_events, 0);
  QCOMPARE(machine.cublas.counts().open, 0);
  QCOMPARE(machine.nccl.counts().open_comms, 0);
  QCOMPARE(machine.nccl.counts().misuses, 0);
}

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
  Machine machine;
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
  Machine machine;
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
    Machine machine({.seed = seed, .most_delay = 200us});
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
  Machine machine;
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
  Machine machine({.gpu_bytes = 500'000'000});
  const auto device = machine.device();

  const QString message = failure_of([&] { device->take_arena(Arena::kStep, 2'000'000'000); });

  QVERIFY2(message.contains("2.00 GB of a step's activations"), qPrintable(message));
  QVERIFY2(message.contains("GPU 0 has 0.43 GB free of 0.50 GB"), qPrintable(message));
  QVERIFY2(message.contains("out of memory"), qPrintable(message));
  device->take_arena(Arena::kStep, 1'000'000);
}

void CudaDeviceTest::an_operation_that_is_refused_is_named() {
  Machine machine;
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
  Machine machine({.gpus = 1 + std::ranges::max(ordinals)});
  QVERIFY(machine.group(ordinals)->world_size() == static_cast<int>(ordinals.size()));
  ordinals.back() = 7;
  const QString message = failure_of([&] { (void)machine.group(ordinals); });
  QVERIFY2(message.contains("GPU 7 is asked for"), qPrintable(message));
}

QTEST_GUILESS_MAIN(CudaDeviceTest)
#include "cuda_device_test.moc"
