// The engine computes what HuggingFace transformers and torch.optim compute, whatever the number of local ranks, and
// however it saves memory.
#include "trainer/engine/engine.h"

#include <QtTest>

#include "tests/fakes/stream_device.h"
#include "tests/trainer/reference.h"
#include "trainer/engine/fsdp_engine.h"

namespace {

using namespace atl;
using namespace atl::test;

// fp32 sums of other orders: a few ulp a matrix product, some 1e-6 over the model.
constexpr double kForwardTolerance = 1e-5;
constexpr double kGradientTolerance = 1e-4;
// AdamW divides by the root of tiny second moments, which enlarges the gradients' difference.
constexpr double kParameterTolerance = 1e-4;

// Rounding to bf16 is off by up to half of 2^-7, of numbers whose mantissas are anywhere from 1 to 2: by 0.42 * 2^-8 of
// a number in the root mean square. Errors of so many roundings in a row, independent of each other, add up as squares
// do.
double bf16_error(int roundings) { return 0.42 * 0x1p-8 * std::sqrt(roundings); }

// On the way to the logits: a block rounds its six weights, two normed rows, qkv and its turned values, probabilities,
// attended rows, gate and up, their product, and two sums; beside the blocks the two tables, the last norm and its
// weight, the logits.
int roundings_to_logits(std::int64_t blocks) { return static_cast<int>(5 + 16 * blocks); }
// And back: as many activations' gradients, by the same weights.
int roundings_to_gradients(std::int64_t blocks) { return 2 * roundings_to_logits(blocks); }

EngineOptions options_of(const Reference& reference, int local_ranks, std::int64_t micro_batch) {
  EngineOptions options;
  options.local_ranks = local_ranks;
  options.adamw = reference.adamw();
  options.clip_norm = reference.numbers.at("adamw").at("clip_grad_norm").get<double>();
  options.micro_batch_sequences = micro_batch;
  return options;
}

std::unique_ptr<Engine> engine_of(const Reference& reference, const EngineOptions& options) {
  auto engine = Engine::create(reference.model.config, options).value();
  engine->write_parameters(reference.model.parameters);
  return engine;
}

// Collectives run beside computing, in an order of chance.
std::unique_ptr<Engine> overlapping_engine_of(const Reference& reference, const EngineOptions& options) {
  auto group = std::make_unique<StreamDeviceGroup>(StreamDevices{.ranks = options.local_ranks, .seed = 1});
  auto engine = create_engine(reference.model.config, options, std::move(group)).value();
  engine->write_parameters(reference.model.parameters);
  return engine;
}

std::vector<float> floats_of(const SafetensorsFile& file, const std::string& name) { return file.floats(name).value(); }

#define QVERIFY_BELOW(difference, tolerance, what)                                                       \
  do {                                                                                                   \
    const double value_ = (difference);                                                                  \
    qInfo("%s: %.2e (at most %.0e)", std::string(what).c_str(), value_, static_cast<double>(tolerance)); \
    QVERIFY2(value_ <= (tolerance), std::string(what).c_str());                                          \
  } while (false)

}  // namespace

class EngineReferenceTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void logits_and_loss_match_data() { rank_rows(); }
  void logits_and_loss_match();
  void gradients_match_data() { rank_rows(); }
  void gradients_match();
  void five_adamw_steps_match_data() { rank_rows(); }
  void five_adamw_steps_match();
  void sampling_sees_the_last_row_of_logits();
  void what_saves_memory_or_time_changes_no_bit_data();
  void what_saves_memory_or_time_changes_no_bit();
  void bf16_is_as_near_as_roundings_let_it_data() { rank_rows(); }
  void bf16_is_as_near_as_roundings_let_it();

 private:
  static void rank_rows();
  const Reference reference_;
};

void EngineReferenceTest::rank_rows() {
  QTest::addColumn<int>("local_ranks");
  QTest::addColumn<int>("micro_batch");
  QTest::addColumn<bool>("kept");
  // Three do not divide the batch, eight are more than there are sequences.
  for (const int ranks : {1, 2, 3, 4, 8}) {
    for (const int micro_batch : {0, 1}) {
      for (const bool kept : {false, true}) {
        if (kept && ranks == 1) continue;
        QTest::addRow("%d ranks, %s%s", ranks, micro_batch == 0 ? "all at once" : "a sequence at a time",
                      kept ? ", kept gathered" : "")
            << ranks << micro_batch << kept;
      }
    }
  }
}

