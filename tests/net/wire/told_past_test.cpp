// What a hub tells an island of the run's past: it survives the wire, and what no hub tells is refused by name.
#include <QtTest>
#include <limits>

#include "net/wire/told_past.h"

using namespace atl;

namespace {

ToldPast largest() {
  ToldPast past;
  for (std::size_t i = 0; i < kMaxPastRounds; ++i) {
    past.rounds.push_back({static_cast<std::uint32_t>(i * 16'000'000), 16'000'000, std::uint64_t{1} << 55,
                           1.2345678901234567e+300, 1.2345678901234567e+300});
  }
  for (std::size_t i = 0; i < kMaxPastValidations; ++i) {
    past.validations.push_back({static_cast<std::uint32_t>(4'000'000'000 + i), 1.2345678901234567e+300});
  }
  return past;
}

}  // namespace

class ToldPastTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void a_past_survives_a_round_trip();
  void the_largest_fits_its_bound();
  void what_no_hub_tells_is_refused_data();
  void what_no_hub_tells_is_refused();
};

void ToldPastTest::a_past_survives_a_round_trip() {
  const ToldPast said{{{0, 2, std::uint64_t{1} << 40, 60.5, 5.25}, {2, 1, 8192, 30, 0}}, {{0, 5.5}, {3, 4.5}}};

  const std::string text = encode(said);

  QCOMPARE(text, std::string(
                     R"({"rounds":[{"mean_loss_nats":5.25,"round":0,"rounds":2,"seconds":60.5,"tokens":1099511627776},)"
                     R"({"mean_loss_nats":0.0,"round":2,"rounds":1,"seconds":30.0,"tokens":8192}],)"
                     R"("validations":[{"loss_nats":5.5,"outer_step":0},{"loss_nats":4.5,"outer_step":3}]})"));
  const auto heard = decode_past(text);
  QVERIFY2(heard.ok(), heard.ok() ? "" : heard.error().message.c_str());
  QCOMPARE(encode(*heard), text);
  QVERIFY(decode_past(R"({"rounds":[],"validations":[],"later":1})").ok());
}

void ToldPastTest::the_largest_fits_its_bound() {
  const std::string text = encode(largest());
  QVERIFY2(text.size() <= kMaxPastBytes, std::to_string(text.size()).c_str());
  QVERIFY(decode_past(text).ok());
}

void ToldPastTest::what_no_hub_tells_is_refused_data() {
  QTest::addColumn<QByteArray>("text");
  const auto rounds = [](const QByteArray& list) { return R"({"validations":[],"rounds":[)" + list + "]}"; };
  const auto validations = [](const QByteArray& list) { return R"({"rounds":[],"validations":[)" + list + "]}"; };
  const auto piece = [](const QByteArray& round, const QByteArray& count, const QByteArray& tokens = "1",
                        const QByteArray& seconds = "1", const QByteArray& loss = "1") {
    return R"({"mean_loss_nats":)" + loss + R"(,"round":)" + round + R"(,"rounds":)" + count + R"(,"seconds":)" +
           seconds + R"(,"tokens":)" + tokens + "}";
  };
  QByteArray many = piece("0", "1"), checked = R"({"loss_nats":1,"outer_step":0})";
  for (std::size_t i = 1; i <= kMaxPastRounds; ++i) {
    many += "," + piece(QByteArray::number(static_cast<int>(i)), "1");
    checked += R"(,{"loss_nats":1,"outer_step":)" + QByteArray::number(static_cast<int>(i)) + "}";
  }
  QTest::newRow("nothing") << QByteArray();
  QTest::newRow("a list") << QByteArray("[]");
  QTest::newRow("no validations") << QByteArray(R"({"rounds":[]})");
  QTest::newRow("no rounds") << QByteArray(R"({"validations":[]})");
  QTest::newRow("a text for rounds") << QByteArray(R"({"rounds":"1","validations":[]})");
  QTest::newRow("too many pieces") << rounds(many);
  QTest::newRow("too many validations") << validations(checked);
  QTest::newRow("too large") << QByteArray(static_cast<int>(kMaxPastBytes) + 1, ' ');
  QTest::newRow("a piece of no round") << rounds(piece("0", "0"));
  QTest::newRow("pieces that overlap") << rounds(piece("0", "2") + "," + piece("1", "1"));
  QTest::newRow("pieces out of order") << rounds(piece("5", "1") + "," + piece("0", "1"));
  QTest::newRow("rounds beyond counting") << rounds(piece("4294967295", "4294967295"));
  QTest::newRow("tokens beyond counting")
      << rounds(piece("0", "1", "18446744073709551615") + "," + piece("1", "1", "1"));
  QTest::newRow("tokens below nothing") << rounds(piece("0", "1", "-1"));
  QTest::newRow("time below nothing") << rounds(piece("0", "1", "1", "-1"));
  QTest::newRow("a time that is none") << rounds(piece("0", "1", "1", "null"));
  QTest::newRow("a loss that is none") << rounds(piece("0", "1", "1", "1", "null"));
  QTest::newRow("a loss without end") << rounds(piece("0", "1", "1", "1", "1e400"));
  QTest::newRow("a validation that is none") << validations(R"({"loss_nats":null,"outer_step":0})");
  QTest::newRow("validations out of order")
      << validations(R"({"loss_nats":1,"outer_step":5},{"loss_nats":1,"outer_step":5})");
}

void ToldPastTest::what_no_hub_tells_is_refused() {
  QFETCH(const QByteArray, text);
  const auto past = decode_past({text.constData(), static_cast<std::size_t>(text.size())});
  QVERIFY(!past.ok());
  QVERIFY2(past.error().message.find("the run's past") != std::string::npos, past.error().message.c_str());
  QCOMPARE(past.error().code, ErrorCode::kProtocol);
}

QTEST_GUILESS_MAIN(ToldPastTest)
#include "told_past_test.moc"
