// Diagnostics, adding a machine, notifications and links.
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QLocalSocket>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QSignalSpy>
#include <QtTest>

#include <cstring>

#include "app/agent/files/tar_archive.h"
#include "app/core/nodes.h"
#include "app/gui/add_node_dialog.h"
#include "app/gui/diagnostics_dialog.h"
#include "app/gui/link_inbox.h"
#include "app/gui/parts/notice.h"
#include "app/gui/tray.h"
#include "tests/app/gui/gui_node.h"
#include "tests/app/gui/reach.h"
#include "tests/fakes/patience.h"

using namespace atl;
using namespace atl::test;

namespace {

// As the agent writes one.
nlohmann::json write_bundle(const QString& name) {
  TarArchive archive(1'763'700'000);
  archive.add("atoll-diag/agent.log", "agent started\n");
  archive.add("atoll-diag/system.txt", "atoll 0.1.0\n");
  const std::string bytes = archive.take();
  QFile file(name);
  if (file.open(QIODevice::WriteOnly)) file.write(bytes.data(), static_cast<qint64>(bytes.size()));
  return {{"file", name.toStdString()},
          {"bytes", bytes.size()},
          {"entries", {{{"name", "agent.log"}, {"bytes", 14}}, {{"name", "system.txt"}, {"bytes", 12}}}}};
}

}  // namespace

class DialogsTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase() { QLocale::setDefault(QLocale::c()); }

  void a_bundle_is_shown_before_it_is_kept();
  void without_an_agent_the_command_makes_the_bundle();
  void a_bundle_that_could_not_be_made_says_why();
  void of_another_machine_the_bundle_stays_there();

  void only_a_machine_can_be_added_data();
  void only_a_machine_can_be_added();
  void a_machine_can_be_tried_before_it_is_added_data();
  void a_machine_can_be_tried_before_it_is_added();

  void joined_finished_and_failed_notify();
  void what_was_before_and_what_is_minor_does_not();

  void a_link_goes_to_the_program_that_is_open();
  void a_link_without_a_program_is_ones_own();
  void an_invite_among_the_arguments_is_overwritten();

  void dialogs_can_be_used_by_everybody();
};

// ---- diagnostics

void DialogsTest::a_bundle_is_shown_before_it_is_kept() {
  GuiNode world;
  world.agent.answer("diag.create", [](const nlohmann::json& params) {
    return write_bundle(QString::fromStdString(params["file"].get<std::string>()));
  });

  DiagnosticsDialog dialog(world.node);
  dialog.show();

  auto* entries = dialog.findChild<QListWidget*>("entries");
  QTRY_COMPARE(entries->count(), 2);
  QVERIFY(entries->item(0)->text().startsWith("agent.log"));
  QCOMPARE(dialog.findChild<QPlainTextEdit*>("preview")->toPlainText(), QString("agent started\n"));
  entries->setCurrentRow(1);
  QCOMPARE(dialog.findChild<QPlainTextEdit*>("preview")->toPlainText(), QString("atoll 0.1.0\n"));
  QVERIFY(dialog.findChild<QPushButton*>("save")->isEnabled());
}

void DialogsTest::without_an_agent_the_command_makes_the_bundle() {
  GuiNode world;
  world.agent.refuse({ErrorCode::kNotRunning, "no agent"});
  world.agent.hang_up();
  QTRY_VERIFY(world.node.link().state() != LinkState::kConnected);
  world.commands.answer({"diag"}, {.exit_code = 1, .err = "atoll: the home cannot be read\n"});

  DiagnosticsDialog dialog(world.node);
  dialog.show();

  QTRY_COMPARE(dialog.findChild<Notice*>("diagnostics_notice")->kind(), Notice::Kind::kError);
  QCOMPARE(dialog.findChild<Notice*>("diagnostics_notice")->advice(), QString("the home cannot be read"));
  QVERIFY(!dialog.findChild<QPushButton*>("save")->isEnabled());
}

