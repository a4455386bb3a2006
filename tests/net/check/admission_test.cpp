// What a run asks of an island's check before it takes it.
#include "net/check/admission.h"

#include <QtTest>

using namespace atl;

class AdmissionTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void a_required_row_must_pass_or_warn_data();
  void a_required_row_must_pass_or_warn();
  void an_island_that_says_nothing_enters_where_nothing_is_required();
  void a_check_made_for_another_run_does_not_count();
};

void AdmissionTest::a_required_row_must_pass_or_warn_data() {
  QTest::addColumn<QByteArray>("verdict");
  QTest::addColumn<bool>("enters");
  QTest::newRow("pass") << QByteArray("pass") << true;
  QTest::newRow("warn") << QByteArray("warn") << true;
  QTest::newRow("fail") << QByteArray("fail") << false;
  QTest::newRow("skip") << QByteArray("skip") << false;
  QTest::newRow("nonsense") << QByteArray("PASS") << false;
  QTest::newRow("not told") << QByteArray() << false;
}

void AdmissionTest::a_required_row_must_pass_or_warn() {
  QFETCH(const QByteArray, verdict);
  QFETCH(const bool, enters);
  const CheckPolicy policy = *parse_check_policy(R"({"require": ["net.loss"]})");
  std::vector<CheckedRow> rows{{"ram", "fail"}};
  if (!verdict.isEmpty()) rows.push_back({"net.loss", verdict.toStdString()});

  const Status admitted = admit_checked(policy, rows);

  QCOMPARE(admitted.ok(), enters);
  if (enters) return;
  QCOMPARE(admitted.error().code, ErrorCode::kPermissionDenied);
  QVERIFY2(admitted.error().message.find("net.loss") != std::string::npos, admitted.error().message.c_str());
}

void AdmissionTest::an_island_that_says_nothing_enters_where_nothing_is_required() {
  QVERIFY(admit_checked({}, std::nullopt).ok());
  QVERIFY(!admit_checked(*parse_check_policy(R"({"require": ["ram"]})"), std::nullopt).ok());
}

void AdmissionTest::a_check_made_for_another_run_does_not_count() {
  CheckReport report{.software = "atoll 0.1.0", .run_id = "0123456789abcdef"};
  report.rows.push_back({.id = "ram", .verdict = Verdict::kPass});

  QVERIFY(!checked_rows(report, "fedcba9876543210").has_value());
  const auto rows = checked_rows(report, "0123456789abcdef");

  QCOMPARE(rows->size(), std::size_t{1});
  QCOMPARE(rows->front().row, std::string("ram"));
  QCOMPARE(rows->front().verdict, std::string("pass"));
}

QTEST_APPLESS_MAIN(AdmissionTest)
#include "admission_test.moc"