void EngineReferenceTest::logits_and_loss_match() {
  QFETCH(int, local_ranks);
  QFETCH(int, micro_batch);
  QFETCH(bool, kept);
  EngineOptions options = options_of(reference_, local_ranks, micro_batch);
  options.keep_gathered = kept;
  const auto engine = engine_of(reference_, options);
  const ReferenceBatch batch = reference_.batch("tokens");

  const auto logits = engine->logits(batch.view()).value();
  const double loss = engine->evaluate(batch.view()).value();

  QVERIFY_BELOW(relative_difference(logits, reference_.expected.floats("logits").value()), kForwardTolerance, "logits");
  const double expected = reference_.expected.floats("loss").value()[0];
  QVERIFY_BELOW(std::abs(loss - expected) / expected, kForwardTolerance, "loss");
}

void EngineReferenceTest::gradients_match() {
  QFETCH(int, local_ranks);
  QFETCH(int, micro_batch);
  QFETCH(bool, kept);
  EngineOptions options = options_of(reference_, local_ranks, micro_batch);
  options.keep_gathered = kept;
  const auto engine = engine_of(reference_, options);
  options.max_z_loss = reference_.numbers.at("max_z_loss").at("coefficient").get<double>();
  const auto with_max_z_loss = engine_of(reference_, options);
  const ReferenceBatch batch = reference_.batch("tokens");

  const GradientReport report = engine->gradients(batch.view()).value();
  const GradientReport penalised = with_max_z_loss->gradients(batch.view()).value();

  const double expected = reference_.expected.floats("loss").value()[0];
  QVERIFY_BELOW(std::abs(report.loss_nats - expected) / expected, kForwardTolerance, "loss");
  const double with = reference_.expected.floats("loss_with_max_z_loss_2e-4").value()[0];
  QVERIFY_BELOW(std::abs(penalised.loss_nats + penalised.max_z_loss - with) / with, kForwardTolerance,
                "loss with max-z-loss");
  const auto [difference, name] = reference_.worst_tensor(report.gradients, "grad.");
  QVERIFY_BELOW(difference, kGradientTolerance, "gradient of " + name);
}

void EngineReferenceTest::five_adamw_steps_match() {
  QFETCH(int, local_ranks);
  QFETCH(int, micro_batch);
  QFETCH(bool, kept);
  EngineOptions options = options_of(reference_, local_ranks, micro_batch);
  options.keep_gathered = kept;
  const auto engine = engine_of(reference_, options);
  const auto& adamw = reference_.numbers.at("adamw");

  for (std::size_t step = 0; step < 5; ++step) {
    const ReferenceBatch batch = reference_.batch("batch." + std::to_string(10 + step));
    const StepReport report = engine->train_step(batch.view(), adamw.at("lr").get<float>()).value();
    const double loss = adamw.at("losses")[step].get<double>();
    const double norm = adamw.at("grad_norms")[step].get<double>();
    QVERIFY2(std::abs(report.loss_nats - loss) / loss <= kForwardTolerance, "step loss");
    QVERIFY2(std::abs(report.gradient_norm - norm) / norm <= kGradientTolerance, "step gradient norm");
    QCOMPARE(report.tokens, batch.sequences * batch.length);
  }

  std::vector<float> parameters(static_cast<std::size_t>(engine->numel()));
  engine->read_parameters(parameters);
  const auto [difference, name] = reference_.worst_tensor(parameters, "adamw5.");
  QVERIFY_BELOW(difference, kParameterTolerance, "after 5 steps " + name);
}

void EngineReferenceTest::sampling_sees_the_last_row_of_logits() {
  const auto engine = engine_of(reference_, options_of(reference_, 2, 0));
  const ReferenceBatch batch = reference_.batch("tokens");
  const auto prompt = std::span(batch.tokens).first(static_cast<std::size_t>(batch.length));

  const auto next = engine->next_token_logits(prompt).value();

  const auto all = reference_.expected.floats("logits").value();
  const auto last = std::span(all).subspan((prompt.size() - 1) * next.size(), next.size());
  QVERIFY_BELOW(relative_difference(next, last), kForwardTolerance, "next token logits");
}

