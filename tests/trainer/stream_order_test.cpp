// The waits that net/step derives are enough, and none is too many: training steps give the same bits in whatever order
// a device's streams happen to run, and without any single wait they do not.
#include <QtTest>

#include <algorithm>
#include <numeric>
#include <random>

#include "net/step/llama_step.h"
#include "net/step/rope.h"
#include "tests/fakes/stream_device.h"
#include "trainer/device/cpu_device_group.h"
#include "trainer/engine/engine.h"
#include "trainer/engine/fsdp_engine.h"
#include "trainer/engine/program_runner.h"
#include "trainer/engine/rank_threads.h"

namespace {

using namespace atl;
using namespace atl::test;

constexpr std::int64_t kLength = 4;

ModelConfig tiny_model(bool tied) {
  ModelConfig config;
  config.vocab_size = 19;
  config.hidden_size = 8;
  config.intermediate_size = 12;
  config.num_hidden_layers = 3;
  config.num_attention_heads = 2;
  config.num_key_value_heads = 1;
  config.head_dim = 4;
  config.tie_word_embeddings = tied;
  return config;
}

std::vector<std::int32_t> tokens_of(std::int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(count));
  for (auto& token : tokens) token = static_cast<std::int32_t>(random() % 19);
  return tokens;
}

using Bytes = std::vector<std::byte>;

// --- Whole steps, by the engine ---

constexpr std::int64_t kSequences = 10;  // three ranks have 3, 3 and 4 of them

// Two steps, an evaluation between: the parameters' and both moments' bits.
std::vector<float> train(Engine& engine) {
  for (const unsigned step : {1u, 2u}) {
    const auto tokens = tokens_of(kSequences * (kLength + 1), step);
    if (!engine.train_step({tokens, kSequences, kLength}, 1e-2f).ok()) return {};
    if (step == 1 && !engine.evaluate({tokens, kSequences, kLength}).ok()) return {};
  }
  const auto numel = static_cast<std::size_t>(engine.numel());
  std::vector<float> values(3 * numel);
  const std::span all(values);
  engine.read_parameters(all.first(numel));
  engine.read_moments(std::vector<ParameterRange>{{0, engine.numel()}}, all.subspan(numel, numel), all.last(numel));
  return values;
}

// --- Single programs, on each rank's device ---

struct Case {
  int ranks = 2;
  bool tied = false;
  bool kept = false;
  Recompute recompute = Recompute::kNone;
  bool scratch = false;
  AttentionScope attention = AttentionScope::kPacked;
};

enum class Tested { kFirst, kNext, kReduce, kEvaluate };

StepOptions options_of(const Case& c) {
  return {.ranks = c.ranks,
          .recompute = c.recompute,
          .keep_gathered = c.kept,
          .attention = c.attention,
          .max_z_loss = 1e-3f,
          .traits = StreamDeviceGroup::traits_of({.ranks = c.ranks, .reduce_scatter_scratch = c.scratch})};
}

template <class T>
void upload(Device& device, const Tensor& to, const std::vector<T>& values) {
  device.upload(to, std::as_bytes(std::span(values)));
}

// One rank's runs of a program: three in a row, of other tokens each time.
class RankRun {
 public:
  RankRun(const LlamaStep& step, const ModelConfig& config, LocalRank rank, Device& device)
      : step_(step), config_(config), rank_(rank), device_(device), runner_(device) {
    device_.take_arena(Arena::kKept, step.kept_bytes());
    std::mt19937 random(17u + static_cast<unsigned>(rank.value));
    std::normal_distribution<float> normal(0, 0.3f);
    std::vector<float> parameters(static_cast<std::size_t>(step.shard_numel()));
    for (float& parameter : parameters) parameter = normal(random);
    upload(device_, step.kept().parameters, parameters);
    std::vector<float> scalars(kStepScalars, 0.0f);
    scalars[static_cast<std::size_t>(StepScalar::kLossScale)] = 0.1f;
    upload(device_, step.kept().scalars, scalars);
  }

  // All of the kept arena afterwards.
  Bytes run(const Program& tested, Tested what, const Program& begin, const Program& first) {
    device_.synchronize();
    device_.take_arena(Arena::kStep, std::max(tested.step_bytes(), first.step_bytes()));
    runner_.run(begin);
    if (what == Tested::kNext || what == Tested::kReduce) run_once(first, 1);
    for (const unsigned seed : {2u, 3u, 4u}) what == Tested::kReduce ? runner_.run(tested) : run_once(tested, seed);
    runner_.join();
    Bytes bytes(static_cast<std::size_t>(step_.kept_bytes()));
    device_.download({.arena = Arena::kKept, .columns = step_.kept_bytes() / 4, .byte = 0}, bytes);
    return bytes;
  }

