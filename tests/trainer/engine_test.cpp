// The engine's own rules: determinism, sharded memory, what a bad step leaves behind.
#include <QtTest>

#include <algorithm>
#include <limits>

#include "net/base/file.h"
#include "net/step/memory_needs.h"
#include "tests/trainer/small_engines.h"

namespace {

using namespace atl;
using namespace atl::test;

ModelConfig preset(const std::string& name) {
  return model_config_from_json(read_file(std::string(ATOLL_MODEL_PRESETS_DIR "/") + name + ".json").value()).value();
}

// 21 million parameters, with a head that is not tied.
ModelConfig medium() {
  ModelConfig config = preset("demo");
  config.vocab_size = 8000;
  config.hidden_size = 384;
  config.intermediate_size = 1024;
  config.num_hidden_layers = 8;
  config.num_attention_heads = 6;
  config.head_dim = 64;
  config.tie_word_embeddings = false;
  return config;
}

// Attention is wider than the rest.
ModelConfig wide_heads() {
  ModelConfig config = preset("demo");
  config.num_attention_heads = 16;
  config.num_key_value_heads = 8;
  config.head_dim = 64;
  config.intermediate_size = 128;
  return config;
}

ModelConfig model_named(const QString& name) {
  return name == "medium" ? medium() : name == "wide heads" ? wide_heads() : preset(name.toStdString());
}

}  // namespace

class EngineTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void the_same_steps_give_the_same_bits();
  void a_micro_batch_changes_no_result_beyond_rounding_data();
  void a_micro_batch_changes_no_result_beyond_rounding();
  void every_parameter_has_a_gradient_data();
  void every_parameter_has_a_gradient();
  void a_tied_table_has_the_gradients_of_both_its_uses_data();
  void a_tied_table_has_the_gradients_of_both_its_uses();
  void gradients_are_of_the_last_batch_alone_data();
  void gradients_are_of_the_last_batch_alone();
  void a_step_that_is_not_finite_changes_nothing();
  void a_step_that_is_given_up_changes_nothing_data();
  void a_step_that_is_given_up_changes_nothing();
  void bad_batches_are_refused();
  void a_step_takes_the_memory_that_was_worked_out_data();
  void a_step_takes_the_memory_that_was_worked_out();
  void memory_is_taken_once();
  void padding_changes_nothing();
  void a_clipped_step_is_no_longer_than_the_clip_norm();
};

void EngineTest::the_same_steps_give_the_same_bits() {
  const auto tokens = tokens_of(5, 16);
  std::vector<std::vector<float>> results;
  for (int repeat = 0; repeat < 2; ++repeat) {
    const auto engine = engine_of(small_model(true), 3);
    for (int step = 0; step < 3; ++step) QVERIFY(engine->train_step({tokens, 5, 16}, 1e-2f).ok());
    results.push_back(parameters_of(*engine));
  }
  QCOMPARE(results[0], results[1]);
}

void EngineTest::a_micro_batch_changes_no_result_beyond_rounding_data() {
  QTest::addColumn<int>("local_ranks");
  QTest::addColumn<int>("micro_batch");
  for (const int local_ranks : {1, 3}) {
    for (const int micro_batch : {1, 2, 3, 5, 100}) {
      QTest::addRow("%d ranks, %d at once", local_ranks, micro_batch) << local_ranks << micro_batch;
    }
  }
}

// Gradients of parts are added up, each divided by the tokens of the whole batch: fp32 sums in another order, some 1e-6
// of the largest value. AdamW divides by the root of tiny second moments, which enlarges that.
void EngineTest::a_micro_batch_changes_no_result_beyond_rounding() {
  QFETCH(const int, local_ranks);
  QFETCH(const int, micro_batch);
  const auto tokens = tokens_of(7, 16);
  EngineOptions options{.local_ranks = local_ranks, .seed = 3, .max_z_loss = 1e-3};
  const auto whole = Engine::create(small_model(true), options).value();
  options.micro_batch_sequences = micro_batch;
  const auto parts = Engine::create(small_model(true), options).value();
  const auto largest_difference = [](const std::vector<float>& a, const std::vector<float>& b) {
    float difference = 0, largest = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      difference = std::max(difference, std::abs(a[i] - b[i]));
      largest = std::max(largest, std::abs(a[i]));
    }
    return static_cast<double>(difference / largest);
  };

  const GradientReport expected = whole->gradients({tokens, 7, 16}).value();
  const GradientReport got = parts->gradients({tokens, 7, 16}).value();

  QVERIFY(std::abs(got.loss_nats - expected.loss_nats) < 1e-6 * expected.loss_nats);
  QVERIFY(std::abs(got.max_z_loss - expected.max_z_loss) < 1e-5 * expected.max_z_loss);
  QVERIFY2(largest_difference(expected.gradients, got.gradients) < 1e-5, "gradients");
  for (int step = 0; step < 3; ++step) {
    QVERIFY(whole->train_step({tokens, 7, 16}, 1e-3f).ok());
    QVERIFY(parts->train_step({tokens, 7, 16}, 1e-3f).ok());
  }
  QVERIFY2(largest_difference(parameters_of(*whole), parameters_of(*parts)) < 1e-4, "parameters after three steps");
  const double loss = whole->evaluate({tokens, 7, 16}).value();
  QVERIFY(std::abs(parts->evaluate({tokens, 7, 16}).value() - loss) < 1e-5 * loss);
}

