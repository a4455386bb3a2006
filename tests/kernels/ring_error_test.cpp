// What an all-reduce in each format costs in accuracy: the ring's arithmetic, without the ring. Errors are relative:
// root mean square of (result - exact mean) over that of the exact mean.
#include <QtTest>
#include <cmath>
#include <span>
#include <vector>

#include "kernels/reduce.h"
#include "kernels/wire_codec.h"
#include "tests/kernels/codec_values.h"

using namespace atl;

namespace {

using Values = std::vector<float>;

Values decoded(WireFormat wire, const std::vector<std::byte>& bytes, std::size_t numel) {
  Values x(numel);
  decode_values(wire, bytes, x);
  return x;
}

// What the members of a ring leave behind for one chunk, whose owner is the last of them. Equal weights. Residuals are
// fed back where there are any, one a member.
Values all_reduced(WireFormat wire, const std::vector<Values>& inputs, std::vector<Values>& residuals) {
  const float share = 1.0f / static_cast<float>(inputs.size());
  const std::size_t numel = inputs[0].size();
  Values none(numel, 0.0f);
  Values ignored(numel);
  const auto feedback = [&](std::size_t member) {
    return residuals.empty() ? ErrorFeedback{none, ignored} : ErrorFeedback{residuals[member], residuals[member]};
  };
  std::vector<std::byte> bytes(encoded_size(wire, numel));
  if (sums_hop_by_hop(wire)) {
    encode_weighted(wire, inputs[0], share, feedback(0), bytes);
    for (std::size_t m = 1; m < inputs.size(); ++m) add_weighted(wire, bytes, inputs[m], share, feedback(m), bytes);
    return decoded(wire, bytes, numel);
  }
  const std::size_t owner = inputs.size() - 1;
  Values sum(numel);
  scaled_sum_copy(inputs[owner], feedback(owner).residual_in, share, sum);
  for (std::size_t m = 0; m < owner; ++m) {
    encode_weighted(wire, inputs[m], share, feedback(m), bytes);
    decode_add_values(wire, bytes, sum);
  }
  encode_sum(wire, sum, share, feedback(owner).residual_out, bytes);
  return decoded(wire, bytes, numel);
}

std::vector<double> exact_mean(const std::vector<Values>& inputs) {
  std::vector<double> mean(inputs[0].size(), 0.0);
  for (const Values& input : inputs) {
    for (std::size_t i = 0; i < mean.size(); ++i) mean[i] += input[i] / static_cast<double>(inputs.size());
  }
  return mean;
}

double rms(const std::vector<double>& x) {
  double squares = 0;
  for (const double value : x) squares += value * value;
  return std::sqrt(squares / static_cast<double>(x.size()));
}

struct Measured {
  double relative_rms = 0;
  double bias = 0;  // mean error over its standard error
};

Measured measure(WireFormat wire, bool heavy, unsigned members) {
  constexpr std::size_t kNumel = 1 << 18;
  std::vector<Values> inputs;
  for (unsigned m = 0; m < members; ++m) {
    inputs.push_back(heavy ? heavy_tails(kNumel, 100 + m) : normal_values(kNumel, 200 + m));
  }
  std::vector<Values> no_residuals;
  const Values result = all_reduced(wire, inputs, no_residuals);
  const auto mean = exact_mean(inputs);
  std::vector<double> error(kNumel);
  double sum = 0;
  for (std::size_t i = 0; i < kNumel; ++i) {
    error[i] = result[i] - mean[i];
    sum += error[i];
  }
  return {rms(error) / rms(mean), sum / (rms(error) * std::sqrt(kNumel))};
}

}  // namespace

class RingErrorTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void relative_error_stays_below_its_bound_data();
  void relative_error_stays_below_its_bound();
  void int8_block_error_grows_with_the_root_of_the_hops_data();
  void int8_block_error_grows_with_the_root_of_the_hops();
  void fed_back_error_of_50_rounds_is_that_of_one_data();
  void fed_back_error_of_50_rounds_is_that_of_one();
};

