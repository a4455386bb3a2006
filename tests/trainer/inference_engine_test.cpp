// A model computed over a cache is the model: what it says after each text is what the whole text, computed at once by
// the engine that trains, comes to. Built twice: for this processor, and with ATOLL_FAKE_GPU for a GPU that is not
// there (cuda_machine.h).
#include "trainer/engine/inference_engine.h"

#include <QtTest>

#include <algorithm>
#include <cmath>
#include <random>

#include "net/base/file.h"
#include "net/model/initialise.h"
#include "net/step/llama_inference.h"
#include "trainer/engine/engine.h"
#ifdef ATOLL_FAKE_GPU
#include "tests/trainer/cuda_machine.h"
#endif

namespace {

using namespace atl;

// Both add the same products in fp32 in other orders: a sum of k terms is then some sqrt(k) 2^-24 of its size off, with
// k up to 2048 3e-6, and a value passes some ten sums in each of two blocks.
constexpr double kFp32Tolerance = 6e-5;  // of the largest logit
// Where a sum is another in its last bit, what is rounded to bf16 may fall the other way, by 2^-8 of itself; of some
// twenty such roundings on the way to a logit a few do.
constexpr double kBf16Tolerance = 4.0 / 256;

// The heads, angles and tables of a preset, in two narrow blocks: what the cache depends on, small enough for a test.
ModelConfig narrow(const std::string& name) {
  ModelConfig config =
      model_config_from_json(read_file(std::string(ATOLL_MODEL_PRESETS_DIR "/") + name + ".json").value()).value();
  const std::int64_t shared_by = config.num_attention_heads / config.num_key_value_heads;
  config.num_key_value_heads = std::min<std::int64_t>(config.num_key_value_heads, 2);
  config.num_attention_heads = shared_by * config.num_key_value_heads;
  config.hidden_size = 96;
  config.intermediate_size = 160;
  config.num_hidden_layers = 2;
  config.vocab_size = 259;
  config.max_position_embeddings = std::min<std::int64_t>(config.max_position_embeddings, 2048);
  config.initializer_range = 0.2;  // attention that is not nearly even
  return config;
}

std::vector<std::int32_t> text_of(std::int64_t length, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(length));
  for (auto& token : tokens) token = static_cast<std::int32_t>(random() % 259);
  return tokens;
}

ReadParameters fresh(const ModelConfig& config) {
  return [parameters = fresh_parameters(config, 7)](std::int64_t first, std::span<float> values) {
    std::copy_n(parameters.begin() + first, values.size(), values.begin());
  };
}

Result<std::unique_ptr<InferenceEngine>> created(const ModelConfig& config, const InferenceOptions& options,
                                                 const ReadParameters& parameters) {
#ifdef ATOLL_FAKE_GPU
  static test::CudaMachine machine({.gpu_bytes = std::size_t{1} << 30});
  return InferenceEngine::create(config, options, parameters, machine.group({0}));
#else
  return InferenceEngine::create(config, options, parameters);
#endif
}

std::unique_ptr<InferenceEngine> inference(const ModelConfig& config, Precision precision, std::int64_t slots,
                                           std::int64_t capacity, std::int64_t most_rows = 512) {
  const InferenceOptions options{
      .precision = precision, .slots = slots, .capacity = capacity, .most_rows = most_rows, .compute_threads = 2};
  return created(config, options, fresh(config)).value();
}

std::unique_ptr<Engine> whole(const ModelConfig& config, Precision precision) {
  EngineOptions options;
  options.seed = 7;
  options.precision = precision;
  return Engine::create(config, options).value();
}

double furthest(std::span<const float> a, std::span<const float> b) {
  double most = 0, largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    most = std::max(most, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
    largest = std::max(largest, std::abs(static_cast<double>(b[i])));
  }
  return most / largest;
}

double tolerance_of(Precision precision) { return precision == Precision::kFp32 ? kFp32Tolerance : kBf16Tolerance; }

class InferenceEngineTest : public QObject {
  Q_OBJECT
 private Q_SLOTS:
  void a_text_with_its_cache_goes_on_as_the_whole_text_does_data();
  void a_text_with_its_cache_goes_on_as_the_whole_text_does();
  void texts_of_different_lengths_do_not_see_each_other();
  void a_prompt_may_be_read_in_several_passes();
  void a_slot_that_is_cut_back_goes_on_from_there();
  void scores_are_the_log_probabilities_of_the_logits();
  void what_does_not_fit_is_refused_with_what_does();
  void tokens_that_no_slot_or_vocabulary_has_are_refused();
};

