// The engine on CUDA devices without a GPU (cuda_machine.h): it trains as on the processor, and what fails is said and
// leaves nobody waiting.
#include <QtTest>
#include <atomic>
#include <numeric>
#include <thread>

#include "tests/trainer/cuda_machine.h"
#include "tests/trainer/reference.h"
#include "trainer/engine/device_check.h"
#include "trainer/engine/fsdp_engine.h"

namespace {

using namespace atl;
using namespace atl::test;
using namespace std::chrono_literals;

// As engine_reference_test has them: fp32 sums of other orders.
constexpr double kForwardTolerance = 1e-5;
constexpr double kGradientTolerance = 1e-4;
constexpr double kParameterTolerance = 1e-4;
// The device check has a length that cuDNN's attention computes.
static_assert(kFusedCheckLength % kCudnnLengths == 0);
constexpr int kUploadsOfAStep = 7;  // of a rank whose share is one micro-batch

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

}  // namespace

Q_DECLARE_METATYPE(std::vector<int>)

class CudaEngineTest : public QObject {
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
  void a_step_that_got_no_memory_gets_it_the_next_time_data() { ordinal_rows(); }
  void a_step_that_got_no_memory_gets_it_the_next_time();
  void everything_is_given_back_data() { ordinal_rows(); }
  void everything_is_given_back();

 private:
  const Reference reference_;
};

void CudaEngineTest::gradients_are_those_of_the_reference() {
  QFETCH(std::vector<int>, ordinals);
  CudaMachine machine({.gpus = 2});
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

void CudaEngineTest::five_steps_are_those_of_the_reference() {
  QFETCH(std::vector<int>, ordinals);
  CudaMachine machine({.gpus = 2, .seed = 100});
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
void CudaEngineTest::steps_in_bf16_are_those_of_the_processor() {
  QFETCH(std::vector<int>, ordinals);
  CudaMachine machine({.gpus = 2, .seed = 200});
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

void CudaEngineTest::later_steps_allocate_nothing_and_ask_for_no_algorithm() {
  QFETCH(std::vector<int>, ordinals);
  CudaMachine machine({.gpus = 2, .seed = 300});
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
void CudaEngineTest::a_step_is_enqueued_while_the_one_before_it_is_not_done() {
  QFETCH(std::vector<int>, ordinals);
  const ReferenceBatch first = reference_.batch("batch.10"), second = reference_.batch("batch.11");
  const auto steps = [&](const std::function<void(FakeCuda&, Engine&, std::vector<StepReport>&)>& take) {
    CudaMachine machine({.gpus = 2, .seed = 800});
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

void CudaEngineTest::a_step_that_is_not_finite_stops_the_one_that_was_begun_after_it() {
  QFETCH(std::vector<int>, ordinals);
  CudaMachine machine({.gpus = 2, .seed = 900});
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

void CudaEngineTest::an_error_of_a_step_is_told_by_the_next_call() {
  QFETCH(std::vector<int>, ordinals);
  CudaMachine machine({.gpus = 2, .seed = 1000});
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

void CudaEngineTest::a_step_says_how_long_its_parts_took() {
  QFETCH(std::vector<int>, ordinals);
  CudaMachine machine({.gpus = 2, .seed = 700});
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

void CudaEngineTest::ranks_go_on_after_a_step_that_was_given_up() {
  QFETCH(std::vector<int>, ordinals);
  CudaMachine machine({.gpus = 2, .seed = 400});
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

void CudaEngineTest::a_rank_that_fails_is_told_of_and_keeps_nobody_waiting() {
  QFETCH(std::vector<int>, ordinals);
  CudaMachine machine({.gpus = 2, .seed = 500});
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

// The program of that step is kept, and what it computes in is not there yet: what is enqueued would lie beyond.
void CudaEngineTest::a_step_that_got_no_memory_gets_it_the_next_time() {
  QFETCH(std::vector<int>, ordinals);
  for (const char* call : {"cudaMalloc", "cudaStreamSynchronize"}) {
    CudaMachine machine({.gpus = 2, .seed = 550});
    const auto engine =
        engine_of(reference_, options_of(reference_, static_cast<int>(ordinals.size())), machine.group(ordinals));
    const ReferenceBatch batch = reference_.batch("tokens");
    machine.cuda.fail(call, 1, cudaErrorMemoryAllocation);

    const auto failed = engine->gradients(batch.view());
    const auto report = engine->gradients(batch.view());

    QVERIFY(!failed.ok());
    QVERIFY2(report.ok(), report.ok() ? "" : report.error().message.c_str());
    const auto [difference, name] = reference_.worst_tensor(report->gradients, "grad.");
    QVERIFY2(difference <= kGradientTolerance, name.c_str());
  }
}

void CudaEngineTest::everything_is_given_back() {
  QFETCH(std::vector<int>, ordinals);
  CudaMachine machine({.gpus = 2, .seed = 600});
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

QTEST_GUILESS_MAIN(CudaEngineTest)
#include "cuda_engine_test.moc"