void RingErrorTest::relative_error_stays_below_its_bound_data() {
  QTest::addColumn<int>("format");
  QTest::addColumn<bool>("heavy");
  QTest::addColumn<double>("percent_at_4");
  const auto row = [](WireFormat wire, double normal, double heavy) {
    const std::string name(wire_format_name(wire));
    QTest::addRow("%s, normal", name.c_str()) << static_cast<int>(wire) << false << normal;
    QTest::addRow("%s, Student's t", name.c_str()) << static_cast<int>(wire) << true << heavy;
  };
  row(WireFormat::kFp32, 1e-5, 1e-5);
  row(WireFormat::kBf16, 0.3, 0.3);
  row(WireFormat::kInt8Block, 1.1, 3);
  row(WireFormat::kInt4E3m0, 27, 27);
  row(WireFormat::kInt8Codebook, 2.3, 100);  // it loses heavy tails: that is why it is here
}

void RingErrorTest::relative_error_stays_below_its_bound() {
  QFETCH(int, format);
  QFETCH(bool, heavy);
  QFETCH(double, percent_at_4);
  QString figures = QString("%1:").arg(QTest::currentDataTag());

  for (const unsigned members : {2u, 4u, 8u, 14u}) {
    const Measured measured = measure(static_cast<WireFormat>(format), heavy, members);
    figures += QString(" N=%1 %2 %").arg(members).arg(100 * measured.relative_rms, 0, 'g', 4);
    // By hops: sqrt((N + 1) / 2), of which N = 4 has 1.58; what goes straight to its owner does not grow so.
    QVERIFY(100 * measured.relative_rms <= percent_at_4 * std::max(1.0, std::sqrt((members + 1) / 5.0)));
    QVERIFY2(std::abs(measured.bias) <= 5, qPrintable(QString::number(measured.bias)));  // standard errors
  }
  qInfo("%s", qPrintable(figures));
}

void RingErrorTest::int8_block_error_grows_with_the_root_of_the_hops_data() {
  QTest::addColumn<unsigned>("members");
  for (const unsigned members : {2u, 4u, 8u, 14u}) QTest::addRow("N=%u", members) << members;
}

void RingErrorTest::int8_block_error_grows_with_the_root_of_the_hops() {
  QFETCH(unsigned, members);

  const double once = measure(WireFormat::kInt8Block, false, 1).relative_rms;
  const double growth = measure(WireFormat::kInt8Block, false, members).relative_rms / once;

  // N roundings of sums of 1 .. N members each, whose errors are independent: (1 + .. + N) / N over N.
  const double expected = std::sqrt((members + 1) / 2.0);
  QVERIFY2(std::abs(growth / expected - 1) <= 0.02, qPrintable(QString::number(growth / expected)));
}

void RingErrorTest::fed_back_error_of_50_rounds_is_that_of_one_data() {
  QTest::addColumn<int>("format");
  for (const WireFormat wire : kWireFormats) {
    if (wire == WireFormat::kFp32) continue;  // loses nothing but roundings of fp32
    QTest::newRow(wire_format_name(wire).data()) << static_cast<int>(wire);
  }
}

void RingErrorTest::fed_back_error_of_50_rounds_is_that_of_one() {
  QFETCH(int, format);
  const auto wire = static_cast<WireFormat>(format);
  constexpr std::size_t kNumel = 1 << 14;
  constexpr unsigned kMembers = 4;
  std::vector<Values> residuals(kMembers, Values(kNumel, 0.0f));
  std::vector<Values> no_residuals;
  std::vector<double> fed_back(kNumel, 0.0);
  std::vector<double> forgotten(kNumel, 0.0);
  double first = 0;

  for (unsigned round = 0; round < 50; ++round) {
    std::vector<Values> inputs;
    for (unsigned m = 0; m < kMembers; ++m) inputs.push_back(normal_values(kNumel, 1000 + round * kMembers + m));
    const auto mean = exact_mean(inputs);
    const Values with = all_reduced(wire, inputs, residuals);
    const Values without = all_reduced(wire, inputs, no_residuals);
    for (std::size_t i = 0; i < kNumel; ++i) {
      fed_back[i] += with[i] - mean[i];
      forgotten[i] += without[i] - mean[i];
    }
    if (round == 0) first = rms(forgotten);
  }

  qInfo("%s: the error of 50 rounds' sum is %.2f times that of one; without feedback %.2f times",
        QTest::currentDataTag(), rms(fed_back) / first, rms(forgotten) / first);
  // What is left is one round's error, made on values a little larger for what they carry along.
  QVERIFY(rms(fed_back) <= 1.1 * first);
  QVERIFY(rms(forgotten) >= 5 * first);
}

QTEST_APPLESS_MAIN(RingErrorTest)
#include "ring_error_test.moc"
