// What is worked out of a model's memory; that the engine takes just that is tests/trainer/engine_test.
#include "net/step/memory_needs.h"

#include <QtTest>
#include <map>

#include "net/base/file.h"
#include "net/model/layout.h"

namespace {

using namespace atl;

ModelConfig preset(const std::string& name) {
  return model_config_from_json(read_file(std::string(ATOLL_MODEL_PRESETS_DIR "/") + name + ".json").value()).value();
}

// As resources/presets has them.
TrainingShape shape_of(const std::string& name, std::int64_t local_ranks = 1) {
  struct Batch {
    std::int64_t sequences, length;
  };
  static const std::map<std::string, Batch> kBatches = {
      {"demo", {4, 256}}, {"150m", {64, 1024}}, {"1b", {128, 4096}}, {"10b", {128, 8192}}};
  TrainingShape shape;
  shape.sequences_per_step = kBatches.at(name).sequences;
  shape.sequence_length = kBatches.at(name).length;
  shape.island.local_ranks = local_ranks;
  return shape;
}

// Bytes: of scalars, alignment, and a step of a single token.
constexpr std::uint64_t kSmall = 16 << 20;

double gigabytes(std::uint64_t bytes) { return static_cast<double>(bytes) / 1e9; }

}  // namespace

class MemoryNeedsTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void the_default_micro_batch_fits_the_memory_there_is_data();
  void the_default_micro_batch_fits_the_memory_there_is();
  void a_choice_of_the_owner_is_the_only_one();
  void what_does_not_fit_is_computed_again();
  void a_whole_inner_batch_is_more_than_machines_have();
  void each_parameter_asks_for_its_copies();
  void several_fragments_are_averaged_while_a_step_is_computed();
  void a_size_beyond_all_bounds_is_no_small_number();
};

void MemoryNeedsTest::the_default_micro_batch_fits_the_memory_there_is_data() {
  QTest::addColumn<QString>("model");
  QTest::addColumn<int>("local_ranks");
  QTest::addColumn<double>("memory");    // GB
  QTest::addColumn<bool>("fits");        // with anything at all
  QTest::addColumn<int>("micro_batch");  // at most 4,096 tokens, at most a rank's share
  QTest::newRow("demo: all of it") << "demo" << 1 << 1.0 << true << 4;
  QTest::newRow("demo, four ranks: each its sequence") << "demo" << 4 << 1.0 << true << 1;
  QTest::newRow("150m on 24 GB") << "150m" << 1 << 24.0 << true << 4;
  QTest::newRow("150m on 8 GB") << "150m" << 1 << 8.0 << true << 2;
  QTest::newRow("150m on 4 GB") << "150m" << 1 << 4.0 << false << 1;
  QTest::newRow("150m on 24 GB, eight ranks") << "150m" << 8 << 24.0 << true << 2;
  QTest::newRow("1b on 24 GB") << "1b" << 1 << 24.0 << false << 1;
  QTest::newRow("1b on 96 GB") << "1b" << 1 << 96.0 << true << 1;
  QTest::newRow("10b on 128 GB") << "10b" << 1 << 128.0 << false << 1;
  QTest::newRow("10b on 1 TB") << "10b" << 1 << 1000.0 << true << 1;
}

void MemoryNeedsTest::the_default_micro_batch_fits_the_memory_there_is() {
  QFETCH(const QString, model);
  QFETCH(const int, local_ranks);
  QFETCH(const double, memory);
  QFETCH(const bool, fits);
  QFETCH(const int, micro_batch);
  const ModelConfig config = preset(model.toStdString());
  TrainingShape shape = shape_of(model.toStdString(), local_ranks);

  const MicroBatch chosen = choose_micro_batch(micro_batches(config, shape), static_cast<std::uint64_t>(memory * 1e9));

  QCOMPARE(static_cast<int>(chosen.sequences), micro_batch);
  QCOMPARE(gigabytes(chosen.bytes) <= 0.9 * memory, fits);
  shape.island.micro_batch = chosen.sequences;
  shape.island.recompute = chosen.recompute;
  QCOMPARE(chosen.bytes, memory_needs(config, shape).most());
}