 private:
  void run_once(const Program& program, unsigned seed) {
    runner_.join_before(program);
    const auto tokens = tokens_of(kLength + 1, 10 * seed + static_cast<unsigned>(rank_.value));
    std::vector<std::int32_t> order(kLength);
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, {}, [&](std::int32_t r) { return tokens[static_cast<std::size_t>(r)]; });
    const RopeTable rope = rope_table(config_, kLength);
    upload(device_, program.input("tokens"), std::vector(tokens.begin(), tokens.end() - 1));
    upload(device_, program.input("labels"), std::vector(tokens.begin() + 1, tokens.end()));
    upload(device_, program.input("order"), order);
    upload(device_, program.input("cosines"), rope.cosines);
    upload(device_, program.input("sines"), rope.sines);
    if (step_.options().attention == AttentionScope::kDocument) {
      upload(device_, program.input("starts"), std::vector<std::int32_t>{0, 0, 2, 2});
    }
    runner_.run(program);
  }

  const LlamaStep& step_;
  const ModelConfig& config_;
  const LocalRank rank_;
  Device& device_;
  ProgramRunner runner_;
};

// A step's programs, one of which is tested.
class Experiment {
 public:
  Experiment(const Case& c, Tested what)
      : case_(c),
        what_(what),
        config_(tiny_model(c.tied)),
        step_(config_, options_of(c)),
        begin_(step_.begin()),
        first_(step_.micro_batch(1, kLength, true)),
        tested_(make()) {}

  const Program& tested() const { return tested_; }

  std::vector<Bytes> in_program_order() const {
    CpuDeviceGroup group(case_.ranks, 1, std::chrono::minutes(5));
    return run(group, tested_);
  }
  std::vector<Bytes> in_random_order(const Program& program, std::uint64_t seed) const {
    StreamDeviceGroup group({.ranks = case_.ranks, .seed = seed, .reduce_scatter_scratch = case_.scratch});
    return run(group, program);
  }

 private:
  Program make() const {
    switch (what_) {
      case Tested::kFirst: return step_.micro_batch(1, kLength, true);
      case Tested::kNext: return step_.micro_batch(1, kLength, false);
      case Tested::kReduce: return step_.reduce();
      case Tested::kEvaluate: break;
    }
    return step_.evaluate(1, kLength);
  }

  std::vector<Bytes> run(DeviceGroup& group, const Program& program) const {
    std::vector<Bytes> results(static_cast<std::size_t>(case_.ranks));
    RankThreads threads(group);
    const Status status = threads.run([&](LocalRank rank) {
      const auto device = group.device(rank);
      RankRun mine(step_, config_, rank, *device);
      results[static_cast<std::size_t>(rank.value)] = mine.run(program, what_, begin_, first_);
    });
    if (!status.ok()) qFatal("%s", status.error().message.c_str());
    return results;
  }

  const Case case_;
  const Tested what_;
  const ModelConfig config_;
  const LlamaStep step_;
  const Program begin_, first_, tested_;
};

}  // namespace

class StreamOrderTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void steps_give_the_same_bits_in_every_order_data();
  void steps_give_the_same_bits_in_every_order();
  void no_wait_may_be_left_out_data();
  void no_wait_may_be_left_out();
};

void StreamOrderTest::steps_give_the_same_bits_in_every_order_data() {
  QTest::addColumn<int>("ranks");
  QTest::addColumn<bool>("tied");
  QTest::addColumn<bool>("kept");
  for (const int ranks : {1, 2, 3}) {
    for (const bool tied : {false, true}) {
      for (const bool kept : {false, true}) {
        if (ranks == 1 && kept) continue;
        QTest::addRow("%d ranks, %s, %s", ranks, tied ? "tied" : "untied", kept ? "kept gathered" : "gathered anew")
            << ranks << tied << kept;
      }
    }
  }
}

