// Attention kept within documents: a packed batch comes to what its documents come to alone, by HuggingFace
// transformers (tests/golden/make_documents.py) and by this engine, whatever the number of local ranks and however
// memory is saved.
#include <QtTest>

#include "net/data/packed_documents.h"
#include "tests/fakes/stream_device.h"
#include "tests/trainer/reference.h"
#include "trainer/engine/engine.h"
#include "trainer/engine/fsdp_engine.h"

namespace {

using namespace atl;
using namespace atl::test;

// fp32 sums of other orders: a few ulp a matrix product, some 1e-6 over the model.
constexpr double kTolerance = 1e-5;

// What of a batch is said beside its tokens, found in them.
struct Documents {
  Documents(const ReferenceBatch& batch, std::int32_t end_of_text)
      : of(batch), starts(static_cast<std::size_t>(batch.sequences * batch.length)), counts(batch.tokens.size(), 1) {
    const auto row = static_cast<std::size_t>(batch.length + 1);
    for (std::size_t i = 0; i < static_cast<std::size_t>(batch.sequences); ++i) {
      find_documents(std::span(of.tokens).subspan(i * row, row), end_of_text,
                     std::span(starts).subspan(i * (row - 1), row - 1), std::span(counts).subspan(i * row, row));
    }
  }
  TokenBatch view() const { return {of.tokens, of.sequences, of.length, starts, counts}; }

  ReferenceBatch of;
  std::vector<std::int32_t> starts;
  std::vector<std::uint8_t> counts;
};

}  // namespace

class DocumentAttentionTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase() {
    if (reference_directory() != std::filesystem::path(ATOLL_TEST_DATA_DIR) / "llama-a")
      QSKIP("of the golden model alone");
  }
  void loss_and_gradients_are_the_references_of_the_documents_data() { rank_rows(); }
  void loss_and_gradients_are_the_references_of_the_documents();
  void labels_that_do_not_count_are_left_out_as_the_reference_does_data() { rank_rows(); }
  void labels_that_do_not_count_are_left_out_as_the_reference_does();
  void what_saves_memory_or_time_changes_no_bit_data() { rank_rows(); }
  void what_saves_memory_or_time_changes_no_bit();
  void a_packed_batch_is_the_mean_of_its_documents_data();
  void a_packed_batch_is_the_mean_of_its_documents();
  void one_document_a_sequence_is_packed_to_the_bit_data();
  void one_document_a_sequence_is_packed_to_the_bit();
  void the_gradient_is_that_of_the_loss();
  void other_documents_have_no_say();
  void a_batch_in_which_nothing_counts_has_no_gradient_data();
  void a_batch_in_which_nothing_counts_has_no_gradient();
  void documents_that_cannot_be_are_refused_data();
  void documents_that_cannot_be_are_refused();

 private:
  static void rank_rows();
  static void precisions();
  EngineOptions options(int local_ranks, AttentionScope attention = AttentionScope::kDocument) const;
  std::unique_ptr<Engine> engine_of(const EngineOptions& options, bool overlapping = false) const;
  Documents packed() const;
  // Relative; of the worst tensor's gradient.
  struct Distance {
    double loss = 0, gradients = 0;
  };
  // prefix: of the reference's numbers.
  Distance distance_from_reference(const Documents& batch, const std::string& prefix) const;

  const Reference reference_;
  const SafetensorsFile expected_ =
      SafetensorsFile::open(std::filesystem::path(ATOLL_TEST_DATA_DIR) / "llama-a" / "expected_documents.safetensors")
          .value();
};

