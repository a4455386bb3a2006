// An invite and the hub that it names, from what was pasted to what the hub says to it, over an agent in memory.
#include <QtTest>

#include "app/core/join_model.h"
#include "tests/app/core/join_fixture.h"
#include "tests/fakes/patience.h"

using namespace atl;
using namespace atl::test;
using ViewStatus = StageView::Status;

class JoinInviteTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void a_pasted_invite_is_read_offline();
  void a_bad_invite_is_told_by_its_defect_data();
  void a_bad_invite_is_told_by_its_defect();
  void the_hub_says_who_it_is();
  void a_hub_with_another_key_has_no_way_around();
  void a_hub_that_cannot_be_asked_is_told_by_its_cause_data();
  void a_hub_that_cannot_be_asked_is_told_by_its_cause();
  void a_look_at_another_invite_is_not_this_ones();
  void a_refused_invite_fails_with_its_code_data();
  void a_refused_invite_fails_with_its_code();
  void an_invite_is_forgotten_once_it_is_used();
};

void JoinInviteTest::a_pasted_invite_is_read_offline() {
  JoinFixture f;
  const QString text = QString::fromStdString(text_of(good_invite()));
  // As a link, and as a mail program breaks it.
  for (const QString& pasted : {text, "atoll:join?i=" + text, "  " + text.left(20) + "\n " + text.mid(20) + "\r\n"}) {
    QVERIFY(f.join.setInvite(pasted, kNow).ok());
    QCOMPARE(f.join.invite()->run_name, std::string("gcide-demo"));
  }
  QCOMPARE(f.agent.attempts(), 0u);
}

void JoinInviteTest::a_bad_invite_is_told_by_its_defect_data() {
  QTest::addColumn<QString>("text");
  QTest::addColumn<int>("code");
  const QString good = QString::fromStdString(text_of(good_invite()));
  Invite old = good_invite();
  old.expires = kNow - 1h;
  QTest::newRow("nothing") << "" << static_cast<int>(ErrorCode::kInviteMalformed);
  QTest::newRow("something else") << "https://example.org" << static_cast<int>(ErrorCode::kInviteMalformed);
  QTest::newRow("a part") << good.left(good.size() - 3) << static_cast<int>(ErrorCode::kInviteMalformed);
  QTest::newRow("changed") << QString(good).replace(30, 1, good[30] == 'A' ? "B" : "A")
                           << static_cast<int>(ErrorCode::kInviteMalformed);
  QTest::newRow("expired") << QString::fromStdString(text_of(old)) << static_cast<int>(ErrorCode::kInviteExpired);
  QTest::newRow("newer") << QString(good).replace("atoll1.", "atoll2.")
                         << static_cast<int>(ErrorCode::kVersionUnsupported);
}

void JoinInviteTest::a_bad_invite_is_told_by_its_defect() {
  QFETCH(const QString, text);
  QFETCH(const int, code);
  JoinFixture f;

  const Status status = f.join.setInvite(text, kNow);

  QVERIFY(!status.ok() && !f.join.invite());
  QCOMPARE(static_cast<int>(status.error().code), code);
}

void JoinInviteTest::the_hub_says_who_it_is() {
  JoinFixture f;
  QVERIFY(f.connect());
  QVERIFY(f.join.setInvite(QString::fromStdString(text_of(good_invite())), kNow).ok());
  QSignalSpy changed(&f.join, &JoinModel::lookChanged);

  f.join.look();
  QVERIFY(f.join.looking());
  QTRY_COMPARE(f.agent.count("invite.look"), 1u);
  f.agent.tell("invite.looked", looked());

  QTRY_VERIFY(f.join.hub());
  QVERIFY(!f.join.looking() && !f.join.lookProblem());
  QCOMPARE(f.join.hub()->operator_name, std::string("Ada"));
  QCOMPARE(f.join.hub()->parameters, 150'000'000u);
  QCOMPARE(changed.size(), 2);
}

void JoinInviteTest::a_hub_with_another_key_has_no_way_around() {
  JoinFixture f;
  QVERIFY(f.connect());
  QVERIFY(f.join.setInvite(QString::fromStdString(text_of(good_invite())), kNow).ok());
  f.join.look();
  f.agent.tell("invite.looked", looked("00ff"));
  QTRY_VERIFY(f.join.lookProblem());
  QCOMPARE(f.join.lookProblem()->code, ErrorCode::kPinMismatch);
  QVERIFY(!f.join.hub());

  f.join.look();
  f.agent.tell("invite.looked", looked(nullptr, "run-2"));
  QTRY_VERIFY(f.join.lookProblem());
  QCOMPARE(f.join.lookProblem()->code, ErrorCode::kInviteOtherRun);
}

