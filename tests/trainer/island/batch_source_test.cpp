// What a dataset's batches say of the documents in them.
#include "trainer/island/batch_source.h"

#include <QTemporaryDir>
#include <QtTest>

#include "net/base/file.h"
#include "net/base/sha256.h"
#include "net/data/token_shard.h"

using namespace atl;

namespace {

constexpr std::uint16_t kEnd = 256;

template <class Token>
ShardEntry write_shard(const std::filesystem::path& directory, const std::string& name,
                       const std::vector<Token>& tokens) {
  const bool marked = sizeof(Token) == 4;
  const std::string content =
      to_string(encode_token_shard_header({sizeof(Token), kByteVocabSize, tokens.size(), marked})) +
      to_string(std::as_bytes(std::span(tokens)));
  (void)write_file_atomically(directory / name, content, FileMode::kPublic);
  return {name, tokens.size(), content.size(), sha256_hex(as_bytes(content))};
}

// Both splits: two sequences of four tokens and the label behind them.
Dataset dataset_in(const std::filesystem::path& directory) {
  const std::vector<std::uint16_t> tokens{1, 2, kEnd, 3, 4, 5, 6, 7, 8};
  DatasetManifest manifest;
  manifest.train = {write_shard(directory, "train-00000.tok", tokens)};
  manifest.validation = {write_shard(directory, "validation-00000.tok", tokens)};
  return Dataset::open(directory, manifest).value();
}

// Two sequences of four, of whose tokens some count.
Dataset marked_dataset_in(const std::filesystem::path& directory) {
  const std::vector<std::uint32_t> tokens{1, 2 | kUncountedBit, kEnd, 3, 4 | kUncountedBit, 5, 6, 7, 8 | kUncountedBit};
  DatasetManifest manifest;
  manifest.marked_labels = true;
  manifest.train = {write_shard(directory, "train-00000.tok", tokens)};
  manifest.validation = {write_shard(directory, "validation-00000.tok", tokens)};
  return Dataset::open(directory, manifest).value();
}

template <class T>
std::vector<T> vector_of(std::span<const T> values) {
  return {values.begin(), values.end()};
}

}  // namespace

class BatchSourceTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void attention_within_documents_knows_where_they_begin();
  void a_packed_sequence_is_one_document();
  void tokens_that_are_marked_count_for_nothing_data();
  void tokens_that_are_marked_count_for_nothing();
};

void BatchSourceTest::attention_within_documents_knows_where_they_begin() {
  const QTemporaryDir directory;
  DatasetBatches batches(dataset_in(directory.path().toStdString()), {.seed = 1,
                                                                      .sequences_per_step = 2,
                                                                      .sequence_length = 4,
                                                                      .validation_sequences = 2,
                                                                      .attention = AttentionScope::kDocument});

  const TokenBatch held_out = batches.validation_batch(0).value();

  QCOMPARE(vector_of(held_out.tokens), (std::vector<std::int32_t>{1, 2, kEnd, 3, 4, 4, 5, 6, 7, 8}));
  QCOMPARE(vector_of(held_out.starts), (std::vector<std::int32_t>{0, 0, 0, 3, 0, 0, 0, 0}));
  QCOMPARE(vector_of(held_out.counts), (std::vector<std::uint8_t>{0, 1, 1, 0, 1, 0, 1, 1, 1, 1}));
  QCOMPARE(held_out.predicted_count(), std::int64_t{7});
  const TokenBatch training = batches.train_batch(OuterStep{0}, 0, {.first_sequence = 0, .sequences = 2}).value();
  QCOMPARE(training.predicted_count(), std::int64_t{7});
  QCOMPARE(training.starts.size(), std::size_t{8});
}

void BatchSourceTest::a_packed_sequence_is_one_document() {
  const QTemporaryDir directory;
  DatasetBatches batches(dataset_in(directory.path().toStdString()),
                         {.seed = 1, .sequences_per_step = 2, .sequence_length = 4, .validation_sequences = 2});

  const TokenBatch batch = batches.validation_batch(0).value();

  QVERIFY(batch.starts.empty());
  QVERIFY(batch.counts.empty());
  QCOMPARE(batch.predicted_count(), std::int64_t{8});
}

void BatchSourceTest::tokens_that_are_marked_count_for_nothing_data() {
  QTest::addColumn<AttentionScope>("attention");
  QTest::addColumn<std::vector<std::uint8_t>>("counts");
  QTest::newRow("packed") << AttentionScope::kPacked << std::vector<std::uint8_t>{1, 0, 1, 1, 0, 0, 1, 1, 1, 0};
  QTest::newRow("document") << AttentionScope::kDocument << std::vector<std::uint8_t>{0, 0, 1, 0, 0, 0, 1, 1, 1, 0};
}

void BatchSourceTest::tokens_that_are_marked_count_for_nothing() {
  QFETCH(const AttentionScope, attention);
  QFETCH(const std::vector<std::uint8_t>, counts);
  const QTemporaryDir directory;
  Dataset dataset = marked_dataset_in(directory.path().toStdString());
  QVERIFY(dataset.verify().ok());
  DatasetBatches batches(
      std::move(dataset),
      {.seed = 1, .sequences_per_step = 2, .sequence_length = 4, .validation_sequences = 2, .attention = attention});

  for (int again = 0; again < 2; ++again) {
    const TokenBatch batch = batches.validation_batch(0).value();

    QCOMPARE(vector_of(batch.tokens), (std::vector<std::int32_t>{1, 2, kEnd, 3, 4, 4, 5, 6, 7, 8}));
    QCOMPARE(vector_of(batch.counts), counts);
  }
}

QTEST_APPLESS_MAIN(BatchSourceTest)
#include "batch_source_test.moc"