void EngineTest::every_parameter_has_a_gradient_data() {
  QTest::addColumn<bool>("tied");
  QTest::newRow("tied") << true;
  QTest::newRow("untied") << false;
}

// What the layout has and nobody computes would be trained by nothing.
void EngineTest::every_parameter_has_a_gradient() {
  QFETCH(const bool, tied);
  const ModelConfig config = small_model(tied);
  const auto tokens = tokens_of(4, 16);

  const GradientReport report = engine_of(config, 1)->gradients({tokens, 4, 16}).value();

  for (const ParameterInfo& parameter : canonical_layout(config).parameters) {
    const auto own =
        std::span(report.gradients)
            .subspan(static_cast<std::size_t>(parameter.offset), static_cast<std::size_t>(parameter.numel));
    QVERIFY2(std::ranges::any_of(own, [](float g) { return g != 0; }), parameter.name.c_str());
  }
}

void EngineTest::a_tied_table_has_the_gradients_of_both_its_uses_data() {
  QTest::addColumn<int>("local_ranks");
  QTest::addColumn<int>("micro_batch");
  QTest::addColumn<bool>("kept");
  for (const int ranks : {1, 2, 3}) {
    for (const int micro_batch : {0, 1}) {
      for (const bool kept : {false, true}) {
        if (kept && ranks == 1) continue;
        QTest::addRow("%d ranks, %d at once%s", ranks, micro_batch, kept ? ", kept gathered" : "")
            << ranks << micro_batch << kept;
      }
    }
  }
}

// Of two models that compute the same, one with two copies of the table: its gradients' sum. fp32 sums in another
// order, some 1e-6 of the largest value.
void EngineTest::a_tied_table_has_the_gradients_of_both_its_uses() {
  QFETCH(const int, local_ranks);
  QFETCH(const int, micro_batch);
  QFETCH(const bool, kept);
  const EngineOptions options{
      .local_ranks = local_ranks, .seed = 3, .micro_batch_sequences = micro_batch, .keep_gathered = kept};
  const auto tied = Engine::create(small_model(true), options).value();
  const auto untied = Engine::create(small_model(false), options).value();
  const auto table = static_cast<std::ptrdiff_t>(97 * 32);
  std::vector<float> parameters = parameters_of(*tied);
  const auto numel = static_cast<std::ptrdiff_t>(parameters.size());
  parameters.insert(parameters.end(), parameters.begin(), parameters.begin() + table);
  untied->write_parameters(parameters);
  const auto tokens = tokens_of(5, 16);

  const GradientReport got = tied->gradients({tokens, 5, 16}).value();
  const GradientReport both = untied->gradients({tokens, 5, 16}).value();

  QVERIFY(std::abs(got.loss_nats - both.loss_nats) < 1e-6 * both.loss_nats);
  float largest = 0, difference = 0;
  for (std::ptrdiff_t i = 0; i < numel; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const float second = i < table ? both.gradients[static_cast<std::size_t>(numel + i)] : 0;
    const float expected = both.gradients[at] + second;
    largest = std::max(largest, std::abs(expected));
    difference = std::max(difference, std::abs(got.gradients[at] - expected));
  }
  QVERIFY(largest > 0 && difference < 1e-5f * largest);
}

void EngineTest::gradients_are_of_the_last_batch_alone_data() {
  QTest::addColumn<bool>("kept");
  QTest::newRow("gathered anew") << false;
  QTest::newRow("kept gathered") << true;
}

