// Steps that are begun before the one before them is finished: the same bits as one after the other, results of the
// right step, and what a step that fails leaves of those around it. On devices that do nothing before they are waited
// for, and on this processor, which has done everything when it was begun.
#include <QtTest>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "tests/fakes/stream_device.h"
#include "trainer/device/cpu_device_group.h"
#include "trainer/engine/fsdp_engine.h"

namespace {

using namespace atl;
using namespace atl::test;

constexpr std::int64_t kSequences = 6, kLength = 4;
constexpr std::int32_t kVocabulary = 19;
constexpr std::int32_t kBroken = 18;  // the token whose embedding a test may spoil; no good batch has it

ModelConfig tiny_model() {
  ModelConfig config;
  config.vocab_size = kVocabulary;
  config.hidden_size = 8;
  config.intermediate_size = 12;
  config.num_hidden_layers = 3;
  config.num_attention_heads = 2;
  config.num_key_value_heads = 1;
  config.head_dim = 4;
  return config;
}

struct Batch {
  explicit Batch(unsigned seed, bool good = true) : tokens(kSequences * (kLength + 1)) {
    std::mt19937 random(seed);
    for (auto& token : tokens) token = static_cast<std::int32_t>(random() % kBroken);
    if (!good) tokens.front() = kBroken;
  }
  TokenBatch view() const { return {tokens, kSequences, kLength}; }
  std::vector<std::int32_t> tokens;
};

struct Kind {
  bool late = true;
  int ranks = 1;
  Precision precision = Precision::kFp32;
};

std::unique_ptr<DeviceGroup> devices_of(const Kind& kind) {
  if (kind.late) return std::make_unique<StreamDeviceGroup>(StreamDevices{.ranks = kind.ranks, .seed = 7});
  return std::make_unique<CpuDeviceGroup>(kind.ranks, 1, std::chrono::minutes(5));
}

std::unique_ptr<Engine> engine_of(const Kind& kind, const std::function<bool()>& on_micro_batch = {}) {
  EngineOptions options{.local_ranks = kind.ranks, .seed = 3, .max_z_loss = 1e-3, .micro_batch_sequences = 1};
  options.precision = kind.precision;
  options.on_micro_batch = on_micro_batch;
  return create_engine(tiny_model(), options, devices_of(kind)).value();
}

// Bits: a spoilt parameter is the same as itself.
using Bits = std::vector<std::uint32_t>;
Bits bits_of(std::span<const float> values) {
  Bits bits(values.size());
  std::memcpy(bits.data(), values.data(), values.size_bytes());
  return bits;
}

std::vector<float> parameters_of(const Engine& engine) {
  std::vector<float> values(static_cast<std::size_t>(engine.numel()));
  engine.read_parameters(values);
  return values;
}

// Parameters and moments.
Bits state_of(const Engine& engine) {
  const auto numel = static_cast<std::size_t>(engine.numel());
  std::vector<float> values(3 * numel);
  const std::span all(values);
  engine.read_parameters(all.first(numel));
  engine.read_moments(std::vector<ParameterRange>{{0, engine.numel()}}, all.subspan(numel, numel), all.last(numel));
  return bits_of(values);
}

void spoil(Engine& engine) {
  auto values = parameters_of(engine);
  values[static_cast<std::size_t>(kBroken) * 8] = std::numeric_limits<float>::quiet_NaN();  // the table comes first
  engine.write_parameters(values);
}

void kind_rows() {
  QTest::addColumn<Kind>("kind");
  for (const int ranks : {1, 3}) {
    for (const bool late : {true, false}) {
      for (const Precision precision : {Precision::kFp32, Precision::kBf16}) {
        QTest::addRow("%s, %d ranks, %s", late ? "late" : "at once", ranks, precision_name(precision).data())
            << Kind{late, ranks, precision};
      }
    }
  }
}

bool same(const StepReport& a, const StepReport& b) {
  return a.loss_nats == b.loss_nats && a.max_z_loss == b.max_z_loss && a.gradient_norm == b.gradient_norm &&
         a.tokens == b.tokens;
}

}  // namespace

Q_DECLARE_METATYPE(Kind)

class StepsAheadTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void a_step_ahead_changes_no_bit_data() { kind_rows(); }
  void a_step_ahead_changes_no_bit();
  void the_tokens_are_free_when_a_step_is_begun_data() { kind_rows(); }
  void the_tokens_are_free_when_a_step_is_begun();
  void a_step_that_is_not_finite_is_told_of_itself_and_stops_the_next_data() { kind_rows(); }
  void a_step_that_is_not_finite_is_told_of_itself_and_stops_the_next();
  void what_is_read_and_written_comes_after_the_steps_under_way_data() { kind_rows(); }
  void what_is_read_and_written_comes_after_the_steps_under_way();
  void an_evaluation_takes_nothing_from_a_step_under_way_data() { kind_rows(); }
  void an_evaluation_takes_nothing_from_a_step_under_way();
  void a_step_that_is_given_up_leaves_the_one_before_it_data() { kind_rows(); }
  void a_step_that_is_given_up_leaves_the_one_before_it();
  void two_steps_are_under_way_at_most();
};

void StepsAheadTest::a_step_ahead_changes_no_bit() {
  QFETCH(const Kind, kind);
  const auto plain = engine_of({false, kind.ranks, kind.precision}), ahead = engine_of(kind);
  QCOMPARE(ahead->steps_ahead(), kind.late ? 1 : 0);
  constexpr unsigned kSteps = 5;

  std::vector<StepReport> reports;
  for (unsigned step = 0; step < kSteps; ++step) {
    QVERIFY(ahead->begin_step(Batch(step).view(), 1e-2f).ok());
    if (ahead->steps_under_way() == 2) reports.push_back(ahead->finish_step().value());
  }
  reports.push_back(ahead->finish_step().value());

  QCOMPARE(ahead->steps_under_way(), 0);
  for (unsigned step = 0; step < kSteps; ++step) {
    QVERIFY(same(reports.at(step), plain->train_step(Batch(step).view(), 1e-2f).value()));
  }
  QVERIFY(state_of(*ahead) == state_of(*plain));
  QCOMPARE(ahead->optimizer_steps(), std::int64_t{kSteps});
}

void StepsAheadTest::the_tokens_are_free_when_a_step_is_begun() {
  QFETCH(const Kind, kind);
  const auto plain = engine_of(kind), ahead = engine_of(kind);
  Batch batch(1);

  QVERIFY(ahead->begin_step(batch.view(), 1e-2f).ok());
  std::ranges::fill(batch.tokens, 0);
  const StepReport report = ahead->finish_step().value();

  QVERIFY(same(report, plain->train_step(Batch(1).view(), 1e-2f).value()));
}

void StepsAheadTest::a_step_that_is_not_finite_is_told_of_itself_and_stops_the_next() {
  QFETCH(const Kind, kind);
  const auto plain = engine_of(kind), ahead = engine_of(kind);
  spoil(*plain);
  spoil(*ahead);
  const StepReport expected = plain->train_step(Batch(1).view(), 1e-2f).value();

  QVERIFY(ahead->begin_step(Batch(1).view(), 1e-2f).ok());
  QVERIFY(ahead->begin_step(Batch(2, /*good=*/false).view(), 1e-2f).ok());
  const auto first = ahead->finish_step();
  QVERIFY(ahead->begin_step(Batch(3).view(), 1e-2f).ok());
  const auto second = ahead->finish_step();
  const auto third = ahead->finish_step();

  QVERIFY(same(first.value(), expected));
  QCOMPARE(second.error().code, ErrorCode::kNonFinite);
  QVERIFY2(second.error().message.starts_with("step 2: loss "), second.error().message.c_str());
  QCOMPARE(third.error().code, ErrorCode::kNonFinite);
  QVERIFY2(third.error().message.starts_with("step 3 was not taken"), third.error().message.c_str());
  QCOMPARE(ahead->optimizer_steps(), std::int64_t{1});
  QVERIFY(state_of(*ahead) == state_of(*plain));
  // All of it was told: the next one is the second.
  QVERIFY(same(ahead->train_step(Batch(4).view(), 1e-2f).value(), plain->train_step(Batch(4).view(), 1e-2f).value()));
  QVERIFY(state_of(*ahead) == state_of(*plain));
}

