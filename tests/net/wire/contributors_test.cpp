// What a hub says of those who train its run, which an island writes into a model's card.
#include <QtTest>

#include "net/wire/contributors.h"

using namespace atl;

class ContributorsTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void who_contributed_survives_a_round_trip();
  void names_come_as_they_can_be_shown();
  void garbage_is_refused_data();
  void garbage_is_refused();
};

void ContributorsTest::who_contributed_survives_a_round_trip() {
  const std::vector<Contributor> said = {{"Reef", 12, std::uint64_t{1} << 40}, {"", 1, 64, 3}};

  const std::string text = encode(said);

  QCOMPARE(text, std::string(R"({"contributors":[{"islands":1,"name":"Reef","rounds":12,"tokens":1099511627776},)"
                             R"({"islands":3,"name":"","rounds":1,"tokens":64}]})"));
  const auto heard = decode_contributors(text);
  QVERIFY(heard.ok());
  QCOMPARE(encode(*heard), text);
}

void ContributorsTest::names_come_as_they_can_be_shown() {
  const auto heard =
      decode_contributors("{\"contributors\":[{\"islands\":1,\"name\":\"a\\u001b[2Jb\",\"rounds\":1,\"tokens\":1}]}");
  QVERIFY(heard.ok());
  QVERIFY(heard->front().name.find('\x1b') == std::string::npos);
}

void ContributorsTest::garbage_is_refused_data() {
  QTest::addColumn<QByteArray>("text");
  const auto entry = QByteArray(R"({"islands":1,"name":"a","rounds":1,"tokens":1})");
  QByteArray many = entry;
  for (std::size_t i = 1; i <= kMaxContributors; ++i) many += "," + entry;
  QTest::newRow("nothing") << QByteArray();
  QTest::newRow("a list") << QByteArray("[]");
  QTest::newRow("no list") << QByteArray("{}");
  QTest::newRow("a text") << QByteArray(R"({"contributors":"a"})");
  QTest::newRow("tokens below nothing") << QByteArray(
      R"({"contributors":[{"islands":1,"name":"a","rounds":1,"tokens":-1}]})");
  QTest::newRow("a name that is too long")
      << R"({"contributors":[{"islands":1,"name":")" + QByteArray(100'000, 'x') + R"(","rounds":1,"tokens":1}]})";
  QTest::newRow("too many") << R"({"contributors":[)" + many + "]}";
  QTest::newRow("too large") << QByteArray(static_cast<int>(kMaxContributorsBytes) + 1, ' ');
}

void ContributorsTest::garbage_is_refused() {
  QFETCH(const QByteArray, text);
  QVERIFY(!decode_contributors({text.constData(), static_cast<std::size_t>(text.size())}).ok());
}

QTEST_GUILESS_MAIN(ContributorsTest)
#include "contributors_test.moc"