// Of the second batch, which has no sequence for two of the ranks.
void EngineTest::gradients_are_of_the_last_batch_alone() {
  QFETCH(const bool, kept);
  const EngineOptions options{.local_ranks = 3, .seed = 3, .keep_gathered = kept};
  const auto engine = Engine::create(small_model(true), options).value();
  const auto fresh = Engine::create(small_model(true), options).value();
  const auto many = tokens_of(6, 16), one = tokens_of(1, 16, 6);

  QVERIFY(engine->gradients({many, 6, 16}).ok());

  QVERIFY(engine->gradients({one, 1, 16}).value().gradients == fresh->gradients({one, 1, 16}).value().gradients);
}

void EngineTest::a_step_that_is_not_finite_changes_nothing() {
  const auto engine = engine_of(small_model(false), 2);
  const auto tokens = tokens_of(4, 8);
  auto poisoned = parameters_of(*engine);
  poisoned.back() = std::numeric_limits<float>::quiet_NaN();
  engine->write_parameters(poisoned);

  const auto report = engine->train_step({tokens, 4, 8}, 1e-3f);

  QVERIFY(!report.ok());
  QCOMPARE(report.error().code, ErrorCode::kNonFinite);
  QCOMPARE(engine->optimizer_steps(), 0);
  auto after = parameters_of(*engine);
  after.back() = poisoned.back() = 0;
  QCOMPARE(after, poisoned);
}

void EngineTest::a_step_that_is_given_up_changes_nothing_data() {
  QTest::addColumn<int>("local_ranks");
  QTest::newRow("one rank") << 1;
  QTest::newRow("three ranks") << 3;
}

void EngineTest::a_step_that_is_given_up_changes_nothing() {
  QFETCH(int, local_ranks);
  const auto tokens = tokens_of(12, 16);
  const TokenBatch batch{tokens, 12, 16};
  EngineOptions options{.local_ranks = local_ranks, .seed = 3, .micro_batch_sequences = 1};
  const auto never = Engine::create(small_model(true), options).value();
  int passes = 0, most = 2;
  options.on_micro_batch = [&] { return ++passes < most; };
  const auto given_up = Engine::create(small_model(true), options).value();
  const auto before = parameters_of(*given_up);

  const auto step = given_up->train_step(batch, 1e-2f);
  const auto loss = given_up->evaluate(batch);

  QCOMPARE(step.error().code, ErrorCode::kAborted);
  QCOMPARE(loss.error().code, ErrorCode::kAborted);
  QCOMPARE(passes, 3);  // two of the step, one of the evaluation
  QVERIFY(parameters_of(*given_up) == before);
  QCOMPARE(given_up->optimizer_steps(), std::int64_t{0});
  most = 1000;
  QVERIFY(given_up->train_step(batch, 1e-2f).ok());
  QVERIFY(never->train_step(batch, 1e-2f).ok());
  QVERIFY(parameters_of(*given_up) == parameters_of(*never));
}

void EngineTest::bad_batches_are_refused() {
  const auto engine = engine_of(small_model(false), 1);
  const std::vector<std::int32_t> outside{1, 2, 97};
  const std::vector<std::int32_t> negative{1, -2, 9};

  QVERIFY(!engine->evaluate({outside, 1, 2}).ok());
  QVERIFY(!engine->evaluate({negative, 1, 2}).ok());
  QVERIFY(!engine->evaluate({negative, 2, 2}).ok());
  QVERIFY(!engine->evaluate({{}, 0, 2}).ok());
  QVERIFY(!engine->next_token_logits({}).ok());
}

void EngineTest::a_step_takes_the_memory_that_was_worked_out_data() {
  QTest::addColumn<QString>("model");
  QTest::addColumn<int>("local_ranks");
  QTest::addColumn<int>("sequences");
  QTest::addColumn<int>("length");
  QTest::addColumn<int>("micro_batch");
  QTest::addColumn<AttentionScope>("attention");
  constexpr auto kPacked = AttentionScope::kPacked, kDocument = AttentionScope::kDocument;
  QTest::newRow("demo, all at once") << "demo" << 1 << 4 << 256 << 0 << kPacked;
  QTest::newRow("demo, one at once") << "demo" << 1 << 4 << 256 << 1 << kPacked;
  QTest::newRow("demo, two ranks") << "demo" << 2 << 4 << 256 << 1 << kPacked;
  QTest::newRow("demo, within documents") << "demo" << 2 << 4 << 256 << 2 << kDocument;
  QTest::newRow("medium, two at once") << "medium" << 1 << 4 << 64 << 2 << kPacked;
  QTest::newRow("medium, two ranks") << "medium" << 2 << 4 << 64 << 1 << kPacked;
  QTest::newRow("wide heads") << "wide heads" << 1 << 2 << 256 << 1 << kPacked;
  QTest::newRow("150m") << "150m" << 1 << 1 << 16 << 0 << kPacked;
}

