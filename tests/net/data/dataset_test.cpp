#include <QtTest>

#include <QTemporaryDir>
#include <fstream>
#include <set>

#include "net/base/sha256.h"
#include "net/data/dataset.h"
#include "net/data/prepare.h"
#include "net/data/sequence_order.h"
#include "net/data/token_shard.h"

using namespace atl;

namespace {

void write(const std::filesystem::path& path, std::string_view content) {
  std::ofstream(path, std::ios::binary) << content;
}

std::string shard(const std::vector<std::uint16_t>& tokens) {
  const Bytes header = encode_token_shard_header({2, kByteVocabSize, tokens.size()});
  return to_string(header) + to_string(std::as_bytes(std::span(tokens)));
}

ShardEntry entry(const std::string& file, const std::string& content) {
  return {file, (content.size() - kTokenShardHeaderBytes) / 2, content.size(), sha256_hex(as_bytes(content))};
}

// Two training shards of 0..6 and 7..11, one of validation.
DatasetManifest write_small_dataset(const std::filesystem::path& directory) {
  const std::string first = shard({0, 1, 2, 3, 4, 5, 6}), second = shard({7, 8, 9, 10, 11}),
                    held_out = shard({20, 21, 256});
  write(directory / "train-00000.tok", first);
  write(directory / "train-00001.tok", second);
  write(directory / "validation-00000.tok", held_out);
  DatasetManifest manifest;
  manifest.train = {entry("train-00000.tok", first), entry("train-00001.tok", second)};
  manifest.validation = {entry("validation-00000.tok", held_out)};
  write(directory / "dataset.json", manifest.to_json());
  return manifest;
}

}  // namespace

class DatasetTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void sequences_overlap_by_one_token_and_cross_shards();
  void a_manifest_survives_the_round_trip();
  void a_dishonest_manifest_is_refused_data();
  void a_dishonest_manifest_is_refused();
  void a_damaged_shard_is_refused_on_opening_data();
  void a_damaged_shard_is_refused_on_opening();
  void a_changed_token_is_found_by_verify();
  void a_token_outside_the_vocabulary_is_found_by_verify();
  void a_directory_without_dataset_says_how_to_make_one();
  void each_epoch_is_a_permutation_of_its_own_data();
  void each_epoch_is_a_permutation_of_its_own();
  void the_order_is_the_same_on_every_machine();
};

void DatasetTest::sequences_overlap_by_one_token_and_cross_shards() {
  const QTemporaryDir directory;
  write_small_dataset(directory.path().toStdString());

  const auto dataset = Dataset::open(directory.path().toStdString());

  QVERIFY2(dataset.ok(), dataset.ok() ? "" : dataset.error().message.c_str());
  QVERIFY(dataset->verify().ok());
  QCOMPARE(dataset->sequences(Split::kTrain, 5), 2u);  // 12 tokens: 5 + 5 + 1
  QCOMPARE(dataset->sequences(Split::kTrain, 12), 0u);
  QCOMPARE(dataset->sequences(Split::kValidation, 2), 1u);
  std::vector<std::int32_t> tokens(6);
  dataset->read_sequence(Split::kTrain, 1, 5, tokens);
  QCOMPARE(tokens, (std::vector<std::int32_t>{5, 6, 7, 8, 9, 10}));
}

void DatasetTest::a_manifest_survives_the_round_trip() {
  const QTemporaryDir directory;
  const DatasetManifest manifest = write_small_dataset(directory.path().toStdString());

  const auto read = DatasetManifest::from_json(manifest.to_json());

  QVERIFY(read.ok());
  QCOMPARE(read->to_json(), manifest.to_json());
  QCOMPARE(read->tokens(Split::kTrain), 12u);
}

void DatasetTest::a_dishonest_manifest_is_refused_data() {
  QTest::addColumn<QString>("from");
  QTest::addColumn<QString>("to");
  QTest::newRow("escapes the directory") << "train-00000.tok"
                                         << "../../etc/passwd";
  QTest::newRow("hidden file") << "train-00000.tok"
                               << ".profile";
  QTest::newRow("wrong size") << "\"tokens\":7"
                              << "\"tokens\":8";
  QTest::newRow("size that overflows") << "\"tokens\":7"
                                       << "\"tokens\":9223372036854775815";
  QTest::newRow("negative size") << "\"tokens\":7"
                                 << "\"tokens\":-7";
  QTest::newRow("no hash") << "\"sha256\":\""
                           << "\"sha256\":\"00";
  QTest::newRow("another tokenizer") << "\"bytes\",\"train\""
                                     << "\"words\",\"train\"";
  QTest::newRow("no JSON") << "{"
                           << "";
}