void InferenceEngineTest::a_text_with_its_cache_goes_on_as_the_whole_text_does_data() {
  QTest::addColumn<QString>("preset");
  QTest::addColumn<bool>("bf16");
  for (const char* name : {"demo", "150m", "1b", "10b"}) {
    QTest::addRow("%s fp32", name) << QString(name) << false;
    QTest::addRow("%s bf16", name) << QString(name) << true;
  }
}

// Longer than the tiles of attention: 64 queries, 512 keys.
void InferenceEngineTest::a_text_with_its_cache_goes_on_as_the_whole_text_does() {
  QFETCH(QString, preset);
  QFETCH(bool, bf16);
  const Precision precision = bf16 ? Precision::kBf16 : Precision::kFp32;
  const ModelConfig config = narrow(preset.toStdString());
  const auto reference = whole(config, precision);
  const std::vector<std::int32_t> text = text_of(600, 1);
  const auto engine = inference(config, precision, 1, 600);
  // The prompt at once, then a token at a time: shortly before and behind the tiles' ends.
  std::int64_t read = 0;
  for (const std::int64_t length : {70, 71, 72, 73, 510, 511, 512, 513, 514, 600}) {
    const auto added = std::span(text).subspan(static_cast<std::size_t>(read), static_cast<std::size_t>(length - read));
    const std::vector<SlotTokens> texts{{.slot = 0, .tokens = added, .labels = {}}};
    const std::vector<float> logits = engine->logits(texts).value();
    read = length;
    const auto expected = reference->next_token_logits(std::span(text).first(static_cast<std::size_t>(length))).value();
    QCOMPARE(logits.size(), expected.size());
    const double off = furthest(logits, expected);
    QVERIFY2(off < tolerance_of(precision), qPrintable(QString("length %1: %2").arg(length).arg(off)));
  }
  QCOMPARE(engine->length(0), 600);
}

void InferenceEngineTest::texts_of_different_lengths_do_not_see_each_other() {
  const ModelConfig config = narrow("1b");
  const auto reference = whole(config, Precision::kFp32);
  const auto engine = inference(config, Precision::kFp32, 3, 120);
  const std::vector<std::vector<std::int32_t>> texts{text_of(3, 2), text_of(100, 3), text_of(41, 4)};
  for (const std::int64_t left_out : {20, 3, 2, 1, 0}) {
    std::vector<SlotTokens> added;
    for (std::size_t slot = 0; slot < texts.size(); ++slot) {
      const auto length = static_cast<std::int64_t>(texts[slot].size()) - left_out;
      const std::int64_t held = engine->length(static_cast<std::int64_t>(slot));
      if (length <= held) continue;
      added.push_back(
          {.slot = static_cast<std::int64_t>(slot),
           .tokens =
               std::span(texts[slot]).subspan(static_cast<std::size_t>(held), static_cast<std::size_t>(length - held)),
           .labels = {}});
    }
    const std::vector<float> logits = engine->logits(added).value();
    for (std::size_t i = 0; i < added.size(); ++i) {
      const auto& text = texts[static_cast<std::size_t>(added[i].slot)];
      const auto so_far = std::span(text).first(text.size() - static_cast<std::size_t>(left_out));
      const auto expected = reference->next_token_logits(so_far).value();
      QVERIFY(furthest(std::span(logits).subspan(i * 259, 259), expected) < kFp32Tolerance);
    }
  }
}

void InferenceEngineTest::a_prompt_may_be_read_in_several_passes() {
  const ModelConfig config = narrow("150m");
  const std::vector<std::int32_t> a = text_of(90, 5), b = text_of(33, 6);
  const std::vector<SlotTokens> texts{{.slot = 1, .tokens = a, .labels = {}}, {.slot = 0, .tokens = b, .labels = {}}};
  const auto at_once = inference(config, Precision::kFp32, 2, 90)->logits(texts).value();
  const auto in_passes = inference(config, Precision::kFp32, 2, 90, /*most_rows=*/13)->logits(texts).value();
  QVERIFY(furthest(in_passes, at_once) < kFp32Tolerance);
}

