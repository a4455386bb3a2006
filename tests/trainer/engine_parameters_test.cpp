// Parameters and moments of an engine: how they begin, that they are read and written by parts, that they move to
// another engine; and what a run leaves frozen of them.
#include <QtTest>

#include <algorithm>

#include "net/model/initialise.h"
#include "net/model/train_only.h"
#include "tests/trainer/small_engines.h"

using namespace atl;
using namespace atl::test;

class EngineParametersTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initial_parameters_depend_on_the_seed_alone();
  void some_parameters_are_read_and_written_alone_data();
  void some_parameters_are_read_and_written_alone();
  void moments_move_to_another_engine_data();
  void moments_move_to_another_engine();
  void what_is_frozen_stays_and_the_rest_is_trained_as_ever_data();
  void what_is_frozen_stays_and_the_rest_is_trained_as_ever();
};

void EngineParametersTest::what_is_frozen_stays_and_the_rest_is_trained_as_ever_data() {
  QTest::addColumn<bool>("tied");
  QTest::addColumn<int>("local_ranks");
  QTest::addColumn<bool>("keep_gathered");
  QTest::addColumn<QStringList>("train_only");
  QTest::addColumn<int>("precision");
  const int fp32 = static_cast<int>(Precision::kFp32), bf16 = static_cast<int>(Precision::kBf16);
  const std::pair<const char*, QStringList> choices[] = {
      {"upper blocks", {"model.layers.4.*", "model.layers.5.*"}},
      {"parts of products", {"*.2.self_attn.q_proj.weight", "*.3.self_attn.v_proj.weight", "*.4.mlp.up_proj.weight"}},
      {"norms", {"*norm.weight"}},
      {"the table and one matrix", {"model.embed_tokens.weight", "*.5.self_attn.k_proj.weight"}},
      {"the last matrix of a block", {"*.3.mlp.down_proj.weight"}},
      {"what attention makes", {"*.1.self_attn.o_proj.weight", "*.5.mlp.gate_proj.weight"}}};
  for (const auto& [name, train_only] : choices) {
    for (const bool tied : {true, false}) {
      QTest::addRow("%s, %s", name, tied ? "tied" : "untied") << tied << 1 << false << train_only << fp32;
      QTest::addRow("%s, %s, three ranks", name, tied ? "tied" : "untied") << tied << 3 << false << train_only << fp32;
      QTest::addRow("%s, %s, gathered", name, tied ? "tied" : "untied") << tied << 2 << true << train_only << fp32;
    }
  }
  QTest::newRow("the head") << false << 2 << false << QStringList{"lm_head.weight"} << fp32;
  // Whole blocks: a product that is cut is rounded to bf16 in between.
  QTest::newRow("upper blocks, bf16") << true << 1 << false << choices[0].second << bf16;
  QTest::newRow("upper blocks, bf16, three ranks") << false << 3 << false << choices[0].second << bf16;
}

// Gradients of what is trained are those of the whole model, up to fp32 sums in another order where a product is cut.
void EngineParametersTest::what_is_frozen_stays_and_the_rest_is_trained_as_ever() {
  QFETCH(const bool, tied);
  QFETCH(const int, local_ranks);
  QFETCH(const bool, keep_gathered);
  QFETCH(const QStringList, train_only);
  QFETCH(const int, precision);
  const ModelConfig config = small_model(tied);
  EngineOptions options{.local_ranks = local_ranks,
                        .seed = 3,
                        .micro_batch_sequences = 1,
                        .precision = static_cast<Precision>(precision),
                        .keep_gathered = keep_gathered};
  const auto whole = Engine::create(config, options).value();
  for (const QString& pattern : train_only) options.train_only.push_back(pattern.toStdString());
  const auto part = Engine::create(config, options).value();
  const ParameterLayout layout = layout_of_training(config, options.train_only);
  const auto tokens = tokens_of(5, 16);
  const std::vector<float> before = parameters_of(*part);
  QCOMPARE(before, parameters_of(*whole));

  const GradientReport expected = whole->gradients({tokens, 5, 16}).value();
  const GradientReport got = part->gradients({tokens, 5, 16}).value();

  QCOMPARE(got.loss_nats, expected.loss_nats);
  for (const ParameterInfo& parameter : layout.parameters) {
    float largest = 0, apart = 0;
    for (std::int64_t i = parameter.offset; i < parameter.offset + parameter.numel; ++i) {
      const auto at = static_cast<std::size_t>(i);
      largest = std::max(largest, std::abs(expected.gradients[at]));
      apart = std::max(apart, std::abs(got.gradients[at] - (parameter.trained ? expected.gradients[at] : 0.0f)));
    }
    QVERIFY2(apart <= 1e-5f * largest, parameter.name.c_str());
  }
  for (int step = 0; step < 3; ++step) QVERIFY(part->train_step({tokens, 5, 16}, 1e-2f).ok());
  const std::vector<float> after = parameters_of(*part);
  const std::vector<ParameterRange> trained = fragments_of(layout, 1).value().front().ranges;
  std::vector<float> first(static_cast<std::size_t>(trained_numel(layout))), second(first.size());
  part->read_moments(trained, first, second);
  std::span<const float> moments = second;
  for (const ParameterInfo& parameter : layout.parameters) {
    const auto from = static_cast<std::size_t>(parameter.offset), count = static_cast<std::size_t>(parameter.numel);
    const auto slice = [&](const std::vector<float>& all) { return std::span(all).subspan(from, count); };
    QVERIFY2(std::ranges::equal(slice(before), slice(after)) != parameter.trained, parameter.name.c_str());
    if (!parameter.trained) continue;
    QVERIFY2(std::ranges::any_of(moments.first(count), [](float value) { return value != 0; }), parameter.name.c_str());
    moments = moments.subspan(count);
  }
  QVERIFY(moments.empty());
  QVERIFY(part->memory().kept_bytes < whole->memory().kept_bytes);
  // Moments move, as they do for a paused round.
  options.seed = 9;
  const auto other = Engine::create(config, options).value();
  std::vector<float> values(first.size());
  part->read_parameters(trained, values);
  other->write_parameters(before);
  other->write_range_values(trained, values);
  other->write_moments(trained, first, second, part->optimizer_steps());
  QVERIFY(other->train_step({tokens, 5, 16}, 1e-2f).ok());
  QVERIFY(part->train_step({tokens, 5, 16}, 1e-2f).ok());
  QCOMPARE(parameters_of(*other), parameters_of(*part));
}