void StepsAheadTest::what_is_read_and_written_comes_after_the_steps_under_way() {
  QFETCH(const Kind, kind);
  const auto plain = engine_of(kind), ahead = engine_of(kind);
  const auto initial = parameters_of(*plain);
  QVERIFY(plain->train_step(Batch(1).view(), 1e-2f).ok());

  QVERIFY(ahead->begin_step(Batch(1).view(), 1e-2f).ok());
  QVERIFY(state_of(*ahead) == state_of(*plain));
  QVERIFY(ahead->begin_step(Batch(2).view(), 1e-2f).ok());
  ahead->write_parameters(initial);

  QVERIFY(bits_of(parameters_of(*ahead)) == bits_of(initial));
  QVERIFY(ahead->finish_step().ok());
  QVERIFY(ahead->finish_step().ok());
  QVERIFY(bits_of(parameters_of(*ahead)) == bits_of(initial));
  QCOMPARE(ahead->optimizer_steps(), std::int64_t{2});
}

void StepsAheadTest::an_evaluation_takes_nothing_from_a_step_under_way() {
  QFETCH(const Kind, kind);
  const auto plain = engine_of(kind), ahead = engine_of(kind);
  spoil(*plain);
  spoil(*ahead);
  const StepReport expected = plain->train_step(Batch(1).view(), 1e-2f).value();
  const double loss = plain->evaluate(Batch(9).view()).value();

  QVERIFY(ahead->begin_step(Batch(1).view(), 1e-2f).ok());
  QCOMPARE(ahead->evaluate(Batch(9).view()).value(), loss);
  QVERIFY(same(ahead->finish_step().value(), expected));
  // Nor does it hide that a step was not finite.
  QVERIFY(ahead->begin_step(Batch(2, /*good=*/false).view(), 1e-2f).ok());
  QCOMPARE(ahead->evaluate(Batch(9).view()).value(), loss);
  QVERIFY(ahead->begin_step(Batch(3).view(), 1e-2f).ok());
  QCOMPARE(ahead->finish_step().error().code, ErrorCode::kNonFinite);
  QCOMPARE(ahead->finish_step().error().code, ErrorCode::kNonFinite);
  QVERIFY(state_of(*ahead) == state_of(*plain));
}

void StepsAheadTest::a_step_that_is_given_up_leaves_the_one_before_it() {
  QFETCH(const Kind, kind);
  std::atomic<bool> goes_on = true;
  const Kind more{kind.late, kind.ranks, kind.precision};
  const auto plain = engine_of(more), ahead = engine_of(more, [&] { return goes_on.load(); });
  std::vector<std::int32_t> tokens;  // twelve sequences: four micro-batches of three ranks
  for (const unsigned seed : {1u, 2u}) {
    const Batch batch(seed);
    tokens.insert(tokens.end(), batch.tokens.begin(), batch.tokens.end());
  }
  const TokenBatch batch{tokens, 2 * kSequences, kLength};

  QVERIFY(ahead->begin_step(batch, 1e-2f).ok());
  goes_on = false;
  const Status given_up = ahead->begin_step(batch, 1e-2f);
  QCOMPARE(given_up.error().code, ErrorCode::kAborted);
  QCOMPARE(ahead->steps_under_way(), 1);
  QVERIFY(same(ahead->finish_step().value(), plain->train_step(batch, 1e-2f).value()));
  QVERIFY(state_of(*ahead) == state_of(*plain));
  goes_on = true;

  QVERIFY(ahead->begin_step(batch, 1e-2f).ok());
  QVERIFY(same(ahead->finish_step().value(), plain->train_step(batch, 1e-2f).value()));
  QVERIFY(state_of(*ahead) == state_of(*plain));
}

void StepsAheadTest::two_steps_are_under_way_at_most() {
  const auto engine = engine_of({});
  QVERIFY(!engine->finish_step().ok());
  QVERIFY(engine->begin_step(Batch(1).view(), 1e-2f).ok());
  QVERIFY(!engine->train_step(Batch(2).view(), 1e-2f).ok());
  QVERIFY(engine->begin_step(Batch(2).view(), 1e-2f).ok());

  QVERIFY(!engine->begin_step(Batch(3).view(), 1e-2f).ok());

  QVERIFY(engine->finish_step().ok());
  QVERIFY(engine->finish_step().ok());
  QVERIFY(!engine->finish_step().ok());
}

QTEST_GUILESS_MAIN(StepsAheadTest)
#include "steps_ahead_test.moc"