void InferenceEngineTest::a_slot_that_is_cut_back_goes_on_from_there() {
  const ModelConfig config = narrow("demo");
  const auto engine = inference(config, Precision::kFp32, 1, 64);
  const std::vector<std::int32_t> first = text_of(50, 8);
  std::vector<std::int32_t> second(first.begin(), first.begin() + 20);
  const std::vector<std::int32_t> other = text_of(25, 9);
  second.insert(second.end(), other.begin(), other.end());
  (void)engine->logits(std::vector<SlotTokens>{{.slot = 0, .tokens = first, .labels = {}}}).value();
  engine->keep(0, 20);
  const auto logits = engine->logits(std::vector<SlotTokens>{{.slot = 0, .tokens = other, .labels = {}}}).value();
  const auto expected = whole(config, Precision::kFp32)->next_token_logits(second).value();
  QVERIFY(furthest(logits, expected) < kFp32Tolerance);
}

void InferenceEngineTest::scores_are_the_log_probabilities_of_the_logits() {
  const ModelConfig config = narrow("1b");
  const auto reference = whole(config, Precision::kFp32);
  const std::vector<std::int32_t> text = text_of(40, 10);
  std::vector<std::int32_t> labels(text.begin() + 30, text.end());
  const auto tokens = std::span(text).first(39);
  // One that is the likeliest.
  const auto before = reference->next_token_logits(tokens).value();
  labels.back() = static_cast<std::int32_t>(std::ranges::max_element(before) - before.begin());
  const auto engine = inference(config, Precision::kFp32, 2, 64, /*most_rows=*/32);
  const auto scores = engine->scores(std::vector<SlotTokens>{{.slot = 1, .tokens = tokens, .labels = labels}}).value();
  QCOMPARE(scores.size(), labels.size());
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const auto logits = reference->next_token_logits(std::span(text).first(30 + i)).value();
    const auto largest = static_cast<double>(std::ranges::max(logits));
    double sum = 0;
    for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - largest);
    const auto label = static_cast<std::size_t>(labels[i]);
    const double expected = static_cast<double>(logits[label]) - largest - std::log(sum);
    // As for a logit, of which the largest is some ten here.
    QVERIFY(std::abs(static_cast<double>(scores[i].log_probability) - expected) < 20 * kFp32Tolerance);
    const bool greedy = static_cast<std::size_t>(std::ranges::max_element(logits) - logits.begin()) == label;
    QCOMPARE(scores[i].greedy, greedy);
  }
  QVERIFY(scores.back().greedy);
}

void InferenceEngineTest::what_does_not_fit_is_refused_with_what_does() {
  const ModelConfig config = narrow("1b");
  const auto parameters = fresh(config);
  InferenceOptions options{.slots = 1, .capacity = 16, .most_rows = 16, .compute_threads = 1};
  const auto needed = static_cast<std::uint64_t>(created(config, options, parameters).value()->kept_bytes());
  const auto token = static_cast<std::uint64_t>(LlamaInference::cache_bytes_per_token(config, Precision::kFp32));
  options.slots = 1000;
  options.capacity = 1024;
  // Some megabytes for the passes themselves.
  options.available_bytes = needed + (std::uint64_t{8} << 20) + 3 * 1024 * token;
  const auto refused = created(config, options, parameters);
  QVERIFY(!refused.ok());
  QCOMPARE(refused.error().code, ErrorCode::kInvalidArgument);
  const std::string& message = refused.error().message;
  QVERIFY2(message.find("at once of 1024 tokens fit") != std::string::npos, message.c_str());
  // What it says does fit.
  const std::string before = message.substr(0, message.find(" at once"));
  options.slots = std::stoll(before.substr(before.rfind(' ') + 1));
  QVERIFY(options.slots >= 3 && options.slots < 1000);
  QVERIFY(created(config, options, parameters).ok());
  options.slots += 1;
  QVERIFY(!created(config, options, parameters).ok());
}

void InferenceEngineTest::tokens_that_no_slot_or_vocabulary_has_are_refused() {
  const auto engine = inference(narrow("demo"), Precision::kFp32, 1, 8);
  const std::vector<std::int32_t> nine(9, 1), outside{259}, negative{-1}, none;
  for (const auto& tokens : {nine, outside, negative, none}) {
    QVERIFY(!engine->logits(std::vector<SlotTokens>{{.slot = 0, .tokens = tokens, .labels = {}}}).ok());
  }
  const std::vector<std::int32_t> one{1};
  QVERIFY(!engine->logits(std::vector<SlotTokens>{{.slot = 1, .tokens = one, .labels = {}}}).ok());
  QVERIFY(engine->logits(std::vector<SlotTokens>{{.slot = 0, .tokens = one, .labels = {}}}).ok());
  QCOMPARE(engine->length(0), 1);
}

}  // namespace

QTEST_APPLESS_MAIN(InferenceEngineTest)
#include "inference_engine_test.moc"