void EngineReferenceTest::what_saves_memory_or_time_changes_no_bit_data() { rank_rows(); }

void EngineReferenceTest::what_saves_memory_or_time_changes_no_bit() {
  QFETCH(int, local_ranks);
  QFETCH(int, micro_batch);
  QFETCH(bool, kept);
  const ReferenceBatch batch = reference_.batch("tokens");
  for (const Precision precision : {Precision::kFp32, Precision::kBf16}) {
    EngineOptions options = options_of(reference_, local_ranks, micro_batch);
    options.precision = precision;
    options.keep_gathered = kept;
    const GradientReport expected = engine_of(reference_, options)->gradients(batch.view()).value();

    for (const Recompute recompute : {Recompute::kNone, Recompute::kCheap, Recompute::kAll}) {
      options.recompute = recompute;
      for (const auto& engine : {engine_of(reference_, options), overlapping_engine_of(reference_, options)}) {
        const GradientReport report = engine->gradients(batch.view()).value();
        QVERIFY(report.loss_nats == expected.loss_nats);
        QVERIFY(report.gradients == expected.gradients);
      }
    }
  }
}

// And all in all no further from the exact numbers than HuggingFace's bf16, which rounds weights' gradients and more of
// the activations. Of one tensor chance has its part: the errors' root mean square over the 64 values of a norm is
// uncertain by 1 / sqrt(2 * 64) = 0.09, that of the ratio of two by 0.125; twice that is allowed.
void EngineReferenceTest::bf16_is_as_near_as_roundings_let_it() {
  QFETCH(int, local_ranks);
  QFETCH(int, micro_batch);
  QFETCH(bool, kept);
  const auto file = SafetensorsFile::open(reference_directory() / "expected_bf16.safetensors");
  if (!file.ok()) QSKIP("the directory has no numbers in bf16");
  constexpr double kChance = 1.25;
  EngineOptions options = options_of(reference_, local_ranks, micro_batch);
  options.precision = Precision::kBf16;
  options.keep_gathered = kept;
  const auto engine = engine_of(reference_, options);
  const ReferenceBatch batch = reference_.batch("tokens");
  const std::int64_t blocks = reference_.model.config.num_hidden_layers;
  const double to_logits = bf16_error(roundings_to_logits(blocks));
  const double to_gradients = bf16_error(roundings_to_gradients(blocks));

  const auto logits = engine->logits(batch.view()).value();
  const GradientReport report = engine->gradients(batch.view()).value();

  // Errors of logits are of either sign, and the loss is a mean over many: theirs are far less than one logit's.
  const double loss = floats_of(file.value(), "fp64.loss")[0];
  QVERIFY_BELOW(std::abs(report.loss_nats - loss) / loss, to_logits / 10, "loss");
  double errors = 0, their_errors = 0;
  const auto compare = [&](const std::string& name, std::span<const float> got, double tolerance) {
    const auto exactly = floats_of(file.value(), "fp64." + name);
    const auto theirs = floats_of(file.value(), "bf16." + name);
    const double error = relative_difference(got, exactly);
    const double their_error = relative_difference(theirs, exactly);
    errors += error * error;
    their_errors += their_error * their_error;
    const bool near = error <= tolerance && error <= kChance * their_error &&
                      relative_difference(got, theirs) <= std::sqrt(2.0) * tolerance;
    if (!near || name == "logits") {
      qInfo("%s: %.2e from exact (at most %.2e), HuggingFace's %.2e", name.c_str(), error, tolerance, their_error);
    }
    return near;
  };
  QVERIFY(compare("logits", logits, to_logits));
  for (const ParameterInfo& parameter : reference_.layout.parameters) {
    const auto mine =
        std::span(report.gradients)
            .subspan(static_cast<std::size_t>(parameter.offset), static_cast<std::size_t>(parameter.numel));
    QVERIFY(compare("grad." + parameter.name, mine, to_gradients));
  }
  QVERIFY_BELOW(std::sqrt(errors / their_errors), 1.0, "error beside HuggingFace's");
}

QTEST_GUILESS_MAIN(EngineReferenceTest)
#include "engine_reference_test.moc"
