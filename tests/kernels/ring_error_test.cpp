// What an all-reduce in each format costs in accuracy (ring_arithmetic.h).
#include <QtTest>
#include <cmath>

#include "tests/kernels/ring_arithmetic.h"

using namespace atl;

class RingErrorTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void relative_error_stays_below_its_bound_data();
  void relative_error_stays_below_its_bound();
  void int8_block_error_is_that_of_independent_roundings_data();
  void int8_block_error_is_that_of_independent_roundings();
  void what_a_member_sent_in_50_rounds_lacks_what_it_still_owes_data();
  void what_a_member_sent_in_50_rounds_lacks_what_it_still_owes();
  void fed_back_error_of_50_rounds_is_that_of_one_and_of_the_hops_data();
  void fed_back_error_of_50_rounds_is_that_of_one_and_of_the_hops();

 private:
  static void rows_of_formats_that_round();
};

void RingErrorTest::relative_error_stays_below_its_bound_data() {
  QTest::addColumn<int>("format");
  QTest::addColumn<bool>("heavy");
  QTest::addColumn<double>("percent_at_4");
  std::size_t formats = 0;
  const auto row = [&formats](WireFormat wire, double normal, double heavy) {
    ++formats;
    const std::string name(wire_format_name(wire));
    QTest::addRow("%s, normal", name.c_str()) << static_cast<int>(wire) << false << normal;
    QTest::addRow("%s, Student's t", name.c_str()) << static_cast<int>(wire) << true << heavy;
  };
  row(WireFormat::kFp32, 1e-5, 1e-5);
  row(WireFormat::kBf16, 0.35, 0.35);
  row(WireFormat::kInt8Block, 1.25, 3);
  row(WireFormat::kInt4E3m0, 27, 27);
  row(WireFormat::kInt8Codebook, 2.6, 100);  // it loses heavy tails: that is why it is here
  QCOMPARE(formats, kWireFormats.size());
}

void RingErrorTest::relative_error_stays_below_its_bound() {
  QFETCH(int, format);
  QFETCH(bool, heavy);
  QFETCH(double, percent_at_4);
  QString figures = QString("%1:").arg(QTest::currentDataTag());

  for (const unsigned members : {2u, 4u, 8u, 14u}) {
    const Measured measured = measure(static_cast<WireFormat>(format), heavy, members);
    figures += QString(" N=%1 %2 %").arg(members).arg(100 * measured.relative_rms, 0, 'g', 4);
    // What goes straight to its owner does not grow so.
    const double growth = std::sqrt(roundings_of_a_ring(members).all() / roundings_of_a_ring(4).all());
    QVERIFY(100 * measured.relative_rms <= percent_at_4 * std::max(1.0, growth));
    QVERIFY2(std::abs(measured.bias) <= 5, qPrintable(QString::number(measured.bias)));  // standard errors
  }
  qInfo("%s", qPrintable(figures));
}

void RingErrorTest::int8_block_error_is_that_of_independent_roundings_data() {
  QTest::addColumn<unsigned>("members");
  for (const unsigned members : {2u, 4u, 8u, 14u}) QTest::addRow("N=%u", members) << members;
}

void RingErrorTest::int8_block_error_is_that_of_independent_roundings() {
  QFETCH(unsigned, members);

  const double once = measure(WireFormat::kInt8Block, false, 1).relative_rms;
  const double growth = measure(WireFormat::kInt8Block, false, members).relative_rms / once;

  const double expected = std::sqrt(roundings_of_a_ring(members).all());
  QVERIFY2(std::abs(growth / expected - 1) <= 0.02, qPrintable(QString::number(growth / expected)));
}

void RingErrorTest::rows_of_formats_that_round() {
  QTest::addColumn<int>("format");
  for (const WireFormat wire : kWireFormats) {
    if (wire == WireFormat::kFp32) continue;  // loses nothing but roundings of fp32
    QTest::newRow(wire_format_name(wire).data()) << static_cast<int>(wire);
  }
}

void RingErrorTest::what_a_member_sent_in_50_rounds_lacks_what_it_still_owes_data() { rows_of_formats_that_round(); }

void RingErrorTest::what_a_member_sent_in_50_rounds_lacks_what_it_still_owes() {
  QFETCH(int, format);
  const auto wire = static_cast<WireFormat>(format);
  constexpr std::size_t kNumel = 1000;
  const float share = 0.3f;
  Values residual(kNumel, 0.0f);
  std::vector<std::byte> bytes(encoded_size(wire, kNumel));
  std::vector<double> lacks(kNumel, 0.0);
  double most = 0;

  for (unsigned round = 0; round < 50; ++round) {
    const Values x = normal_values(kNumel, 2000 + round);
    encode_weighted(wire, x, share, {residual, residual}, bytes);
    const Values sent = decoded(wire, bytes, kNumel);
    for (std::size_t i = 0; i < kNumel; ++i) {
      lacks[i] += static_cast<double>(share) * x[i] - sent[i];
      most = std::max(most, std::abs(static_cast<double>(x[i])));
    }
  }

  // Each round's sum, product, difference and quotient are rounded to fp32.
  for (std::size_t i = 0; i < kNumel; ++i) {
    QVERIFY(std::abs(lacks[i] - static_cast<double>(share) * residual[i]) <= 50 * 4 * 0x1p-24 * most);
  }
}

void RingErrorTest::fed_back_error_of_50_rounds_is_that_of_one_and_of_the_hops_data() { rows_of_formats_that_round(); }

void RingErrorTest::fed_back_error_of_50_rounds_is_that_of_one_and_of_the_hops() {
  QFETCH(int, format);
  const auto wire = static_cast<WireFormat>(format);
  constexpr unsigned kRounds = 50, kMembers = 4;

  const SummedError error = error_of_rounds(wire, kMembers, kRounds);

  qInfo("%s: the error of 50 rounds' sum is %.2f times that of one; without feedback %.2f times",
        QTest::currentDataTag(), error.fed_back, error.forgotten);
  QVERIFY(error.forgotten >= 5);
  if (!sums_hop_by_hop(wire)) {
    // What is left is one round's error, made on values a little larger for what they carry along.
    QVERIFY(error.fed_back <= 1.1);
  } else {
    // Own errors are paid back, but for the last round's; sums' are nobody's. bf16's are not quite independent: own
    // values lie on the grid of the sum, or in the middle of it.
    const Roundings roundings = roundings_of_a_ring(kMembers);
    const double left = std::sqrt((roundings.of_own + kRounds * roundings.of_sums) / (kRounds * roundings.all()));
    QVERIFY2(std::abs(error.fed_back / error.forgotten / left - 1) <= 0.03, qPrintable(QString::number(left)));
  }
}

QTEST_APPLESS_MAIN(RingErrorTest)
#include "ring_error_test.moc"