void DatasetTest::a_dishonest_manifest_is_refused() {
  QFETCH(const QString, from);
  QFETCH(const QString, to);
  const QTemporaryDir directory;
  const QString honest = QString::fromStdString(write_small_dataset(directory.path().toStdString()).to_json());
  const QString dishonest = QString(honest).replace(from, to);

  const auto read = DatasetManifest::from_json(dishonest.toStdString());

  QVERIFY(dishonest != honest || from.startsWith("\"bytes\",\"train"));
  QVERIFY(dishonest == honest || !read.ok());
}

void DatasetTest::a_damaged_shard_is_refused_on_opening_data() {
  QTest::addColumn<QByteArray>("content");
  const QByteArray good = QByteArray::fromStdString(shard({0, 1, 2, 3, 4, 5, 6}));
  const auto with = [&](int offset, const QByteArray& bytes) {
    return QByteArray(good).replace(offset, bytes.size(), bytes);
  };
  QTest::newRow("empty") << QByteArray();
  QTest::newRow("cut in the header") << good.left(20);
  QTest::newRow("cut in the tokens") << good.left(good.size() - 2);
  QTest::newRow("cut in a token") << good.left(good.size() - 1);
  QTest::newRow("longer than it says") << good + QByteArray(2, '\0');
  QTest::newRow("another magic") << with(0, "GIF89a");
  QTest::newRow("another version") << with(8, QByteArray("\x02", 1));
  QTest::newRow("tokens of 3 bytes") << with(12, QByteArray("\x03", 1));
  QTest::newRow("a count that overflows") << with(24, QByteArray("\x07\0\0\0\0\0\0\x80", 8));
  QTest::newRow("reserved bits") << with(20, QByteArray("\x01", 1));
}

void DatasetTest::a_damaged_shard_is_refused_on_opening() {
  QFETCH(const QByteArray, content);
  const QTemporaryDir directory;
  const std::filesystem::path path = directory.path().toStdString();
  write_small_dataset(path);
  write(path / "train-00000.tok", content.toStdString());

  const auto dataset = Dataset::open(path);

  QVERIFY(!dataset.ok());
  QVERIFY(dataset.error().code == ErrorCode::kCorrupt || dataset.error().code == ErrorCode::kVersionUnsupported);
  QVERIFY(dataset.error().message.find("train-00000.tok") != std::string::npos);
}

void DatasetTest::a_changed_token_is_found_by_verify() {
  const QTemporaryDir directory;
  const std::filesystem::path path = directory.path().toStdString();
  write_small_dataset(path);
  write(path / "train-00001.tok", shard({7, 8, 9, 10, 12}));

  const auto dataset = Dataset::open(path);

  QVERIFY(dataset.ok());
  QCOMPARE(dataset->verify().error().code, ErrorCode::kCorrupt);
}

void DatasetTest::a_token_outside_the_vocabulary_is_found_by_verify() {
  const QTemporaryDir directory;
  const std::filesystem::path path = directory.path().toStdString();
  DatasetManifest manifest = write_small_dataset(path);
  const std::string lying = shard({7, 8, 9, 10, 257});
  write(path / "train-00001.tok", lying);
  manifest.train[1] = entry("train-00001.tok", lying);

  const auto dataset = Dataset::open(path, manifest);

  QVERIFY(dataset.ok());
  QCOMPARE(dataset->verify().error().code, ErrorCode::kCorrupt);
}

void DatasetTest::a_directory_without_dataset_says_how_to_make_one() {
  const QTemporaryDir directory;

  const auto dataset = Dataset::open(directory.path().toStdString());

  QCOMPARE(dataset.error().code, ErrorCode::kNotFound);
  QVERIFY(dataset.error().message.find("atoll data prepare") != std::string::npos);
}

void DatasetTest::each_epoch_is_a_permutation_of_its_own_data() {
  QTest::addColumn<quint64>("sequences");
  for (const quint64 n : {1, 2, 3, 5, 16, 17, 1000, 4097}) QTest::addRow("%llu sequences", n) << n;
}

void DatasetTest::each_epoch_is_a_permutation_of_its_own() {
  QFETCH(const quint64, sequences);

  std::vector<std::vector<std::uint64_t>> epochs(2);
  for (std::uint64_t p = 0; p < 2 * sequences; ++p) epochs[p / sequences].push_back(sequence_at(7, p, sequences));

  for (const auto& epoch : epochs) {
    const std::set<std::uint64_t> distinct(epoch.begin(), epoch.end());
    QCOMPARE(distinct.size(), sequences);
    QCOMPARE(*distinct.rbegin(), sequences - 1);
  }
  if (sequences >= 16) QVERIFY(epochs[0] != epochs[1]);
}

void DatasetTest::the_order_is_the_same_on_every_machine() {
  std::vector<std::uint64_t> order;
  for (std::uint64_t p = 0; p < 8; ++p) order.push_back(sequence_at(1, p, 1000));

  QCOMPARE(order, (std::vector<std::uint64_t>{565, 452, 668, 206, 180, 19, 104, 231}));
}

QTEST_APPLESS_MAIN(DatasetTest)
#include "dataset_test.moc"