void JoinInviteTest::a_hub_that_cannot_be_asked_is_told_by_its_cause_data() {
  QTest::addColumn<QString>("code");
  QTest::addColumn<int>("expected");
  QTest::newRow("down") << "unreachable" << static_cast<int>(ErrorCode::kUnreachable);
  QTest::newRow("pin") << "pin_mismatch" << static_cast<int>(ErrorCode::kPinMismatch);
  QTest::newRow("version") << "version_unsupported" << static_cast<int>(ErrorCode::kVersionUnsupported);
  QTest::newRow("a newer cause") << "tired" << static_cast<int>(ErrorCode::kInternal);
}

void JoinInviteTest::a_hub_that_cannot_be_asked_is_told_by_its_cause() {
  QFETCH(const QString, code);
  QFETCH(const int, expected);
  JoinFixture f;
  QVERIFY(f.connect());
  QVERIFY(f.join.setInvite(QString::fromStdString(text_of(good_invite())), kNow).ok());
  f.join.look();

  f.agent.tell("invite.looked", {{"ok", false}, {"code", code.toStdString()}, {"message", "why"}});

  QTRY_VERIFY(f.join.lookProblem());
  QCOMPARE(static_cast<int>(f.join.lookProblem()->code), expected);
  QCOMPARE(f.join.lookProblem()->message, std::string("why"));
}

void JoinInviteTest::a_look_at_another_invite_is_not_this_ones() {
  JoinFixture f;
  QVERIFY(f.connect());
  QVERIFY(f.join.setInvite(QString::fromStdString(text_of(good_invite())), kNow).ok());
  f.join.look();
  nlohmann::json other = looked(), own = looked();
  other["invite"] = "inv-0";
  own["invite"] = "inv-1";

  f.agent.tell("invite.looked", other);
  f.agent.tell("something", nullptr);
  QTRY_COMPARE(f.agent.count("invite.look"), 1u);
  QTest::qWait(20);
  QVERIFY(f.join.looking());
  f.agent.tell("invite.looked", own);

  QTRY_VERIFY(f.join.hub());
}

void JoinInviteTest::a_refused_invite_fails_with_its_code_data() {
  QTest::addColumn<int>("code");
  for (const ErrorCode code :
       {ErrorCode::kInviteUsed, ErrorCode::kInviteUnknown, ErrorCode::kInviteExpired, ErrorCode::kPinMismatch,
        ErrorCode::kUnreachable, ErrorCode::kPermissionDenied, ErrorCode::kTimeout}) {
    QTest::newRow(std::string(to_string(code)).c_str()) << static_cast<int>(code);
  }
}

void JoinInviteTest::a_refused_invite_fails_with_its_code() {
  QFETCH(const int, code);
  JoinFixture f;
  QVERIFY(f.begin());
  f.progress("key", "done");
  f.progress("enrol", "running");

  f.agent.tell("join.done", {{"ok", false}, {"code", to_string(static_cast<ErrorCode>(code))}, {"message", "why"}});

  QVERIFY(f.reaches(JoinStage::kEnrol, ViewStatus::kFailed));
  QCOMPARE(static_cast<int>(f.join.problem()->code), code);
  QCOMPARE(f.join.stage(JoinStage::kEnrol).text, std::string("why"));
  QCOMPARE(f.join.stage(JoinStage::kKey).status, ViewStatus::kDone);
  QVERIFY(!f.join.joining() && !f.join.joined());
}

void JoinInviteTest::an_invite_is_forgotten_once_it_is_used() {
  JoinFixture f;
  QVERIFY(f.begin());
  QVERIFY(f.join.invite());
  f.agent.tell("join.done", {{"ok", true}, {"text", "joined"}});
  f.progress("first_step", "done");

  QVERIFY(QTest::qWaitFor([&] { return f.join.joined(); }));

  QVERIFY(!f.join.invite());
}

QTEST_GUILESS_MAIN(JoinInviteTest)
#include "join_invite_test.moc"