void DocumentAttentionTest::rank_rows() {
  QTest::addColumn<int>("local_ranks");
  QTest::addColumn<int>("micro_batch");
  QTest::addColumn<bool>("kept");
  for (const int ranks : {1, 2, 3, 8}) {  // of four sequences
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

void DocumentAttentionTest::precisions() {
  QTest::addColumn<Precision>("precision");
  QTest::newRow("fp32") << Precision::kFp32;
  QTest::newRow("bf16") << Precision::kBf16;
}

EngineOptions DocumentAttentionTest::options(int local_ranks, AttentionScope attention) const {
  EngineOptions options;
  options.local_ranks = local_ranks;
  options.adamw = reference_.adamw();
  options.attention = attention;
  return options;
}

std::unique_ptr<Engine> DocumentAttentionTest::engine_of(const EngineOptions& options, bool overlapping) const {
  auto engine =
      overlapping
          ? create_engine(reference_.model.config, options,
                          std::make_unique<StreamDeviceGroup>(StreamDevices{.ranks = options.local_ranks, .seed = 1}))
                .value()
          : Engine::create(reference_.model.config, options).value();
  engine->write_parameters(reference_.model.parameters);
  return engine;
}

Documents DocumentAttentionTest::packed() const {
  const auto shape = expected_.tensor("tokens").value().shape;
  const auto tokens = expected_.integers("tokens").value();
  const auto end_of_text = static_cast<std::int32_t>(expected_.integers("end_of_text").value()[0]);
  return {{{tokens.begin(), tokens.end()}, shape[0], shape[1] - 1}, end_of_text};
}

void DocumentAttentionTest::loss_and_gradients_are_the_references_of_the_documents() {
  const Documents batch = packed();

  const Distance distance = distance_from_reference(batch, "");

  QCOMPARE(batch.view().predicted_count(), expected_.integers("predicted").value()[0]);
  QVERIFY2(distance.loss <= kTolerance, qPrintable(QString::number(distance.loss)));
  QVERIFY2(distance.gradients <= kTolerance, qPrintable(QString::number(distance.gradients)));
}

// Labels of -100 are what HuggingFace leaves out.
void DocumentAttentionTest::labels_that_do_not_count_are_left_out_as_the_reference_does() {
  Documents batch = packed();
  const auto marks = expected_.integers("marked.counts").value();
  for (std::size_t i = 0; i < marks.size(); ++i) {
    if (marks[i] == 0) batch.counts[i] = 0;
  }

  const Distance distance = distance_from_reference(batch, "marked.");

  QCOMPARE(batch.view().predicted_count(), expected_.integers("marked.predicted").value()[0]);
  QVERIFY2(distance.loss <= kTolerance, qPrintable(QString::number(distance.loss)));
  QVERIFY2(distance.gradients <= kTolerance, qPrintable(QString::number(distance.gradients)));
}

// By an engine of the row's kind.
DocumentAttentionTest::Distance DocumentAttentionTest::distance_from_reference(const Documents& batch,
                                                                               const std::string& prefix) const {
  QFETCH(const int, local_ranks);
  QFETCH(const int, micro_batch);
  QFETCH(const bool, kept);
  EngineOptions how = options(local_ranks);
  how.micro_batch_sequences = micro_batch;
  how.keep_gathered = kept;
  const auto engine = engine_of(how);
  const double loss = engine->evaluate(batch.view()).value();
  const GradientReport report = engine->gradients(batch.view()).value();

  const double expected = expected_.floats(prefix + "loss").value()[0];
  Distance distance{.loss = std::max(std::abs(loss - expected), std::abs(report.loss_nats - loss)) / expected};
  for (const ParameterInfo& parameter : reference_.layout.parameters) {
    const auto mine =
        std::span(report.gradients)
            .subspan(static_cast<std::size_t>(parameter.offset), static_cast<std::size_t>(parameter.numel));
    const double one = relative_difference(mine, expected_.floats(prefix + "grad." + parameter.name).value());
    if (!(one <= distance.gradients)) distance.gradients = one;  // one that is no number, too
  }
  qInfo("loss: %.1e, gradients: %.1e of theirs", distance.loss, distance.gradients);
  return distance;
}

void DocumentAttentionTest::what_saves_memory_or_time_changes_no_bit() {
  QFETCH(const int, local_ranks);
  QFETCH(const int, micro_batch);
  QFETCH(const bool, kept);
  const Documents batch = packed();
  for (const Precision precision : {Precision::kFp32, Precision::kBf16}) {
    EngineOptions how = options(local_ranks);
    how.micro_batch_sequences = micro_batch;
    how.keep_gathered = kept;
    how.precision = precision;
    const GradientReport expected = engine_of(how)->gradients(batch.view()).value();
    for (const Recompute recompute : {Recompute::kCheap, Recompute::kAll}) {
      how.recompute = recompute;
      for (const bool overlapping : {false, true}) {
        const GradientReport report = engine_of(how, overlapping)->gradients(batch.view()).value();
        QVERIFY(report.loss_nats == expected.loss_nats);
        QVERIFY(report.gradients == expected.gradients);
      }
    }
  }
}

void DocumentAttentionTest::a_packed_batch_is_the_mean_of_its_documents_data() { precisions(); }

// Each document by an engine that packs, as a batch of its own.
void DocumentAttentionTest::a_packed_batch_is_the_mean_of_its_documents() {
  QFETCH(const Precision, precision);
  EngineOptions how = options(1), alone_options = options(1, AttentionScope::kPacked);
  how.precision = alone_options.precision = precision;
  const auto engine = engine_of(how), alone = engine_of(alone_options);
  const Documents batch = packed();
  const GradientReport report = engine->gradients(batch.view()).value();

  double loss = 0;
  std::vector<double> gradients(report.gradients.size());
  const auto predicted = static_cast<double>(batch.view().predicted_count());
  const auto length = static_cast<std::size_t>(batch.of.length);
  for (std::size_t row = 0; row < static_cast<std::size_t>(batch.of.sequences); ++row) {
    const auto starts = std::span(batch.starts).subspan(row * length, length);
    for (std::size_t begin = 0, end = 0; begin < length; begin = end) {
      while (end < length && starts[end] == static_cast<std::int32_t>(begin)) ++end;
      // The label behind the last input is the document's unless that ended with it.
      const bool goes_on = batch.counts[row * (length + 1) + end] != 0;
      const auto tokens =
          std::span(batch.of.tokens).subspan(row * (length + 1) + begin, end - begin + (goes_on ? 1 : 0));
      if (tokens.size() < 2) continue;
      const auto inputs = static_cast<std::int64_t>(tokens.size()) - 1;
      const GradientReport one = alone->gradients({tokens, 1, inputs}).value();
      const double share = static_cast<double>(inputs) / predicted;
      loss += share * one.loss_nats;
      for (std::size_t i = 0; i < gradients.size(); ++i) gradients[i] += share * static_cast<double>(one.gradients[i]);
    }
  }

  const std::vector<float> sum(gradients.begin(), gradients.end());
  const double difference = relative_difference(report.gradients, sum);
  qInfo("loss: %.1e, gradients: %.1e", std::abs(report.loss_nats - loss) / loss, difference);
  QVERIFY(std::abs(report.loss_nats - loss) <= 1e-6 * loss);
  // In bf16 gradients of activations are rounded some 50 times on the way back, here of numbers that another scale has
  // multiplied: each time by 0.42 2^-8 of them in the root mean square, on either side.
  const double roundings = 2 * (5 + 16 * static_cast<double>(reference_.model.config.num_hidden_layers));
  const double tolerance = precision == Precision::kBf16 ? 0.42 * 0x1p-8 * std::sqrt(roundings) : 1e-6;
  QVERIFY2(difference <= tolerance, qPrintable(QString::number(difference)));
}

void DocumentAttentionTest::one_document_a_sequence_is_packed_to_the_bit_data() { precisions(); }

void DocumentAttentionTest::one_document_a_sequence_is_packed_to_the_bit() {
  QFETCH(const Precision, precision);
  const ReferenceBatch batch = reference_.batch("tokens");
  const std::vector<std::int32_t> starts(static_cast<std::size_t>(batch.sequences * batch.length), 0);
  EngineOptions within = options(2), over = options(2, AttentionScope::kPacked);
  within.precision = over.precision = precision;

  const GradientReport expected = engine_of(over)->gradients(batch.view()).value();

  for (const std::span<const std::int32_t> said : {std::span<const std::int32_t>(starts), {}}) {
    TokenBatch view = batch.view();
    view.starts = said;
    const GradientReport report = engine_of(within)->gradients(view).value();
    QVERIFY(report.loss_nats == expected.loss_nats);
    QVERIFY(report.gradients == expected.gradients);
  }
}

// Along its own direction, by central differences: (loss(p + h g) - loss(p - h g)) / 2h = |g|^2.
void DocumentAttentionTest::the_gradient_is_that_of_the_loss() {
  const auto engine = engine_of(options(1));
  const Documents batch = packed();
  const GradientReport report = engine->gradients(batch.view()).value();
  double squares = 0;
  for (const float g : report.gradients) squares += static_cast<double>(g) * static_cast<double>(g);

  const double h = 1e-3 / std::sqrt(squares);
  const auto loss_at = [&](double step) {
    std::vector<float> parameters = reference_.model.parameters;
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      parameters[i] += static_cast<float>(step * static_cast<double>(report.gradients[i]));
    }
    engine->write_parameters(parameters);
    return engine->evaluate(batch.view()).value();
  };
  const double slope = (loss_at(h) - loss_at(-h)) / (2 * h);

  // Losses of some 6 nats, each rounded many times to fp32, over a difference of 2e-3 |g|.
  QVERIFY2(std::abs(slope - squares) <= 5e-3 * squares, qPrintable(QString("%1 of %2").arg(slope).arg(squares)));
}

// Whatever stands in the first document, later ones are predicted alike, to the bit.
void DocumentAttentionTest::other_documents_have_no_say() {
  const auto engine = engine_of(options(1));
  Documents batch = packed();
  const std::vector<float> before = engine->logits(batch.view()).value();

  for (std::size_t i = 0; i < 8; ++i) batch.of.tokens[i] += 1;  // the end of its text stands behind
  const std::vector<float> after = engine->logits(batch.view()).value();

  const auto vocab = static_cast<std::ptrdiff_t>(reference_.model.config.vocab_size);
  QVERIFY(!std::equal(before.begin(), before.begin() + 9 * vocab, after.begin()));
  QVERIFY(std::equal(before.begin() + 9 * vocab, before.end(), after.begin() + 9 * vocab));
}

void DocumentAttentionTest::a_batch_in_which_nothing_counts_has_no_gradient_data() {
  QTest::addColumn<Precision>("precision");
  QTest::addColumn<int>("local_ranks");
  QTest::newRow("fp32") << Precision::kFp32 << 1;
  QTest::newRow("bf16, two ranks") << Precision::kBf16 << 2;
}

// As where all tokens are end_of_text, each a document of its own.
void DocumentAttentionTest::a_batch_in_which_nothing_counts_has_no_gradient() {
  QFETCH(const Precision, precision);
  QFETCH(const int, local_ranks);
  EngineOptions how = options(local_ranks);
  how.precision = precision;
  how.max_z_loss = 1e-3;
  const auto engine = engine_of(how);
  const Documents batch({std::vector<std::int32_t>(3 * 17, 7), 3, 16}, 7);

  QCOMPARE(batch.view().predicted_count(), std::int64_t{0});
  QCOMPARE(engine->evaluate(batch.view()).value(), 0.0);
  const GradientReport report = engine->gradients(batch.view()).value();
  QCOMPARE(report.loss_nats, 0.0);
  QCOMPARE(report.max_z_loss, 0.0);
  QVERIFY(std::ranges::all_of(report.gradients, [](float g) { return g == 0; }));
  const StepReport step = engine->train_step(batch.view(), 1e-3f).value();
  QCOMPARE(step.loss_nats, 0.0);
  QCOMPARE(step.gradient_norm, 0.0);
  std::vector<float> parameters(static_cast<std::size_t>(engine->numel()));
  engine->read_parameters(parameters);
  QVERIFY(std::ranges::all_of(parameters, [](float p) { return std::isfinite(p); }));
}

void DocumentAttentionTest::documents_that_cannot_be_are_refused_data() {
  using Starts = std::vector<std::int32_t>;
  QTest::addColumn<AttentionScope>("attention");
  QTest::addColumn<Starts>("starts");
  QTest::addColumn<int>("counts");
  QTest::newRow("packed") << AttentionScope::kPacked << Starts{0, 0, 0, 0} << 0;
  QTest::newRow("too few") << AttentionScope::kDocument << Starts{0, 0, 0} << 0;
  QTest::newRow("later than the row") << AttentionScope::kDocument << Starts{0, 2, 2, 3} << 0;
  QTest::newRow("before the sequence") << AttentionScope::kDocument << Starts{-1, -1, -1, -1} << 0;
  QTest::newRow("back again") << AttentionScope::kDocument << Starts{0, 1, 0, 0} << 0;
  QTest::newRow("not from 0") << AttentionScope::kDocument << Starts{1, 1, 1, 1} << 0;
  QTest::newRow("counts of another size") << AttentionScope::kDocument << Starts{0, 0, 2, 2} << 4;
}

void DocumentAttentionTest::documents_that_cannot_be_are_refused() {
  QFETCH(const AttentionScope, attention);
  QFETCH(const std::vector<std::int32_t>, starts);
  QFETCH(const int, counts);
  const auto engine = engine_of(options(1, attention));
  const std::vector<std::int32_t> tokens{1, 2, 3, 4, 5};
  const std::vector<std::uint8_t> counted(static_cast<std::size_t>(counts), 1);

  const auto loss = engine->evaluate({tokens, 1, 4, starts, counted});

  QVERIFY(!loss.ok());
  QCOMPARE(loss.error().code, ErrorCode::kInvalidArgument);
}

QTEST_APPLESS_MAIN(DocumentAttentionTest)
#include "document_attention_test.moc"
