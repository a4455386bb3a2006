// The join wizard's first pages, the invite and whether its hub is to be trusted, over an agent in memory.
#include <QAbstractButton>
#include <QLabel>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QtTest>

#include "app/gui/join_wizard/join_wizard.h"
#include "app/gui/parts/notice.h"
#include "net/base/encoding.h"
#include "tests/app/gui/wizard_fixture.h"
#include "tests/fakes/patience.h"

using namespace atl;
using namespace atl::test;

namespace {

QString expired_invite() {
  Invite invite = plain_invite();
  invite.expires = std::chrono::sys_seconds(std::chrono::seconds(1'000'000'000));
  return text_of(invite);
}

// As long as it should be, and with a checksum that fits.
QString with_checksum(const std::string& body) {
  return QString::fromStdString(body) + "." + QString("%1").arg(crc32(as_bytes(body)), 8, 16, QChar('0'));
}

}  // namespace

class WizardInviteTest : public WizardFixture {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase() { begin(); }
  void init() { open(); }
  void cleanup() { close(); }

  void each_bad_invite_says_what_is_wrong_with_it_data();
  void each_bad_invite_says_what_is_wrong_with_it();
  void a_good_invite_names_its_run();
  void an_invite_may_be_a_link_broken_over_lines();
  void an_invite_is_read_from_a_file();
  void a_file_without_an_invite_is_told_so();
  void the_hub_is_shown_once_its_key_was_verified();
  void each_problem_of_the_hub_has_its_own_sentence_data();
  void each_problem_of_the_hub_has_its_own_sentence();
  void another_key_has_no_way_around();
  void an_agent_is_started_when_none_runs();
  void an_agent_that_has_died_unnoticed_is_started_again();
};

void WizardInviteTest::each_bad_invite_says_what_is_wrong_with_it_data() {
  QTest::addColumn<QString>("text");
  QTest::addColumn<QString>("sentence");
  QString changed = good_invite();
  changed[20] = changed[20] == 'A' ? 'B' : 'A';
  QTest::newRow("something else") << "hello"
                                  << "This is not an invite.";
  QTest::newRow("its beginning is missing") << good_invite().mid(9) << "This is not an invite.";
  QTest::newRow("its end is missing") << good_invite().chopped(9) << "The end of the invite is missing.";
  QTest::newRow("half of it") << good_invite().left(40) << "The end of the invite is missing.";
  QTest::newRow("a letter is another") << changed << "A part of the invite is missing or was changed.";
  QTest::newRow("a piece is missing") << good_invite().remove(30, 5)
                                      << "A part of the invite is missing or was changed.";
  QTest::newRow("of a foreign program") << with_checksum("atoll1.AAAA") << "This invite was not made as it should be.";
  QTest::newRow("a whole letter") << QString("word ").repeated(2000) << "This is too long to be an invite.";
  QTest::newRow("of another version") << with_checksum("atoll9.AAAA") << "This invite is for another version of Atoll.";
  QTest::newRow("expired") << expired_invite() << "This invite has expired.";
}

void WizardInviteTest::each_bad_invite_says_what_is_wrong_with_it() {
  QFETCH(QString, text);
  QFETCH(QString, sentence);

  paste(text);

  QCOMPARE(notice("invite_notice")->sentence(), sentence);
  QCOMPARE(notice("invite_notice")->kind(), Notice::Kind::kError);
  QVERIFY(!notice("invite_notice")->advice().isEmpty());
  QVERIFY(!can_go_on());
}

void WizardInviteTest::a_good_invite_names_its_run() {
  QVERIFY(!can_go_on());

  paste(good_invite());

  QCOMPARE(notice("invite_notice")->sentence(), QString("An invite to the run \u201Cgcide-demo\u201D."));
  QVERIFY(notice("invite_notice")->advice().contains("hub.example.org:47000"));
  QVERIFY(can_go_on());
}

void WizardInviteTest::an_invite_may_be_a_link_broken_over_lines() {
  QString link = QString::fromStdString(invite_link(good_invite().toStdString()));

  wizard_->setInviteText(link.insert(50, "\n  "));

  QCOMPARE(notice("invite_notice")->kind(), Notice::Kind::kGood);
  QVERIFY(can_go_on());
}

void WizardInviteTest::an_invite_is_read_from_a_file() {
  QFile file(world_->directory.filePath("invite.txt"));
  QVERIFY(file.open(QIODevice::WriteOnly));
  file.write(good_invite().toUtf8() + "\n");
  file.close();
  QMimeData dropped;
  dropped.setUrls({QUrl::fromLocalFile(file.fileName())});

  auto* edit = find<QPlainTextEdit>("invite");
  QDropEvent drop(QPointF(5, 5), Qt::CopyAction, &dropped, Qt::LeftButton, Qt::NoModifier);
  QDragEnterEvent enter(QPoint(5, 5), Qt::CopyAction, &dropped, Qt::LeftButton, Qt::NoModifier);
  QApplication::sendEvent(edit->viewport(), &enter);
  QApplication::sendEvent(edit->viewport(), &drop);

  QTRY_COMPARE(notice("invite_notice")->kind(), Notice::Kind::kGood);
}

void WizardInviteTest::a_file_without_an_invite_is_told_so() {
  QFile file(world_->directory.filePath("empty.txt"));
  QVERIFY(file.open(QIODevice::WriteOnly));
  file.close();
  auto* edit = find<QPlainTextEdit>("invite");

  QMetaObject::invokeMethod(edit, "fileDropped", Q_ARG(QString, file.fileName()));
  QCOMPARE(notice("invite_notice")->sentence(), QString("The file is empty."));

  QMetaObject::invokeMethod(edit, "fileDropped", Q_ARG(QString, world_->directory.filePath("nothing")));
  QCOMPARE(notice("invite_notice")->sentence(), QString("The file cannot be read."));
}

void WizardInviteTest::the_hub_is_shown_once_its_key_was_verified() {
  to_trust();

  QTRY_COMPARE(notice("trust_notice")->kind(), Notice::Kind::kGood);
  QCOMPARE(find<QLabel>("run")->text(), QString("gcide-demo (run-1)"));
  QCOMPARE(find<QLabel>("operator")->text(), QString("Ada"));
  QVERIFY(find<QLabel>("model")->text().startsWith("llama, "));
  QVERIFY(find<QLabel>("pin")->text().startsWith("abab abab"));
  QVERIFY(!find<QLabel>("expiry")->text().isEmpty());
  QVERIFY(can_go_on());
}

void WizardInviteTest::each_problem_of_the_hub_has_its_own_sentence_data() {
  QTest::addColumn<QString>("code");
  QTest::addColumn<QString>("sentence");
  QTest::newRow("unreachable") << "unreachable"
                               << "The hub cannot be reached.";
  QTest::newRow("timeout") << "timeout"
                           << "The hub cannot be reached.";
  QTest::newRow("no hub") << "certificate"
                          << "Something answers at the hub's address, but it is no hub.";
  QTest::newRow("another run") << "invite_other_run"
                               << "The hub serves another run than the invite's.";
  QTest::newRow("used") << "invite_used"
                        << "This invite has been used up.";
  QTest::newRow("unknown") << "invite_unknown"
                           << "The hub does not know this invite.";
  QTest::newRow("expired") << "invite_expired"
                           << "This invite has expired.";
  QTest::newRow("version") << "version_unsupported"
                           << "The hub runs another version of Atoll than this machine.";
}

void WizardInviteTest::each_problem_of_the_hub_has_its_own_sentence() {
  QFETCH(QString, code);
  QFETCH(QString, sentence);
  QVERIFY2(parse_error_code(code.toStdString()).has_value(), qPrintable(code));
  agent().answer("invite.look", [this, code](const auto&) {
    agent().tell("invite.looked", {{"ok", false}, {"code", code.toStdString()}, {"message", "in the agent's words"}});
    return nlohmann::json{{"started", true}};
  });

  to_trust();

  QTRY_COMPARE(notice("trust_notice")->sentence(), sentence);
  QCOMPARE(notice("trust_notice")->details(), QString("in the agent's words"));
  QVERIFY(find<QPushButton>("retry")->isVisible());
  QVERIFY(!can_go_on());
}

void WizardInviteTest::another_key_has_no_way_around() {
  agent().answer("invite.look", [](const auto&) { return nlohmann::json{{"started", true}}; });
  to_trust();
  // While the hub is asked there is nothing but Cancel to do.
  QTRY_VERIFY(wizard_->button(QWizard::CancelButton)->hasFocus());

  agent().tell("invite.looked", {{"ok", false}, {"code", "pin_mismatch"}, {"message", "another key"}});

  QTRY_COMPARE(notice("trust_notice")->sentence(), QString("The hub that answers is not the one in the invite."));
  QVERIFY(!find<QPushButton>("retry")->isVisible());
  QVERIFY(find<QPushButton>("another_invite")->isVisible());
  QTRY_VERIFY(find<QPushButton>("another_invite")->hasFocus());
  QVERIFY(!can_go_on());
}

void WizardInviteTest::an_agent_is_started_when_none_runs() {
  agent().refuse({ErrorCode::kNotRunning, "no agent runs"});
  agent().hang_up({ErrorCode::kPeerLost, "gone"});
  QTRY_VERIFY(world_->node.link().state() == LinkState::kNoAgent);

  to_trust();
  QCOMPARE(notice("trust_notice")->sentence(), QString("Starting this machine's agent."));
  agent().welcome();

  QTRY_COMPARE(notice("trust_notice")->kind(), Notice::Kind::kGood);
}

void WizardInviteTest::an_agent_that_has_died_unnoticed_is_started_again() {
  const auto die = [this](const auto&) {
    agent().refuse({ErrorCode::kNotRunning, "no agent runs"});
    agent().hang_up({ErrorCode::kPeerLost, "gone"});
    return nlohmann::json::object();
  };
  agent().answer("invite.look", die);

  to_trust();

  QTRY_COMPARE(notice("trust_notice")->sentence(), QString("Starting this machine's agent."));
  agent().answer("invite.look", [this](const auto&) {
    nlohmann::json answer = looked();
    answer["pin"] = to_hex(plain_invite().authority_pin);
    agent().tell("invite.looked", answer);
    return nlohmann::json{{"started", true}};
  });
  agent().restart();
  agent().welcome();
  QTRY_COMPARE(notice("trust_notice")->kind(), Notice::Kind::kGood);
}

QTEST_MAIN(WizardInviteTest)
#include "wizard_invite_test.moc"
