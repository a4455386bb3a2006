// What becomes of an `atoll:` link that the desktop opens while the window is there.
#include <QAbstractButton>
#include <QPlainTextEdit>
#include <QtTest>

#include "app/gui/join_wizard/join_wizard.h"
#include "net/wire/invite.h"
#include "tests/app/gui/gui_scene.h"

using namespace atl;
using namespace atl::test;

namespace {

QString invite_to(const char* run) {
  Invite invite;
  invite.hub = {{"hub.example.org", 47000}};
  invite.run_id = invite.run_name = run;
  invite.id = "inv-1";
  invite.secret = Bytes(16, std::byte{7});
  // The same for all, or two to the same run would differ.
  static const auto kTomorrow =
      std::chrono::time_point_cast<std::chrono::seconds>(std::chrono::system_clock::now()) + std::chrono::hours(24);
  invite.expires = kTomorrow;
  return QString::fromStdString(encode_invite(invite).value());
}

QList<JoinWizard*> open_wizards(const QWidget& window) {
  QList<JoinWizard*> open = window.findChildren<JoinWizard*>();
  open.removeIf([](const JoinWizard* wizard) { return !wizard->isVisible(); });
  return open;
}

}  // namespace

class LinksTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase() { qputenv("ATOLL_PROGRAM", "/bin/true"); }
  void a_link_opens_the_wizard_with_it();
  void a_second_link_goes_into_the_wizard_that_is_open();
  void a_start_of_the_app_without_a_link_takes_nothing_from_the_wizard();
  void after_the_wizard_was_closed_there_is_another_one();
};

void LinksTest::a_link_opens_the_wizard_with_it() {
  GuiScene scene;
  scene.open(false);

  scene.window->join(invite_to("first"));

  QCOMPARE(open_wizards(*scene.window).size(), 1);
  QVERIFY(scene.node().join().invite());
  QCOMPARE(scene.node().join().invite()->run_name, std::string("first"));
}

void LinksTest::a_second_link_goes_into_the_wizard_that_is_open() {
  GuiScene scene;
  scene.open(false);
  scene.window->join(invite_to("first"));
  JoinWizard* wizard = open_wizards(*scene.window).front();
  wizard->button(QWizard::NextButton)->click();
  QCOMPARE(wizard->currentId(), int(JoinWizard::kTrust));

  scene.window->join(invite_to("second"));

  QCOMPARE(open_wizards(*scene.window), QList<JoinWizard*>{wizard});
  QCOMPARE(wizard->currentId(), int(JoinWizard::kInvite));
  QCOMPARE(scene.node().join().invite()->run_name, std::string("second"));
  QCOMPARE(wizard->currentPage()->findChild<QPlainTextEdit*>("invite")->toPlainText(), invite_to("second"));
}

void LinksTest::a_start_of_the_app_without_a_link_takes_nothing_from_the_wizard() {
  GuiScene scene;
  scene.open(false);
  scene.window->join(invite_to("first"));

  scene.window->join({});

  QCOMPARE(open_wizards(*scene.window).size(), 1);
  QCOMPARE(scene.node().join().invite()->run_name, std::string("first"));
}

void LinksTest::after_the_wizard_was_closed_there_is_another_one() {
  GuiScene scene;
  scene.open(false);
  scene.window->join(invite_to("first"));
  open_wizards(*scene.window).front()->reject();
  QVERIFY(open_wizards(*scene.window).isEmpty());

  scene.window->join(invite_to("second"));

  QCOMPARE(open_wizards(*scene.window).size(), 1);
  QCOMPARE(scene.node().join().invite()->run_name, std::string("second"));
}

QTEST_MAIN(LinksTest)
#include "links_test.moc"