void EngineParametersTest::initial_parameters_depend_on_the_seed_alone() {
  const auto one = parameters_of(*engine_of(small_model(false), 1));

  QCOMPARE(parameters_of(*engine_of(small_model(false), 4)), one);
  QVERIFY(parameters_of(*engine_of(small_model(false), 1, 4)) != one);
  // Each is a stream of its own (net/model/initialise.h), whoever draws it.
  const ParameterLayout layout = canonical_layout(small_model(false));
  std::vector<float> expected(one.size());
  for (std::size_t p = 0; p < layout.parameters.size(); ++p) {
    const ParameterInfo& parameter = layout.parameters[p];
    initialise_parameter(small_model(false), parameter, p, 3,
                         std::span(expected).subspan(static_cast<std::size_t>(parameter.offset),
                                                     static_cast<std::size_t>(parameter.numel)));
  }
  QVERIFY(one == expected);
  const auto empty = Engine::create(small_model(false), {.local_ranks = 2, .seed = std::nullopt}).value();
  QVERIFY(parameters_of(*empty) == std::vector<float>(one.size(), 0.0f));
  double squares = 0;
  for (std::size_t i = 0; i < 97 * 32; ++i) squares += static_cast<double>(one[i]) * one[i];
  const double deviation = std::sqrt(squares / (97 * 32));
  QVERIFY(std::abs(deviation - 0.02) < 0.001);  // 4 sigma of 3,104 draws
}

void EngineParametersTest::some_parameters_are_read_and_written_alone_data() {
  QTest::addColumn<int>("local_ranks");
  for (const int ranks : {1, 3}) QTest::addRow("%d ranks", ranks) << ranks;
}

void EngineParametersTest::some_parameters_are_read_and_written_alone() {
  QFETCH(const int, local_ranks);
  const auto engine = engine_of(small_model(false), local_ranks);
  const std::vector<float> before = parameters_of(*engine);
  // Beginnings and ends inside units, over several of them, and of the model.
  const std::vector<ParameterRange> ranges{{0, 1}, {1000, 20'000}, {30'001, 7}, {engine->numel() - 3, 3}};
  std::vector<float> expected, read(20'011);
  std::vector<float> other(before.size()), after = before;
  for (std::size_t i = 0; i < other.size(); ++i) other[i] = static_cast<float>(i);
  for (const ParameterRange& range : ranges) {
    for (std::int64_t i = range.offset; i < range.offset + range.numel; ++i) {
      expected.push_back(before[static_cast<std::size_t>(i)]);
      after[static_cast<std::size_t>(i)] = other[static_cast<std::size_t>(i)];
    }
  }

  engine->read_parameters(ranges, read);
  QVERIFY(read == expected);
  engine->write_parameters(ranges, other);

  QVERIFY(parameters_of(*engine) == after);
}

void EngineParametersTest::moments_move_to_another_engine_data() {
  QTest::addColumn<int>("local_ranks");
  QTest::addColumn<int>("precision");
  QTest::newRow("fp32") << 1 << static_cast<int>(Precision::kFp32);
  QTest::newRow("bf16") << 1 << static_cast<int>(Precision::kBf16);
  QTest::newRow("bf16, three ranks") << 3 << static_cast<int>(Precision::kBf16);
}

// The same bits: what a step in bf16 leaves of its rounded weights is what another engine makes of the parameters.
void EngineParametersTest::moments_move_to_another_engine() {
  QFETCH(const int, local_ranks);
  QFETCH(const int, precision);
  const auto tokens = tokens_of(4, 8);
  const auto other_tokens = tokens_of(4, 8, 6);
  EngineOptions options{.local_ranks = local_ranks, .seed = 3, .precision = static_cast<Precision>(precision)};
  const auto first = Engine::create(small_model(true), options).value();
  QVERIFY(first->train_step({tokens, 4, 8}, 1e-2f).ok());
  std::vector<float> m(static_cast<std::size_t>(first->numel()));
  std::vector<float> v(m.size());
  const std::vector<ParameterRange> whole{{0, first->numel()}};
  first->read_moments(whole, m, v);
  options.seed = 99;
  const auto second = Engine::create(small_model(true), options).value();
  second->write_parameters(parameters_of(*first));
  second->write_moments(whole, m, v, first->optimizer_steps());

  QCOMPARE(second->evaluate({other_tokens, 4, 8}).value(), first->evaluate({other_tokens, 4, 8}).value());
  QVERIFY(first->train_step({other_tokens, 4, 8}, 1e-2f).ok());
  QVERIFY(second->train_step({other_tokens, 4, 8}, 1e-2f).ok());

  QCOMPARE(parameters_of(*second), parameters_of(*first));
}

QTEST_GUILESS_MAIN(EngineParametersTest)
#include "engine_parameters_test.moc"