void MemoryNeedsTest::a_choice_of_the_owner_is_the_only_one() {
  TrainingShape shape = shape_of("150m");
  shape.island.micro_batch = 5;
  for (const MicroBatch& choice : micro_batches(preset("150m"), shape)) QCOMPARE(choice.sequences, 5u);

  shape.island.micro_batch = 1000;  // more than there are

  QCOMPARE(micro_batches(preset("150m"), shape).front().sequences, 64u);
}

void MemoryNeedsTest::what_does_not_fit_is_computed_again() {
  TrainingShape shape = shape_of("150m");
  shape.island.micro_batch = 16;
  const auto choices = micro_batches(preset("150m"), shape);

  QCOMPARE(choices.size(), std::size_t{3});
  QVERIFY(std::ranges::is_sorted(choices, std::less{}, &MicroBatch::bytes));
  QCOMPARE(choices[0].recompute, Recompute::kAll);
  QCOMPARE(choices[1].recompute, Recompute::kCheap);
  QCOMPARE(choices[2].recompute, Recompute::kNone);
  for (const MicroBatch& choice : choices) {
    const std::uint64_t enough = choice.bytes + choice.bytes / 9 + 10;  // a tenth is left
    QCOMPARE(choose_micro_batch(choices, enough).recompute, choice.recompute);
  }
}

void MemoryNeedsTest::a_whole_inner_batch_is_more_than_machines_have() {
  const double small = gigabytes(memory_needs(preset("150m"), shape_of("150m")).step);
  const double large = gigabytes(memory_needs(preset("10b"), shape_of("10b")).step);

  QVERIFY2(small > 40 && small < 50, qPrintable(QString::number(small)));
  QVERIFY2(large > 10'000, qPrintable(QString::number(large)));
}

void MemoryNeedsTest::each_parameter_asks_for_its_copies() {
  for (const char* name : {"150m", "1b", "10b"}) {
    TrainingShape shape = shape_of(name);
    shape.island.micro_batch = 1;
    shape.sequence_length = 1;  // next to nothing is kept of a step
    const auto parameters = static_cast<std::uint64_t>(canonical_layout(preset(name)).numel);
    const MemoryNeeds needs = memory_needs(preset(name), shape);

    QVERIFY(needs.most() - needs.program - kBytesPerParameter * parameters < kSmall);

    shape.wire = WireFormat::kInt4E3m0;  // keeps what it lost, twice, and once more in a pause
    QVERIFY(memory_needs(preset(name), shape).most() - needs.program - (kBytesPerParameter + 12) * parameters < kSmall);
  }
}

void MemoryNeedsTest::several_fragments_are_averaged_while_a_step_is_computed() {
  const ModelConfig config = preset("150m");
  TrainingShape shape = shape_of("150m");
  const MemoryNeeds whole = memory_needs(config, shape);
  shape.fragments = 4;

  const MemoryNeeds parts = memory_needs(config, shape);

  const auto encoded = static_cast<std::uint64_t>(encoded_bytes(shape.wire, canonical_layout(config).numel));
  QCOMPARE(whole.averages, 0u);
  QCOMPARE(parts.while_training() - whole.while_training(), encoded);
  QCOMPARE(parts.most() - whole.most(), encoded);
  QCOMPARE(parts.most_beside_gpus() - whole.most_beside_gpus(), encoded);
}

// What a hub says of its run is bounded key by key: no product of bounds comes out as a little.
void MemoryNeedsTest::a_size_beyond_all_bounds_is_no_small_number() {
  ModelConfig config = preset("demo");
  config.hidden_size = 2;
  config.num_attention_heads = config.num_key_value_heads = 2;
  config.num_hidden_layers = 4096;
  config.intermediate_size = 1 << 20;
  config.vocab_size = 1 << 20;
  QVERIFY(config.validate().ok());

  const MemoryNeeds needs =
      memory_needs(config, {.sequences_per_step = 1 << 20, .sequence_length = 1 << 20, .island = {.local_ranks = 64}});

  QVERIFY(needs.most() > std::uint64_t{1} << 50);
}

QTEST_APPLESS_MAIN(MemoryNeedsTest)
#include "memory_needs_test.moc"