void DialogsTest::a_bundle_that_could_not_be_made_says_why() {
  GuiNode world;
  world.agent.fail("diag.create", ErrorCode::kDiskFull, "no space left");

  DiagnosticsDialog dialog(world.node);

  QTRY_COMPARE(dialog.findChild<Notice*>("diagnostics_notice")->advice(), QString("no space left"));
}

void DialogsTest::of_another_machine_the_bundle_stays_there() {
  GuiNode world;
  Node other(SshNode{"ssh://user@node"}, world.agent.open(), world.commands.run());
  other.start();
  QTRY_VERIFY(other.link().state() == LinkState::kConnected);
  world.agent.answer("diag.create", [](const nlohmann::json& params) {
    return nlohmann::json{
        {"file", params["file"]}, {"bytes", 14}, {"entries", {{{"name", "agent.log"}, {"bytes", 14}}}}};
  });
  DiagnosticsDialog dialog(other);
  dialog.show();
  QCOMPARE(world.agent.count("diag.create"), std::size_t{0});  // where to is asked first
  dialog.findChild<QLineEdit*>("place")->setText("/tmp/trouble.tar");

  dialog.findChild<QPushButton*>("collect")->click();

  QTRY_COMPARE(dialog.findChild<Notice*>("diagnostics_notice")->details(), QString("/tmp/trouble.tar"));
  QCOMPARE(dialog.findChild<QListWidget*>("entries")->count(), 1);
  QVERIFY(!dialog.findChild<QPushButton*>("save")->isVisible());
}

// ---- another machine

void DialogsTest::only_a_machine_can_be_added_data() {
  QTest::addColumn<QString>("text");
  QTest::addColumn<bool>("good");
  QTest::newRow("empty") << "" << false;
  QTest::newRow("url") << "ssh://user@node" << true;
  QTest::newRow("with a port") << "ssh://user@node:2222" << true;
  QTest::newRow("without scheme") << "user@node" << true;
  QTest::newRow("another scheme") << "http://node" << false;
  QTest::newRow("an option") << "ssh://-oProxyCommand=evil" << false;
}

void DialogsTest::only_a_machine_can_be_added() {
  QFETCH(QString, text);
  QFETCH(bool, good);
  AddNodeDialog dialog;
  dialog.show();

  QTest::keyClicks(dialog.findChild<QLineEdit*>("url"), text);

  QCOMPARE(dialog.findChild<QPushButton*>("add")->isEnabled(), good);
  QCOMPARE(dialog.findChild<Notice*>("add_node_notice")->says(), !good && !text.isEmpty());
  if (good) QVERIFY(std::holds_alternative<SshNode>(dialog.address()));
}

void DialogsTest::a_machine_can_be_tried_before_it_is_added_data() {
  QTest::addColumn<QString>("refusal");
  QTest::addColumn<QString>("sentence");
  QTest::newRow("answers") << ""
                           << "It answers.";
  QTest::newRow("no agent") << "not_running"
                            << "The machine answers, but no agent runs there.";
  QTest::newRow("not there") << "unreachable"
                             << "The machine cannot be reached.";
}

void DialogsTest::a_machine_can_be_tried_before_it_is_added() {
  QFETCH(QString, refusal);
  QFETCH(QString, sentence);
  FakeAgent agent;
  if (!refusal.isEmpty()) agent.refuse({parse_error_code(refusal.toStdString()).value(), "why"});
  AddNodeDialog dialog(nullptr, [&agent](const NodeAddress&) { return agent.open(); });
  dialog.show();
  QTest::keyClicks(dialog.findChild<QLineEdit*>("url"), "user@node");

  dialog.findChild<QPushButton*>("try")->click();

  QTRY_COMPARE(dialog.findChild<Notice*>("add_node_notice")->sentence(), sentence);
  QVERIFY(dialog.findChild<QPushButton*>("add")->isEnabled());
}

// ---- notifications

