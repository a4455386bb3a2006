// The join wizard, page by page, over an agent in memory.
#include "app/gui/join_wizard/join_wizard.h"

#include <QAbstractButton>
#include <QCheckBox>
#include <QLabel>
#include <QLineEdit>
#include <QMessageBox>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QtTest>

#include "app/gui/notice.h"
#include "app/gui/setting_field.h"
#include "net/base/encoding.h"
#include "net/wire/invite.h"
#include "tests/app/gui/gui_node.h"
#include "tests/app/gui/reach.h"

using namespace atl;
using namespace atl::test;

namespace {

Invite plain_invite() {
  Invite invite;
  invite.hub = {{"hub.example.org", 47000}};
  invite.run_id = "run-1";
  invite.run_name = "gcide-demo";
  invite.authority_pin.fill(std::byte{0xab});
  invite.id = "inv-1";
  invite.secret = Bytes(16, std::byte{7});
  // The same each time, whatever second it is.
  static const auto now = std::chrono::time_point_cast<std::chrono::seconds>(std::chrono::system_clock::now());
  invite.expires = now + std::chrono::hours(24);
  return invite;
}

QString text_of(const Invite& invite) { return QString::fromStdString(encode_invite(invite).value()); }
QString good_invite() { return text_of(plain_invite()); }

QString expired_invite() {
  Invite invite = plain_invite();
  invite.expires = std::chrono::sys_seconds(std::chrono::seconds(1'000'000'000));
  return text_of(invite);
}

// As long as it should be, and with a checksum that fits.
QString with_checksum(const std::string& body) {
  return QString::fromStdString(body) + "." + QString("%1").arg(crc32(as_bytes(body)), 8, 16, QChar('0'));
}

nlohmann::json looked() {
  return {{"ok", true},
          {"address", "hub.example.org:47000"},
          {"run_id", "run-1"},
          {"run_name", "gcide-demo"},
          {"operator", "Ada"},
          {"model", "llama"},
          {"parameters", 1'234'567u},
          {"pin", std::string(64, '?')}};
}

nlohmann::json progress(const char* stage, const char* status) { return {{"stage", stage}, {"status", status}}; }

}  // namespace

class JoinWizardTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase() {
    QLocale::setDefault(QLocale::c());
    qputenv("ATOLL_PROGRAM", "/bin/true");  // nothing is started by a test
  }
  void init();
  void cleanup() {
    wizard_.reset();
    world_.reset();
  }

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

  void a_fail_stops_the_way();
  void a_warning_needs_a_tick();
  void a_check_without_a_fault_lets_pass();

  void what_was_changed_is_saved_before_the_way_goes_on();
  void a_value_that_cannot_be_set_is_told_beside_its_field();

  void nothing_is_joined_without_a_tick();
  void joining_shows_each_stage_with_its_bytes();
  void a_stage_that_failed_can_be_tried_again();
  void what_the_agent_tries_again_needs_no_hand();
  void who_has_joined_before_can_join_again();
  void an_invite_waits_for_the_joining_under_way();
  void a_refused_join_says_why();
  void an_invite_that_does_not_do_is_changed_for_another_data();
  void an_invite_that_does_not_do_is_changed_for_another();
  void cancelling_is_asked_for_and_told_to_the_agent();
  void the_service_is_installed_once_this_machine_is_a_member();
  void a_closed_wizard_forgets_the_invite();

  void every_page_can_be_used_by_everybody_data();
  void every_page_can_be_used_by_everybody();

 private:
  FakeAgent& agent() { return world_->agent; }
  template <class T>
  T* find(const char* name) {
    return wizard_->currentPage()->findChild<T*>(name);
  }
  Notice* notice(const char* name) { return find<Notice>(name); }
  bool can_go_on() { return wizard_->button(QWizard::NextButton)->isEnabled(); }
  void next() { QTest::mouseClick(wizard_->button(QWizard::NextButton), Qt::LeftButton); }
  void commit() { QTest::mouseClick(wizard_->button(QWizard::CommitButton), Qt::LeftButton); }
  void paste(const QString& text) { find<QPlainTextEdit>("invite")->setPlainText(text); }
  void go_to(int page);
  void to_trust() {
    paste(good_invite());
    next();
  }

  std::unique_ptr<GuiNode> world_;
  std::unique_ptr<JoinWizard> wizard_;
};

void JoinWizardTest::init() {
  world_ = std::make_unique<GuiNode>();
  agent().become(unjoined_state());
  agent().answer("check.run", [this](const auto&) {
    tell_check(agent(), {check_row("disk.free", "pass", "812 GB")});
    return nlohmann::json{{"started", true}};
  });
  agent().answer("invite.look", [this](const auto&) {
    nlohmann::json answer = looked();
    answer["pin"] = to_hex(plain_invite().authority_pin);
    agent().tell("invite.looked", answer);
    return nlohmann::json{{"started", true}};
  });
  agent().answer(
      "config.get",
      nlohmann::json{
          {"values",
           {{{"key", "limits.upload"}, {"value", "none"}, {"default", "none"}, {"origin", "default"}, {"meaning", "m"}},
            {{"key", "schedule.hours"}, {"value", ""}, {"default", ""}, {"origin", "default"}, {"meaning", "m"}},
            {{"key", "limits.gpu_power"}, {"value", "0"}, {"default", "0"}, {"origin", "default"}, {"meaning", "m"}}}},
          {"file", "/c/config.toml"},
          {"settings", "/s/settings.json"}});
  world_->node.settings().reload();
  wizard_ = std::make_unique<JoinWizard>(world_->node);
  wizard_->show();
  QVERIFY(QTest::qWaitForWindowExposed(wizard_.get()));
}

void JoinWizardTest::go_to(int page) {
  while (wizard_->currentId() < page) {
    const int before = wizard_->currentId();
    if (before == JoinWizard::kInvite) paste(good_invite());
    if (before == JoinWizard::kConsent) {
      find<QCheckBox>("agree")->setChecked(true);
      commit();
    } else {
      QTRY_VERIFY(can_go_on());
      next();
    }
    QTRY_VERIFY(wizard_->currentId() != before);
  }
}

// ---- invite

void JoinWizardTest::each_bad_invite_says_what_is_wrong_with_it_data() {
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

void JoinWizardTest::each_bad_invite_says_what_is_wrong_with_it() {
  QFETCH(QString, text);
  QFETCH(QString, sentence);

  paste(text);

  QCOMPARE(notice("invite_notice")->sentence(), sentence);
  QCOMPARE(notice("invite_notice")->kind(), Notice::Kind::kError);
  QVERIFY(!notice("invite_notice")->advice().isEmpty());
  QVERIFY(!can_go_on());
}

void JoinWizardTest::a_good_invite_names_its_run() {
  QVERIFY(!can_go_on());

  paste(good_invite());

  QCOMPARE(notice("invite_notice")->sentence(), QString("An invite to the run gcide-demo."));
  QVERIFY(notice("invite_notice")->advice().contains("hub.example.org:47000"));
  QVERIFY(can_go_on());
}

void JoinWizardTest::an_invite_may_be_a_link_broken_over_lines() {
  QString link = QString::fromStdString(invite_link(good_invite().toStdString()));

  wizard_->setInviteText(link.insert(50, "\n  "));

  QCOMPARE(notice("invite_notice")->kind(), Notice::Kind::kGood);
  QVERIFY(can_go_on());
}

void JoinWizardTest::an_invite_is_read_from_a_file() {
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

void JoinWizardTest::a_file_without_an_invite_is_told_so() {
  QFile file(world_->directory.filePath("empty.txt"));
  QVERIFY(file.open(QIODevice::WriteOnly));
  file.close();
  auto* edit = find<QPlainTextEdit>("invite");

  QMetaObject::invokeMethod(edit, "fileDropped", Q_ARG(QString, file.fileName()));
  QCOMPARE(notice("invite_notice")->sentence(), QString("The file is empty."));

  QMetaObject::invokeMethod(edit, "fileDropped", Q_ARG(QString, world_->directory.filePath("nothing")));
  QCOMPARE(notice("invite_notice")->sentence(), QString("The file cannot be read."));
}

// ---- trust

void JoinWizardTest::the_hub_is_shown_once_its_key_was_verified() {
  to_trust();

  QTRY_COMPARE(notice("trust_notice")->kind(), Notice::Kind::kGood);
  QCOMPARE(find<QLabel>("run")->text(), QString("gcide-demo (run-1)"));
  QCOMPARE(find<QLabel>("operator")->text(), QString("Ada"));
  QVERIFY(find<QLabel>("model")->text().startsWith("llama, "));
  QVERIFY(find<QLabel>("pin")->text().startsWith("abab abab"));
  QVERIFY(!find<QLabel>("expiry")->text().isEmpty());
  QVERIFY(can_go_on());
}

void JoinWizardTest::each_problem_of_the_hub_has_its_own_sentence_data() {
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

void JoinWizardTest::each_problem_of_the_hub_has_its_own_sentence() {
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

void JoinWizardTest::another_key_has_no_way_around() {
  agent().answer("invite.look", [this](const auto&) {
    agent().tell("invite.looked", {{"ok", false}, {"code", "pin_mismatch"}, {"message", "another key"}});
    return nlohmann::json{{"started", true}};
  });

  to_trust();

  QTRY_COMPARE(notice("trust_notice")->sentence(), QString("The hub that answers is not the one in the invite."));
  QVERIFY(!find<QPushButton>("retry")->isVisible());
  QVERIFY(find<QPushButton>("another_invite")->isVisible());
  QVERIFY(!can_go_on());
}

void JoinWizardTest::an_agent_is_started_when_none_runs() {
  agent().refuse({ErrorCode::kNotRunning, "no agent runs"});
  agent().hang_up({ErrorCode::kPeerLost, "gone"});
  QTRY_VERIFY(world_->node.link().state() == LinkState::kNoAgent);

  to_trust();
  QCOMPARE(notice("trust_notice")->sentence(), QString("Starting this machine's agent."));
  agent().welcome();

  QTRY_COMPARE(notice("trust_notice")->kind(), Notice::Kind::kGood);
}

void JoinWizardTest::an_agent_that_has_died_unnoticed_is_started_again() {
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

// ---- node check

void JoinWizardTest::a_fail_stops_the_way() {
  agent().answer("check.run", [this](const auto&) {
    tell_check(agent(), {check_row("disk.free", "fail", "212 GB < 480 GB", "choose another directory"),
                         check_row("net.cc", "warn", "cubic", "modprobe tcp_bbr")});
    return nlohmann::json{{"started", true}};
  });

  go_to(JoinWizard::kCheck);

  QTRY_COMPARE(notice("check_notice")->kind(), Notice::Kind::kError);
  QVERIFY(!can_go_on());
  QVERIFY(!find<QCheckBox>("accept_warnings")->isVisible());
}

void JoinWizardTest::a_warning_needs_a_tick() {
  agent().answer("check.run", [this](const auto&) {
    tell_check(agent(), {check_row("net.cc", "warn", "cubic", "modprobe tcp_bbr")});
    return nlohmann::json{{"started", true}};
  });

  go_to(JoinWizard::kCheck);
  QTRY_COMPARE(notice("check_notice")->kind(), Notice::Kind::kWarning);
  QVERIFY(!can_go_on());

  find<QCheckBox>("accept_warnings")->click();
  QVERIFY(can_go_on());
  find<QPushButton>("again")->click();  // another check, other warnings
  QVERIFY(!find<QCheckBox>("accept_warnings")->isChecked());
}

void JoinWizardTest::a_check_without_a_fault_lets_pass() {
  go_to(JoinWizard::kCheck);

  QTRY_COMPARE(notice("check_notice")->kind(), Notice::Kind::kGood);
  QVERIFY(can_go_on());
}

// ---- resources

void JoinWizardTest::what_was_changed_is_saved_before_the_way_goes_on() {
  go_to(JoinWizard::kResources);
  auto* power = find<SettingField>("limits.gpu_power");
  QVERIFY(power != nullptr);
  QTest::keyClicks(power->control(), "3");

  next();

  QTRY_COMPARE(wizard_->currentId(), int(JoinWizard::kConsent));
  QCOMPARE(agent().last_params("config.set")["key"], nlohmann::json("limits.gpu_power"));
}

void JoinWizardTest::a_value_that_cannot_be_set_is_told_beside_its_field() {
  agent().fail("config.set", ErrorCode::kInvalidArgument, "no such power");
  go_to(JoinWizard::kResources);
  auto* power = find<SettingField>("limits.gpu_power");
  QTest::keyClicks(power->control(), "3");

  next();

  QTRY_COMPARE(power->problem(), QString("no such power"));
  QCOMPARE(wizard_->currentId(), int(JoinWizard::kResources));
  QVERIFY(notice("resources_notice")->says());
}

// ---- consent and joining

void JoinWizardTest::nothing_is_joined_without_a_tick() {
  go_to(JoinWizard::kConsent);

  QVERIFY(!wizard_->button(QWizard::CommitButton)->isEnabled());
  QCOMPARE(agent().count("join"), std::size_t{0});
  find<QCheckBox>("agree")->click();
  QVERIFY(wizard_->button(QWizard::CommitButton)->isEnabled());
  QCOMPARE(agent().count("join"), std::size_t{0});
}

void JoinWizardTest::joining_shows_each_stage_with_its_bytes() {
  go_to(JoinWizard::kJoining);
  QTRY_COMPARE(agent().count("join"), std::size_t{1});
  QCOMPARE(agent().last_params("join")["invite"], nlohmann::json(good_invite().toStdString()));
  agent().tell("join.progress", progress("key", "done"));
  agent().tell("join.progress", progress("enrol", "done"));
  agent().tell("join.progress", progress("check", "done"));
  agent().tell("join.done", {{"ok", true}, {"text", "joined"}});
  agent().tell("join.progress", progress("trainer", "done"));
  nlohmann::json data = progress("data", "running");
  data.merge_patch({{"done_bytes", 1'000'000'000u},
                    {"total_bytes", 4'000'000'000u},
                    {"bytes_per_second", 2e7},
                    {"seconds_left", 150.0}});

  agent().tell("join.progress", data);

  QTRY_COMPARE(find<QLabel>("stage_4")->text(), QString("1 GB of 4 GB, 20 MB/s, 2 min 30 s left"));
  QCOMPARE(find<QLabel>("stage_0")->text(), QString("done"));
  QCOMPARE(find<QLabel>("stage_5")->text(), QString("to do"));
  QVERIFY(!wizard_->button(QWizard::FinishButton)->isEnabled());
  agent().tell("join.progress", progress("first_step", "done"));
  QTRY_VERIFY(wizard_->button(QWizard::FinishButton)->isEnabled());
  QCOMPARE(notice("joining_notice")->kind(), Notice::Kind::kGood);
}

void JoinWizardTest::a_stage_that_failed_can_be_tried_again() {
  go_to(JoinWizard::kJoining);
  agent().tell("join.progress", progress("enrol", "done"));
  agent().tell("join.done", {{"ok", true}});
  nlohmann::json failed = progress("state", "failed");
  failed["text"] = "no island has it";
  agent().tell("join.progress", failed);
  QTRY_COMPARE(find<QLabel>("stage_5")->text(), QString("no island has it; it is tried again"));
  agent().tell_state("state.changed", {{"state", "error"}, {"run_id", "run-1"}, {"error", "no island has it"}});
  QTRY_VERIFY(find<QPushButton>("retry")->isVisible());
  QCOMPARE(find<QLabel>("stage_5")->text(), QString("no island has it"));

  find<QPushButton>("retry")->click();

  QTRY_COMPARE(agent().count("join"), std::size_t{2});
  QVERIFY(!agent().last_params("join").contains("invite"));  // it is used already
  QVERIFY(!find<QPushButton>("retry")->isVisible());
}

void JoinWizardTest::what_the_agent_tries_again_needs_no_hand() {
  go_to(JoinWizard::kJoining);
  agent().tell("join.done", {{"ok", true}});
  nlohmann::json failed = progress("first_step", "failed");
  failed["text"] = "out of memory";
  nlohmann::json state = unjoined_state();
  state.merge_patch({{"state", "error"}, {"run_id", "run-1"}, {"agent", {{"restart_in_seconds", 7.6}}}});

  agent().become(state);
  agent().tell("join.progress", failed);
  agent().tell("state.changed", state);

  QTRY_COMPARE(find<QLabel>("stage_6")->text(), QString("out of memory; it is tried again in 8 s"));
  QCOMPARE(notice("joining_notice")->kind(), Notice::Kind::kWarning);
  QVERIFY(!find<QPushButton>("retry")->isVisible());
  QCOMPARE(cut_texts(*wizard_), QStringList());
  agent().tell("join.progress", progress("trainer", "running"));
  QTRY_COMPARE(find<QLabel>("stage_3")->text(), QString("under way"));
  QCOMPARE(notice("joining_notice")->kind(), Notice::Kind::kBusy);
}

void JoinWizardTest::who_has_joined_before_can_join_again() {
  go_to(JoinWizard::kJoining);
  agent().tell("join.done", {{"ok", true}});
  agent().tell("join.progress", progress("first_step", "done"));
  QTRY_VERIFY(world_->node.join().joined());

  wizard_->setInviteText(good_invite());
  QCOMPARE(wizard_->currentId(), int(JoinWizard::kInvite));
  go_to(JoinWizard::kJoining);

  QTRY_COMPARE(agent().count("join"), std::size_t{2});
  QCOMPARE(agent().last_params("join")["invite"], nlohmann::json(good_invite().toStdString()));
}

void JoinWizardTest::an_invite_waits_for_the_joining_under_way() {
  go_to(JoinWizard::kJoining);
  QTRY_COMPARE(agent().count("join"), std::size_t{1});

  wizard_->setInviteText(good_invite());

  QCOMPARE(wizard_->currentId(), int(JoinWizard::kJoining));
  QVERIFY(world_->node.join().joining() && world_->node.join().invite());
  auto* told = wizard_->findChild<QMessageBox*>("one_at_a_time");
  QVERIFY(told != nullptr && told->isVisible());
}

void JoinWizardTest::a_refused_join_says_why() {
  go_to(JoinWizard::kJoining);

  agent().tell("join.done", {{"ok", false}, {"code", "invite_used"}, {"message", "used up"}});

  QTRY_COMPARE(notice("joining_notice")->sentence(), QString("This invite has been used up."));
  QVERIFY(find<QPushButton>("retry")->isVisible());
}

void JoinWizardTest::an_invite_that_does_not_do_is_changed_for_another_data() {
  QTest::addColumn<QString>("code");
  QTest::addColumn<bool>("helps");
  QTest::newRow("used") << "invite_used" << true;
  QTest::newRow("expired") << "invite_expired" << true;
  QTest::newRow("of another run") << "invite_other_run" << true;
  QTest::newRow("the hub is down") << "unreachable" << false;
}

void JoinWizardTest::an_invite_that_does_not_do_is_changed_for_another() {
  QFETCH(QString, code);
  QFETCH(bool, helps);
  go_to(JoinWizard::kJoining);
  agent().tell("join.done", {{"ok", false}, {"code", code.toStdString()}, {"message", "in the agent's words"}});
  QTRY_COMPARE(notice("joining_notice")->kind(), Notice::Kind::kError);
  auto* another = find<QPushButton>("another_invite");
  QCOMPARE(another->isVisible(), helps);
  if (!helps) return;

  another->click();

  QCOMPARE(wizard_->currentId(), int(JoinWizard::kInvite));
  QVERIFY(find<QPlainTextEdit>("invite")->toPlainText().isEmpty() && !can_go_on());
  go_to(JoinWizard::kJoining);
  QTRY_COMPARE(agent().count("join"), std::size_t{2});
}

void JoinWizardTest::cancelling_is_asked_for_and_told_to_the_agent() {
  go_to(JoinWizard::kJoining);
  QTRY_COMPARE(agent().count("join"), std::size_t{1});

  wizard_->button(QWizard::CancelButton)->click();
  auto* question = wizard_->findChild<QMessageBox*>("leave_joining");
  QVERIFY(question != nullptr && wizard_->isVisible());
  question->findChild<QPushButton*>("stop")->click();

  QTRY_COMPARE(agent().count("join.cancel"), std::size_t{1});
  QVERIFY(wizard_->isVisible());
  QTRY_COMPARE(notice("joining_notice")->sentence(), QString("Stopped, as you wished."));
  QTRY_VERIFY(wizard_->findChild<QMessageBox*>("leave_joining") == nullptr);
  find<QPushButton>("retry")->click();
  QTRY_COMPARE(agent().count("join"), std::size_t{2});
}

void JoinWizardTest::the_service_is_installed_once_this_machine_is_a_member() {
  world_->commands.answer({"service", "install"}, {.exit_code = 0, .out = "service installed\n"});
  go_to(JoinWizard::kConsent);
  find<QCheckBox>("at_boot")->setChecked(true);
  find<QCheckBox>("without_login")->setChecked(true);
  go_to(JoinWizard::kJoining);
  QTRY_COMPARE(agent().count("join"), std::size_t{1});
  QVERIFY(world_->commands.asked().empty());

  agent().tell("join.progress", progress("enrol", "done"));

  QTRY_COMPARE(notice("service_notice")->kind(), Notice::Kind::kGood);
  const QStringList expected{"service", "install", "--no-start", "--yes"};
  QCOMPARE(world_->commands.asked().back().arguments, expected);
}

void JoinWizardTest::a_closed_wizard_forgets_the_invite() {
  paste(good_invite());
  QVERIFY(world_->node.join().invite().has_value());

  wizard_->reject();

  QVERIFY(!world_->node.join().invite().has_value());
}

// ---- for everybody

void JoinWizardTest::every_page_can_be_used_by_everybody_data() {
  QTest::addColumn<int>("page");
  const char* names[] = {"invite", "trust", "check", "resources", "consent", "joining"};
  for (int page = JoinWizard::kInvite; page <= JoinWizard::kJoining; ++page) QTest::newRow(names[page]) << page;
}

void JoinWizardTest::every_page_can_be_used_by_everybody() {
  QFETCH(int, page);

  go_to(page);
  QTest::qWait(50);

  QCOMPARE(unnamed_controls(*wizard_), QStringList());
  QCOMPARE(unreached_controls(*wizard_), QStringList());
  QCOMPARE(cut_texts(*wizard_), QStringList());
}

QTEST_MAIN(JoinWizardTest)
#include "join_wizard_test.moc"
