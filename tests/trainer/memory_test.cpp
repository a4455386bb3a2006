// The engine holds in a step what net/model/memory_needs says that it holds.
#include <c10/core/CPUAllocator.h>

#include <QtTest>

#include <atomic>
#include <random>

#include "net/base/file.h"
#include "net/model/memory_needs.h"
#include "trainer/engine/engine.h"

namespace {

using namespace atl;

// In place of torch's: counts the bytes of tensors alive, over all threads.
class CountingAllocator final : public c10::Allocator {
 public:
  explicit CountingAllocator(c10::Allocator& torchs) : torchs_(torchs) {}

  c10::DataPtr allocate(std::size_t bytes) override {
    auto* block = new Block{torchs_.allocate(bytes), static_cast<std::int64_t>(bytes)};
    const std::int64_t now = current_ += block->bytes;
    for (std::int64_t peak = peak_; now > peak && !peak_.compare_exchange_weak(peak, now);) {
    }
    return {block->memory.get(), block, &release, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return nullptr; }
  void copy_data(void* destination, const void* source, std::size_t count) const override {
    std::memcpy(destination, source, count);
  }

  static void reset() { peak_ = current_.load(); }
  static std::int64_t peak() { return peak_; }

 private:
  struct Block {
    c10::DataPtr memory;
    std::int64_t bytes;
  };
  static void release(void* pointer) {
    auto* block = static_cast<Block*>(pointer);
    current_ -= block->bytes;
    delete block;
  }

  c10::Allocator& torchs_;
  static inline std::atomic<std::int64_t> current_{0}, peak_{0};
};

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

}  // namespace

class MemoryTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase() { c10::SetCPUAllocator(&counting_, /*priority=*/255); }
  void a_step_holds_what_was_worked_out_data();
  void a_step_holds_what_was_worked_out();

 private:
  CountingAllocator counting_{*c10::GetCPUAllocator()};
};

void MemoryTest::a_step_holds_what_was_worked_out_data() {
  QTest::addColumn<QString>("model");
  QTest::addColumn<int>("local_ranks");
  QTest::addColumn<int>("sequences");
  QTest::addColumn<int>("length");
  QTest::addColumn<int>("micro_batch");
  QTest::newRow("demo, all at once") << "demo" << 1 << 4 << 256 << 0;
  QTest::newRow("demo, one at once") << "demo" << 1 << 4 << 256 << 1;
  QTest::newRow("demo, two ranks") << "demo" << 2 << 4 << 256 << 1;
  QTest::newRow("medium, two at once") << "medium" << 1 << 4 << 256 << 2;
  QTest::newRow("medium, one at once") << "medium" << 1 << 4 << 256 << 1;
  QTest::newRow("medium, two ranks") << "medium" << 2 << 4 << 256 << 1;
  QTest::newRow("wide heads") << "wide heads" << 1 << 2 << 256 << 1;
}

// To a hundredth: flash attention has some working memory of its own. Ranks need not be at their peaks at one moment.
void MemoryTest::a_step_holds_what_was_worked_out() {
  QFETCH(const QString, model);
  QFETCH(const int, local_ranks);
  QFETCH(const int, sequences);
  QFETCH(const int, length);
  QFETCH(const int, micro_batch);
  const ModelConfig config = model == "medium" ? medium() : model == "demo" ? preset("demo") : wide_heads();
  const EngineOptions options{.local_ranks = local_ranks, .micro_batch_sequences = micro_batch};
  const auto engine = Engine::create(config, options).value();
  std::mt19937 random(5);
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(sequences * (length + 1)));
  for (auto& token : tokens) token = static_cast<std::int32_t>(random() % static_cast<unsigned>(config.vocab_size));
  const double expected =
      static_cast<double>(memory_needs(config, {.sequences_per_step = sequences,
                                                .sequence_length = length,
                                                .island = {.local_ranks = local_ranks, .micro_batch = micro_batch}})
                              .step);
  CountingAllocator::reset();

  QVERIFY(engine->train_step({tokens, sequences, length}, 1e-3f).ok());

  const double held = static_cast<double>(CountingAllocator::peak());
  qInfo("%.1f MB held, %.1f MB worked out: %.3f", held / 1e6, expected / 1e6, held / expected);
  QVERIFY(held < 1.01 * expected);
  QVERIFY(held > (local_ranks > 1 ? 0.8 : 0.99) * expected);
}

QTEST_GUILESS_MAIN(MemoryTest)
#include "memory_test.moc"