// To the byte; 1b and 10b would not fit everywhere, and are laid out by the same lines.
void EngineTest::a_step_takes_the_memory_that_was_worked_out() {
  QFETCH(const QString, model);
  QFETCH(const int, local_ranks);
  QFETCH(const int, sequences);
  QFETCH(const int, length);
  QFETCH(const int, micro_batch);
  QFETCH(const AttentionScope, attention);
  const ModelConfig config = model_named(model);
  const MemoryNeeds needs = memory_needs(config, {.sequences_per_step = sequences,
                                                  .sequence_length = length,
                                                  .attention = attention,
                                                  .island = {.local_ranks = local_ranks, .micro_batch = micro_batch}});
  const auto engine =
      Engine::create(config, {.local_ranks = local_ranks, .micro_batch_sequences = micro_batch, .attention = attention})
          .value();
  const auto tokens = tokens_of(sequences, length);

  QVERIFY(engine->train_step({tokens, sequences, length}, 1e-3f).ok());
  QVERIFY(engine->evaluate({tokens, sequences, length}).ok());

  const EngineMemory memory = engine->memory();
  QCOMPARE(static_cast<std::uint64_t>(memory.kept_bytes * local_ranks), needs.engine);
  QCOMPARE(static_cast<std::uint64_t>(memory.step_bytes * local_ranks), needs.step);
}

void EngineTest::memory_is_taken_once() {
  const auto engine = engine_of(small_model(true), 2);
  const auto tokens = tokens_of(4, 16);
  QVERIFY(engine->train_step({tokens, 4, 16}, 1e-3f).ok());
  const EngineMemory once = engine->memory();
  QVERIFY(once.step_bytes > 0);

  QVERIFY(engine->train_step({tokens, 4, 16}, 1e-3f).ok());
  QVERIFY(engine->evaluate({tokens, 4, 16}).ok());

  QCOMPARE(engine->memory().step_bytes, once.step_bytes);
}

// A model whose units 5 ranks do not divide is trained as by one: what stands behind the parameters changes nothing,
// not even the gradient's norm.
void EngineTest::padding_changes_nothing() {
  const auto tokens = tokens_of(5, 16);
  for (const bool kept : {false, true}) {
    const auto one = engine_of(small_model(false), 1);
    const auto five = Engine::create(small_model(false), {.local_ranks = 5, .seed = 3, .keep_gathered = kept}).value();
    for (int step = 0; step < 5; ++step) {
      const StepReport expected = one->train_step({tokens, 5, 16}, 1e-2f).value();
      const StepReport got = five->train_step({tokens, 5, 16}, 1e-2f).value();
      // fp32 sums of ranks in another order, for up to five steps.
      QVERIFY(std::abs(got.gradient_norm - expected.gradient_norm) < 1e-4 * expected.gradient_norm);
    }
  }
}

void EngineTest::a_clipped_step_is_no_longer_than_the_clip_norm() {
  const auto tokens = tokens_of(4, 16);
  const auto first_moments = [&](double clip_norm, double* norm) {
    const auto engine = Engine::create(small_model(true), {.seed = 3, .clip_norm = clip_norm}).value();
    *norm = engine->train_step({tokens, 4, 16}, 1e-2f).value().gradient_norm;
    std::vector<float> m(static_cast<std::size_t>(engine->numel())), v(m.size());
    engine->read_moments(std::vector<ParameterRange>{{0, engine->numel()}}, m, v);
    double squares = 0;
    for (const float value : m) squares += static_cast<double>(value) * value;
    return std::sqrt(squares) / (1 - AdamWHyper{}.beta1);  // of the first step: the clipped gradient's norm
  };
  double norm = 0;

  const double never = first_moments(0, &norm);

  // fp32 moments, of 6e-8 each.
  QVERIFY(std::abs(never - norm) < 1e-5 * norm);
  QVERIFY(std::abs(first_moments(norm / 4, &norm) - never / 4) < 1e-5 * never);
  QVERIFY(std::abs(first_moments(4 * norm, &norm) - never) < 1e-5 * never);
}

QTEST_GUILESS_MAIN(EngineTest)
#include "engine_test.moc"
