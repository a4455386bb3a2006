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
  void int8_block_error_grows_with_the_root_of_the_hops_data();
  void int8_block_error_grows_with_the_root_of_the_hops();
  void fed_back_error_of_50_rounds_is_that_of_one_data();
  void fed_back_error_of_50_rounds_is_that_of_one();
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
  row(WireFormat::kBf16, 0.3, 0.3);
  row(WireFormat::kInt8Block, 1.1, 3);
  row(WireFormat::kInt4E3m0, 27, 27);
  row(WireFormat::kInt8Codebook, 2.3, 100);  // it loses heavy tails: that is why it is here
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

  const SummedError error = error_of_rounds(wire, 4, 50);

  qInfo("%s: the error of 50 rounds' sum is %.2f times that of one; without feedback %.2f times",
        QTest::currentDataTag(), error.fed_back, error.forgotten);
  // What is left is one round's error, made on values a little larger for what they carry along.
  QVERIFY(error.fed_back <= 1.1);
  QVERIFY(error.forgotten >= 5);
}

QTEST_APPLESS_MAIN(RingErrorTest)
#include "ring_error_test.moc"