void DialogsTest::joined_finished_and_failed_notify() {
  Nodes nodes({});
  GuiNode world;
  Tray tray(nodes);
  tray.watch(&world.node);
  QSignalSpy notified(&tray, &Tray::notified);

  world.agent.tell("join.done", {{"ok", true}, {"text", "joined run gcide-demo as laptop"}});
  QTRY_COMPARE(notified.size(), 1);
  QVERIFY(notified.last()[1].toString().contains("gcide-demo"));
  world.agent.tell_state("state.changed", {{"state", "error"}, {"error", "the loss is not finite"}});

  QTRY_COMPARE(notified.size(), 2);
  QVERIFY(notified.last()[1].toString().contains("not finite"));
}

void DialogsTest::what_was_before_and_what_is_minor_does_not() {
  Nodes nodes({});
  GuiNode world;
  Tray tray(nodes);
  tray.watch(&world.node);
  QSignalSpy notified(&tray, &Tray::notified);

  world.agent.tell("gpu.alert",
                   {{"kind", "temperature"}, {"gpu", 0}, {"celsius", 91.0}, {"cap_celsius", 85}, {"pauses", true}});
  QTRY_VERIFY(!world.node.alerts().empty());

  QCOMPARE(notified.size(), 0);
}

// ---- links

void DialogsTest::a_link_goes_to_the_program_that_is_open() {
  QTemporaryDir directory;
  const QString name = directory.filePath("links");
  LinkInbox inbox(name);
  QVERIFY(inbox.listen());
  QSignalSpy links(&inbox, &LinkInbox::linkReceived);
  LinkInbox second(name);
  QVERIFY(!second.listen());

  QVERIFY(LinkInbox::handOver("atoll:join?i=atoll1.AAAA.00000000", name));
  QTRY_COMPARE(links.size(), 1);
  QVERIFY(LinkInbox::handOver({}, name));

  QTRY_COMPARE(links.size(), 2);
  QCOMPARE(links[0][0].toString(), QString("atoll:join?i=atoll1.AAAA.00000000"));
  QCOMPARE(links[1][0].toString(), QString());
}

void DialogsTest::a_link_without_a_program_is_ones_own() {
  QTemporaryDir directory;
  const QString name = directory.filePath("links");

  QVERIFY(!LinkInbox::handOver("atoll:x", name));
  {
    QFile left_over(name);  // as a killed program leaves it
    QVERIFY(left_over.open(QIODevice::WriteOnly));
  }
  LinkInbox inbox(name);

  QVERIFY(inbox.listen());
}

void DialogsTest::an_invite_among_the_arguments_is_overwritten() {
  char program[] = "atoll-gui", option[] = "--home=/x", link[] = "atoll:join?i=atoll1.AAAA.00000000";
  char* argv[] = {program, option, link, nullptr};

  QCOMPARE(take_link(3, argv), QString("atoll:join?i=atoll1.AAAA.00000000"));

  QCOMPARE(QString(option), QString("--home=/x"));
  QVERIFY(std::strstr(link, "atoll1") == nullptr);
}

// ---- for everybody

void DialogsTest::dialogs_can_be_used_by_everybody() {
  GuiNode world;
  world.agent.answer("diag.create", [](const nlohmann::json& params) {
    return write_bundle(QString::fromStdString(params["file"].get<std::string>()));
  });
  AddNodeDialog add;
  DiagnosticsDialog diagnostics(world.node);
  for (QWidget* dialog : std::initializer_list<QWidget*>{&add, &diagnostics}) {
    dialog->show();
    QVERIFY(QTest::qWaitForWindowExposed(dialog));
    QTest::qWait(100);
    QCOMPARE(unnamed_controls(*dialog), QStringList());
    QCOMPARE(unreached_controls(*dialog), QStringList());
    QCOMPARE(shared_mnemonics(*dialog).join("; "), QString());
    QCOMPARE(cut_texts(*dialog), QStringList());
    dialog->hide();
  }
}

QTEST_MAIN(DialogsTest)
#include "dialogs_test.moc"
