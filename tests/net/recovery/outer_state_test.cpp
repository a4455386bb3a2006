#include "net/recovery/outer_state.h"

#include <QtTest>
#include <numeric>

#include "net/base/byte_range.h"

namespace atl {
namespace {

std::vector<float> ramp(std::uint64_t count, float first) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), first);
  return values;
}

}  // namespace

class OuterStateTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void a_chunk_is_parameters_then_their_momentum();
  void the_tree_hash_stands_for_every_bit_and_the_version();
  void the_tree_hash_of_a_small_state_is_as_ever();
  void a_manifest_survives_json();
  void a_wrong_manifest_is_refused();
  void a_wrong_manifest_is_refused_data();
  void a_range_is_chosen_as_http_wants();
  void a_range_is_chosen_as_http_wants_data();
};

void OuterStateTest::a_chunk_is_parameters_then_their_momentum() {
  const auto parameters = ramp(kStateChunkNumel + 5, 0.0F);
  const auto momentum = ramp(kStateChunkNumel + 5, 7.0F);

  const StateManifest manifest = make_state_manifest(OuterStep{3}, parameters, momentum);

  const auto digest_of = [&](std::size_t begin, std::size_t count) {
    std::vector<float> chunk(parameters.begin() + begin, parameters.begin() + begin + count);
    chunk.insert(chunk.end(), momentum.begin() + begin, momentum.begin() + begin + count);
    return sha256(std::as_bytes(std::span(chunk)));
  };
  QCOMPARE(manifest.state_bytes, std::uint64_t{8 * parameters.size()});
  QCOMPARE(manifest.chunk_sha256.size(), std::size_t{2});
  QVERIFY(manifest.chunk_sha256[0] == digest_of(0, kStateChunkNumel));
  QVERIFY(manifest.chunk_sha256[1] == digest_of(kStateChunkNumel, 5));
  QCOMPARE(manifest.chunk_bytes(0), kStateChunkBytes);
  QCOMPARE(manifest.chunk_bytes(1), std::uint64_t{40});
}

void OuterStateTest::the_tree_hash_stands_for_every_bit_and_the_version() {
  const auto parameters = ramp(100, 0.0F);
  auto momentum = ramp(100, 1.0F);
  const Digest before = make_state_manifest(OuterStep{3}, parameters, momentum).tree_hash();

  QVERIFY(make_state_manifest(OuterStep{3}, parameters, momentum).tree_hash() == before);
  QVERIFY(make_state_manifest(OuterStep{4}, parameters, momentum).tree_hash() != before);
  QVERIFY(make_state_manifest(OuterStep{3}, momentum, parameters).tree_hash() != before);
  momentum.back() = -momentum.back();
  QVERIFY(make_state_manifest(OuterStep{3}, parameters, momentum).tree_hash() != before);
}

void OuterStateTest::the_tree_hash_of_a_small_state_is_as_ever() {
  const std::vector<float> parameters{1.0F, -2.0F};
  const std::vector<float> momentum{0.5F, 0.0F};

  const StateManifest manifest = make_state_manifest(OuterStep{3}, parameters, momentum);

  // sha256(u32 3, u64 16, sha256(the four floats)), by another implementation.
  QCOMPARE(QString::fromStdString(to_hex(manifest.tree_hash())),
           QString("2fdf9a4ee2c6b9ab9fc2aadf530d27949c98cfaef5c3e0034620e17570112ead"));
}

void OuterStateTest::a_manifest_survives_json() {
  const auto values = ramp(2 * kStateChunkNumel, 0.0F);
  const StateManifest made = make_state_manifest(OuterStep{12}, values, values);

  const auto read = StateManifest::from_json(made.to_json());

  QVERIFY(read.ok());
  QVERIFY(read->tree_hash() == made.tree_hash());
  QVERIFY(made.to_json().size() <= max_manifest_bytes(made.state_bytes));
}

void OuterStateTest::a_wrong_manifest_is_refused_data() {
  QTest::addColumn<QString>("text");
  const QString digest(64, 'a');
  QTest::newRow("empty") << "";
  QTest::newRow("no object") << "[]";
  QTest::newRow("fields missing") << R"({"version":1})";
  QTest::newRow("too few chunks") << R"({"version":1,"state_bytes":8,"chunks":[]})";
  QTest::newRow("too many chunks") << QString(R"({"version":1,"state_bytes":8,"chunks":["%1","%1"]})").arg(digest);
  QTest::newRow("short digest") << R"({"version":1,"state_bytes":8,"chunks":["aa"]})";
  QTest::newRow("digest no text") << R"({"version":1,"state_bytes":8,"chunks":[1]})";
  QTest::newRow("chunks no list") << R"({"version":1,"state_bytes":8,"chunks":{}})";
  QTest::newRow("huge") << R"({"version":1,"state_bytes":18446744073709551615,"chunks":[]})";
  QTest::newRow("negative") << R"({"version":-1,"state_bytes":0,"chunks":[]})";
  QTest::newRow("deep") << R"({"version":1,"state_bytes":8,"chunks":[[[[]]]]})";
}

void OuterStateTest::a_wrong_manifest_is_refused() {
  QFETCH(QString, text);
  QVERIFY(!StateManifest::from_json(text.toStdString()).ok());
}

void OuterStateTest::a_range_is_chosen_as_http_wants_data() {
  QTest::addColumn<QString>("header");
  QTest::addColumn<int>("verdict");
  QTest::addColumn<quint64>("first");
  QTest::addColumn<quint64>("count");
  const auto row = [](const char* header, RangeVerdict verdict, quint64 first, quint64 count) {
    QTest::newRow(header) << header << static_cast<int>(verdict) << first << count;
  };
  row("", RangeVerdict::kWhole, 0, 100);
  row("bytes=0-99", RangeVerdict::kPart, 0, 100);
  row("bytes=10-19", RangeVerdict::kPart, 10, 10);
  row("bytes=90-", RangeVerdict::kPart, 90, 10);
  row("bytes=90-1000", RangeVerdict::kPart, 90, 10);
  row("bytes=-30", RangeVerdict::kPart, 70, 30);
  row("bytes=-1000", RangeVerdict::kPart, 0, 100);
  row("bytes=100-", RangeVerdict::kUnsatisfiable, 0, 0);
  row("bytes=100-200", RangeVerdict::kUnsatisfiable, 0, 0);
  row("bytes=-0", RangeVerdict::kUnsatisfiable, 0, 0);
  row("bytes=20-10", RangeVerdict::kWhole, 0, 100);
  row("bytes=0-1,5-6", RangeVerdict::kWhole, 0, 100);
  row("bytes=a-b", RangeVerdict::kWhole, 0, 100);
  row("bytes=-", RangeVerdict::kWhole, 0, 100);
  row("bytes=99999999999999999999-", RangeVerdict::kWhole, 0, 100);
  row("lines=1-2", RangeVerdict::kWhole, 0, 100);
}

void OuterStateTest::a_range_is_chosen_as_http_wants() {
  QFETCH(QString, header);
  QFETCH(int, verdict);
  QFETCH(quint64, first);
  QFETCH(quint64, count);

  const RangeChoice choice = choose_range(header.toStdString(), 100);

  QCOMPARE(static_cast<int>(choice.verdict), verdict);
  QCOMPARE(static_cast<quint64>(choice.range.first), first);
  QCOMPARE(static_cast<quint64>(choice.range.count), count);
}

}  // namespace atl

QTEST_GUILESS_MAIN(atl::OuterStateTest)
#include "outer_state_test.moc"
