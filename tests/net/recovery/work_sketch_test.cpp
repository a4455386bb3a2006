// Sketches of what was given to an average, and of the average.
#include "net/recovery/work_sketch.h"

#include <QtTest/QTest>
#include <algorithm>
#include <cmath>
#include <random>

#include "net/base/sha256.h"

using namespace atl;

namespace {

const std::string kDigest(64, 'd');

std::vector<float> normal_values(std::size_t count, unsigned seed) {
  std::minstd_rand random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

double cosine(const WorkSketch& a, const WorkSketch& b) {
  double both = 0, of_a = 0, of_b = 0;
  for (std::size_t i = 0; i < kSketchNumel; ++i) {
    both += a[i] * b[i];
    of_a += a[i] * a[i];
    of_b += b[i] * b[i];
  }
  return both / std::sqrt(of_a * of_b);
}

WorkSketch of_fp32(const std::vector<float>& values) {
  return sketch_of_average(kDigest, WireFormat::kFp32, std::as_bytes(std::span(values)), std::ssize(values)).value();
}

}  // namespace

class WorkSketchTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void a_sum_of_sketches_is_the_sketch_of_the_sum() {
    const std::vector<float> a = normal_values(100'001, 1), b = normal_values(100'001, 2);
    std::vector<float> sum(a.size());
    for (std::size_t i = 0; i < a.size(); ++i) sum[i] = 0.25f * a[i] + 0.75f * b[i];

    const WorkSketch of_sum = of_fp32(sum), of_a = sketch_of_work(kDigest, a), of_b = sketch_of_work(kDigest, b);

    for (std::size_t i = 0; i < kSketchNumel; ++i) {
      QVERIFY(std::abs(of_sum[i] - 0.25 * of_a[i] - 0.75 * of_b[i]) < 1e-4);  // fp32's roundings of ten values each
    }
  }

  void cosines_are_those_of_the_values() {
    const std::vector<float> a = normal_values(300'000, 3), noise = normal_values(300'000, 4);
    std::vector<float> b(a.size());
    for (std::size_t i = 0; i < a.size(); ++i) b[i] = -0.6f * a[i] + 0.8f * noise[i];

    const double of_sketches = cosine(sketch_of_work(kDigest, a), sketch_of_work(kDigest, b));

    QVERIFY2(std::abs(of_sketches + 0.6) < 0.15, qPrintable(QString::number(of_sketches)));  // five times its deviation
  }

  void what_encoding_owes_and_pays_back_is_part_of_what_was_given() {
    const std::vector<float> values = normal_values(5'000, 5), in = normal_values(5'000, 6),
                             out = normal_values(5'000, 7);
    std::vector<float> given(values.size());
    for (std::size_t i = 0; i < given.size(); ++i) given[i] = values[i] + in[i] - out[i];

    QVERIFY(sketch_of_work(kDigest, values, in, out) == sketch_of_work(kDigest, given));
  }

  // Of a model of which a part is read, a part of each stretch.
  void of_many_values_some_of_each_stretch_are_read() {
    std::vector<float> values((std::size_t{1} << 24) + (1 << 20));
    for (std::size_t at = 0; at + (1 << 20) <= values.size(); at += std::size_t{1} << 22) {
      std::ranges::fill(values, 0.0f);
      std::ranges::fill(std::span(values).subspan(at, 1 << 20), 1.0f);
      const WorkSketch sketch = sketch_of_work(kDigest, values);
      QVERIFY(std::ranges::any_of(sketch, [](double value) { return value != 0; }));
    }
  }

  // All islands must draw alike; frozen: another draw is told from this one by no version.
  void it_is_the_same_on_every_machine() {
    std::vector<float> values(1'000'000);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 1'001) - 500;

    const std::string text = encode_sketch(sketch_of_work(kDigest, values));

    QCOMPARE(QString::fromStdString(sha256_hex(as_bytes(text))),
             "6ebed6f8a11f5504bb3feae5cbd0abe461124b840db5d45616d8c51cb60631ae");
    QVERIFY(encode_sketch(sketch_of_work(std::string(64, 'e'), values)) != text);
    QVERIFY(encode_sketch(of_fp32(values)) == text);
  }

  void a_format_of_long_blocks_has_none() { QVERIFY(!sketch_of_average(kDigest, WireFormat::kInt8Codebook, {}, 0)); }
};

QTEST_GUILESS_MAIN(WorkSketchTest)
#include "work_sketch_test.moc"