// 10 rows of 100 orders, of each rank; in program order there is neither prefetching nor a reduction beside a block.
void StreamOrderTest::steps_give_the_same_bits_in_every_order() {
  QFETCH(const int, ranks);
  QFETCH(const bool, tied);
  QFETCH(const bool, kept);
  std::uint64_t seed = 0;
  for (const Precision precision : {Precision::kFp32, Precision::kBf16}) {
    for (const Recompute recompute : {Recompute::kNone, Recompute::kCheap, Recompute::kAll}) {
      const EngineOptions options{.local_ranks = ranks,
                                  .max_z_loss = 1e-3,
                                  .micro_batch_sequences = 1,
                                  .precision = precision,
                                  .recompute = recompute,
                                  .keep_gathered = kept};
      const std::vector<float> expected = train(*Engine::create(tiny_model(tied), options).value());
      QVERIFY(!expected.empty());
      for (int order = 0; order < 17; ++order, ++seed) {
        auto group = std::make_unique<StreamDeviceGroup>(
            StreamDevices{.ranks = ranks, .seed = seed, .reduce_scatter_scratch = order % 2 == 0});
        const auto engine = create_engine(tiny_model(tied), options, std::move(group)).value();
        QVERIFY2(train(*engine) == expected, qPrintable(QString("seed %1").arg(seed)));
      }
    }
  }
}

void StreamOrderTest::no_wait_may_be_left_out_data() {
  QTest::addColumn<int>("tested");
  QTest::addColumn<bool>("tied");
  QTest::addColumn<bool>("kept");
  QTest::addColumn<int>("recompute");
  QTest::addColumn<AttentionScope>("attention");
  const auto row = [](const char* name, Tested tested, bool tied, bool kept, Recompute recompute,
                      AttentionScope attention = AttentionScope::kPacked) {
    QTest::addRow("%s, %s, %s, recompute %d, %s", name, tied ? "tied" : "untied",
                  kept ? "kept gathered" : "gathered anew", static_cast<int>(recompute),
                  attention_scope_name(attention).data())
        << static_cast<int>(tested) << tied << kept << static_cast<int>(recompute) << attention;
  };
  for (const bool tied : {false, true}) {
    for (const Recompute recompute : {Recompute::kNone, Recompute::kCheap, Recompute::kAll}) {
      row("first micro-batch", Tested::kFirst, tied, false, recompute);
      row("next micro-batch", Tested::kNext, tied, false, recompute);
    }
    row("first micro-batch", Tested::kFirst, tied, false, Recompute::kAll, AttentionScope::kDocument);
    row("evaluation", Tested::kEvaluate, tied, false, Recompute::kNone);
    row("reduction", Tested::kReduce, tied, false, Recompute::kNone);
    row("reduction", Tested::kReduce, tied, true, Recompute::kNone);
  }
}

void StreamOrderTest::no_wait_may_be_left_out() {
  QFETCH(const int, tested);
  QFETCH(const bool, tied);
  QFETCH(const bool, kept);
  QFETCH(const int, recompute);
  QFETCH(const AttentionScope, attention);
  const Case which{.tied = tied,
                   .kept = kept,
                   .recompute = static_cast<Recompute>(recompute),
                   .scratch = tied,
                   .attention = attention};
  const Experiment experiment(which, static_cast<Tested>(tested));
  const std::vector<Bytes> expected = experiment.in_program_order();
  QVERIFY(experiment.in_random_order(experiment.tested(), 0) == expected);

  constexpr std::uint64_t kMostOrders = 100;
  std::uint64_t waits = 0, most = 0;
  const auto& steps = experiment.tested().steps();
  for (std::size_t step = 0; step < steps.size(); ++step) {
    for (std::size_t wait = 0; wait < steps[step].waits.size(); ++wait, ++waits) {
      const Program without = experiment.tested().without_wait(step, wait);
      std::uint64_t seed = 0;
      while (seed < kMostOrders && experiment.in_random_order(without, seed) == expected) ++seed;
      const StepWait& left_out = steps[step].waits[wait];
      QVERIFY2(seed < kMostOrders, qPrintable(QString("operation %1 of %2 need not wait for %3%4")
                                                  .arg(step)
                                                  .arg(steps.size())
                                                  .arg(left_out.of)
                                                  .arg(left_out.previous ? " of the run before" : "")));
      most = std::max(most, seed + 1);
    }
  }
  QVERIFY(waits > 0);
  qInfo("%d waits; each found missing in at most %d orders", static_cast<int>(waits), static_cast<int>(most));
}

QTEST_GUILESS_MAIN(StreamOrderTest)
#include "stream_order_test.moc"
