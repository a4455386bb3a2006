// The engine computes what HuggingFace transformers and torch.optim compute, whatever the number of local ranks.
#include "trainer/engine/engine.h"

#include <QtTest>

#include "tests/trainer/reference.h"

namespace {

using namespace atl;
using namespace atl::test;

// fp32 sums of other orders: a few ulp a matrix product, some 1e-6 over the model.
constexpr double kForwardTolerance = 1e-5;
constexpr double kGradientTolerance = 1e-4;
// AdamW divides by the root of tiny second moments, which enlarges the gradients' difference.
constexpr double kParameterTolerance = 1e-4;

std::unique_ptr<Engine> engine_of(const Reference& reference, int local_ranks, std::int64_t micro_batch = 0,
                                  double max_z_loss = 0) {
  EngineOptions options;
  options.local_ranks = local_ranks;
  options.adamw = reference.adamw();
  options.clip_norm = reference.numbers.at("adamw").at("clip_grad_norm").get<double>();
  options.max_z_loss = max_z_loss;
  options.micro_batch_sequences = micro_batch;
  auto engine = Engine::create(reference.model.config, options).value();
  engine->write_parameters(reference.model.parameters);
  return engine;
}

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

 private:
  static void rank_rows();
  const Reference reference_;
};

void EngineReferenceTest::rank_rows() {
  QTest::addColumn<int>("local_ranks");
  QTest::addColumn<int>("micro_batch");
  QTest::newRow("1 rank") << 1 << 0;
  QTest::newRow("2 ranks") << 2 << 0;
  QTest::newRow("3 ranks, which do not divide the batch") << 3 << 0;
  QTest::newRow("4 ranks") << 4 << 0;
  QTest::newRow("more ranks than sequences") << 8 << 0;
  QTest::newRow("1 rank, a sequence at a time") << 1 << 1;
  QTest::newRow("2 ranks, a sequence at a time") << 2 << 1;
}

void EngineReferenceTest::logits_and_loss_match() {
  QFETCH(int, local_ranks);
  QFETCH(int, micro_batch);
  const auto engine = engine_of(reference_, local_ranks, micro_batch);
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
  const auto engine = engine_of(reference_, local_ranks, micro_batch);
  const double coefficient = reference_.numbers.at("max_z_loss").at("coefficient").get<double>();
  const auto with_max_z_loss = engine_of(reference_, local_ranks, micro_batch, coefficient);
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
  const auto engine = engine_of(reference_, local_ranks, micro_batch);
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
  const auto engine = engine_of(reference_, 2);
  const ReferenceBatch batch = reference_.batch("tokens");
  const auto prompt = std::span(batch.tokens).first(static_cast<std::size_t>(batch.length));

  const auto next = engine->next_token_logits(prompt).value();

  const auto all = reference_.expected.floats("logits").value();
  const auto last = std::span(all).subspan((prompt.size() - 1) * next.size(), next.size());
  QVERIFY_BELOW(relative_difference(next, last), kForwardTolerance, "next token logits");
}

QTEST_GUILESS_MAIN(EngineReferenceTest)
#include "engine_reference_test.moc"
