#include "trainer/island/outer_state_store.h"

#include <QtCore/QTemporaryDir>
#include <QtTest/QTest>
#include <fstream>
#include <random>

#include "kernels/wire_format.h"
#include "net/base/file.h"

using namespace atl;

namespace {

std::vector<float> normal_values(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

Bytes raw_bytes(const std::vector<float>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

constexpr std::int64_t kNumel = 3000;

}  // namespace

class OuterStateStoreTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void the_outer_step_is_nesterov_sgd_and_makes_a_new_version() {
    OuterStateStore outer(kNumel);
    const auto theta = normal_values(kNumel, 1);
    const auto d = normal_values(kNumel, 2);
    outer.initialise(theta);
    const std::string before = outer.tree_hash();

    outer.apply(WireFormat::kFp32, raw_bytes(d), 0.7f, 0.9f);

    QCOMPARE(outer.version().value, 1u);
    QVERIFY(outer.tree_hash() != before);
    for (std::size_t i = 0; i < theta.size(); ++i) {
      // First step: v = d, theta - 0.7 (d + 0.9 d). The tolerance is fp32 rounding of values of order 1.
      QVERIFY(std::abs(outer.parameters()[i] - (theta[i] - 0.7 * 1.9 * d[i])) < 1e-5);
    }
  }

  void chunks_put_together_are_the_state_and_an_old_version_is_gone() {
    OuterStateStore outer(kNumel);
    outer.initialise(normal_values(kNumel, 1));
    const auto manifest = outer.manifest();
    QVERIFY(manifest.ok());

    const auto chunk = outer.copy_chunk(OuterStep{0}, 0);

    QVERIFY(chunk.ok());
    QCOMPARE(chunk->size(), std::size_t{kNumel} * 8);
    QVERIFY(sha256(*chunk) == manifest->chunk_sha256[0]);
    outer.apply(WireFormat::kFp32, raw_bytes(normal_values(kNumel, 2)), 0.7f, 0.9f);
    QCOMPARE(outer.copy_chunk(OuterStep{0}, 0).error().code, ErrorCode::kNotFound);
    QCOMPARE(outer.copy_chunk(OuterStep{1}, 1).error().code, ErrorCode::kInvalidArgument);
  }

  void a_saved_state_loads_bit_for_bit() {
    const QTemporaryDir directory;
    const std::filesystem::path file = directory.filePath("outer.state").toStdString();
    OuterStateStore saved(kNumel);
    saved.initialise(normal_values(kNumel, 1));
    saved.apply(WireFormat::kFp32, raw_bytes(normal_values(kNumel, 2)), 0.7f, 0.9f);
    QVERIFY(saved.save(file).ok());

    OuterStateStore loaded(kNumel);
    QVERIFY(loaded.load(file).ok());

    QCOMPARE(loaded.tree_hash(), saved.tree_hash());
    QCOMPARE(loaded.version().value, 1u);
  }

  void a_damaged_state_file_is_refused_data() {
    QTest::addColumn<int>("keep");
    QTest::addColumn<int>("flip");
    QTest::newRow("empty") << 0 << -1;
    QTest::newRow("truncated header") << 10 << -1;
    QTest::newRow("truncated") << 20000 << -1;
    QTest::newRow("one bit of a parameter") << -1 << 5000;
    QTest::newRow("wrong magic") << -1 << 0;
    QTest::newRow("wrong count") << -1 << 16;
  }
  void a_damaged_state_file_is_refused() {
    QFETCH(int, keep);
    QFETCH(int, flip);
    const QTemporaryDir directory;
    const std::filesystem::path file = directory.filePath("outer.state").toStdString();
    OuterStateStore saved(kNumel);
    saved.initialise(normal_values(kNumel, 1));
    QVERIFY(saved.save(file).ok());
    std::string content = *read_file(file);
    if (keep >= 0) content.resize(static_cast<std::size_t>(keep));
    if (flip >= 0) content[static_cast<std::size_t>(flip)] ^= 1;
    std::ofstream(file, std::ios::binary) << content;

    OuterStateStore loaded(kNumel);
    const Status status = loaded.load(file);

    QCOMPARE(status.error().code, ErrorCode::kCorrupt);
    QVERIFY(!loaded.holds_state());
  }
};

QTEST_GUILESS_MAIN(OuterStateStoreTest)
#include "outer_state_store_test.moc"
