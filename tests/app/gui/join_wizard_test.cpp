// The join wizard from the node check to the first step, page by page, over an agent in memory.
#include "app/gui/join_wizard/join_wizard.h"

#include <QAbstractButton>
#include <QCheckBox>
#include <QComboBox>
#include <QLabel>
#include <QLineEdit>
#include <QMessageBox>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QtTest>

#include "app/gui/join_wizard/gpu_choice.h"
#include "app/gui/parts/notice.h"
#include "app/gui/setting_field.h"
#include "net/check/gpu_compute.h"
#include "tests/app/gui/reach.h"
#include "tests/app/gui/wizard_fixture.h"
#include "tests/fakes/patience.h"

using namespace atl;
using namespace atl::test;

namespace {

nlohmann::json progress(const char* stage, const char* status) { return {{"stage", stage}, {"status", status}}; }

}  // namespace

class JoinWizardTest : public WizardFixture {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase() { begin(); }
  void init() { open(); }
  void cleanup() { close(); }

  void a_fail_stops_the_way();
  void a_warning_needs_a_tick();
  void the_check_is_for_the_run_of_the_invite();
  void a_check_without_a_fault_lets_pass();

  void what_was_changed_is_saved_before_the_way_goes_on();
  void a_value_that_cannot_be_set_is_told_beside_its_field();
  void gpus_are_to_choose_where_they_compute();
  void gpus_that_are_not_there_are_not_offered();
  void gpus_that_lie_idle_can_be_chosen_again();
  void a_machine_without_gpus_keeps_a_core_and_says_how_many_train();
  void every_page_fits_a_small_screen_data();
  void every_page_fits_a_small_screen();

  void nothing_is_joined_without_a_tick();
  void consent_says_which_run_it_is_and_what_it_costs();
  void a_run_that_was_joined_before_is_left_once_that_is_agreed_to();
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
};

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

void JoinWizardTest::the_check_is_for_the_run_of_the_invite() {
  go_to(JoinWizard::kCheck);

  QTRY_COMPARE(agent().count("check.run"), std::size_t{1});
  QCOMPARE(agent().last_params("check.run")["invite"], nlohmann::json(good_invite().toStdString()));
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

void JoinWizardTest::gpus_are_to_choose_where_they_compute() {
  if (!gpus_compute()) QSKIP("without CUDA's kernels no GPU is offered");
  agent().say({{"gpus", {{{"name", "H100"}}, {{"name", "H100"}}}}});
  go_to(JoinWizard::kResources);
  auto* device = find<SettingField>("island.device");
  auto* choice = wizard_->currentPage()->findChild<GpuChoice*>();
  QVERIFY(device->isVisible() && choice->isVisible());
  QVERIFY(find<SettingField>("limits.gpu_power")->isVisible());

  auto* words = device->findChild<QComboBox*>();
  words->setCurrentIndex(words->findText("processor"));
  Q_EMIT words->activated(words->currentIndex());

  QVERIFY(device->isVisible());
  QVERIFY(!choice->isVisible());
  QVERIFY(!find<SettingField>("limits.gpu_power")->isVisible());
  next();
  QTRY_COMPARE(wizard_->currentId(), int(JoinWizard::kConsent));
  QCOMPARE(agent().last_params("config.set")["key"], nlohmann::json("island.device"));
  QCOMPARE(agent().last_params("config.set")["value"], nlohmann::json("processor"));
}

void JoinWizardTest::gpus_that_are_not_there_are_not_offered() {
  agent().answer("check.run", [this](const auto&) {
    tell_check(agent(), {check_row("gpu.model", "skip", "no GPU")});
    return nlohmann::json{{"started", true}};
  });

  go_to(JoinWizard::kResources);

  QVERIFY(!find<SettingField>("island.device")->isVisible());
  QVERIFY(!wizard_->currentPage()->findChild<GpuChoice*>()->isVisible());
  QVERIFY(!find<SettingField>("limits.gpu_power")->isVisible());
}

void JoinWizardTest::gpus_that_lie_idle_can_be_chosen_again() {
  if (!gpus_compute()) QSKIP("without CUDA's kernels no GPU is offered");
  agent().answer("check.run", [this](const auto&) {
    nlohmann::json left_idle = check_row("gpu.model", "skip", "2x H100; left idle, as its owner chose");
    left_idle["value"] = 2;
    tell_check(agent(), {left_idle});
    return nlohmann::json{{"started", true}};
  });

  go_to(JoinWizard::kResources);

  QVERIFY(find<SettingField>("island.device")->isVisible());
}

void JoinWizardTest::a_machine_without_gpus_keeps_a_core_and_says_how_many_train() {
  agent().answer("check.run", [this](const auto&) {
    nlohmann::json cpu = check_row("cpu", "pass", "8 cores, AVX2, no GPU");
    cpu["value"] = 8;
    tell_check(agent(), {cpu, check_row("gpu.model", "skip", "no GPU")});
    return nlohmann::json{{"started", true}};
  });
  go_to(JoinWizard::kResources);
  auto* threads = find<QSpinBox>("threads");
  QVERIFY(threads->isVisible());
  QCOMPARE(threads->value(), 7);
  QCOMPARE(threads->maximum(), 8);

  threads->setValue(3);
  next();
  QTRY_COMPARE(wizard_->currentId(), int(JoinWizard::kConsent));
  QVERIFY(!find<QLabel>("runs_here")->text().contains("GPU"));
  QVERIFY(find<QCheckBox>("agree")->text().endsWith(QString("\u201D")));
  find<QCheckBox>("agree")->setChecked(true);
  commit();

  QTRY_COMPARE(agent().count("join"), std::size_t{1});
  QCOMPARE(agent().last_params("join")["threads"], nlohmann::json(3));
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

void JoinWizardTest::consent_says_which_run_it_is_and_what_it_costs() {
  go_to(JoinWizard::kConsent);

  const auto said = [&](const char* name) { return find<QLabel>(name)->text(); };
  QCOMPARE(said("joined_run"), QString("gcide-demo"));
  QCOMPARE(said("joined_operator"), QString("Ada"));
  QCOMPARE(said("joined_model"), QString("llama, 1234567 parameters"));
  QCOMPARE(said("each_round"), QString("up to 2.5 MB sent, and as much received; 9.9 MB to join"));
  QCOMPARE(said("disk"), QString("up to 52 MB"));
  QCOMPARE(said("memory"), QString("240 MB where the processor computes; where GPUs do, 220 MB and 2.1 GB of a card"));
  QVERIFY(!notice("other_run")->says());
}

void JoinWizardTest::a_run_that_was_joined_before_is_left_once_that_is_agreed_to() {
  agent().tell_state("state.changed", {{"state", "stopped"}, {"run_id", "run-0"}, {"run_name", "before"}});
  QTRY_VERIFY(world_->node.state() && world_->node.state()->joined());
  go_to(JoinWizard::kConsent);
  QCOMPARE(notice("other_run")->kind(), Notice::Kind::kWarning);
  QVERIFY(notice("other_run")->sentence().contains("before"));
  QVERIFY(notice("other_run")->advice().contains("checkpoint.run-0"));

  go_to(JoinWizard::kJoining);

  QTRY_COMPARE(agent().count("join"), std::size_t{1});
  QCOMPARE(agent().last_params("join").value("leave", false), true);
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

  QTRY_COMPARE(find<QLabel>("stage_4")->text(), QString("1 GB of 4 GB, 160 Mbit/s, 2 min 30 s left"));
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
  // Nothing is left to cancel.
  QVERIFY(!wizard_->button(QWizard::CancelButton)->isVisible());
  QVERIFY(wizard_->button(QWizard::FinishButton)->hasFocus());

  wizard_->setInviteText(good_invite());
  QVERIFY(wizard_->button(QWizard::CancelButton)->isVisible());
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
  QCOMPARE(shared_mnemonics(*wizard_).join("; "), QString());
  QCOMPARE(cut_texts(*wizard_), QStringList());
}

void JoinWizardTest::every_page_fits_a_small_screen_data() { every_page_can_be_used_by_everybody_data(); }

void JoinWizardTest::every_page_fits_a_small_screen() {
  QFETCH(int, page);
  go_to(page);

  for (const QSize size : {QSize(900, 600), QSize(640, 400)}) {
    wizard_->resize(size);
    QTest::qWait(100);
    const QString shots = qEnvironmentVariable("ATOLL_SHOTS");
    if (!shots.isEmpty()) {
      wizard_->grab().save(QString("%1/wizard-%2-%3.png").arg(shots, QTest::currentDataTag()).arg(size.width()));
    }

    QCOMPARE(wizard_->size(), size);
    QCOMPARE(controls_out_of_reach(*wizard_).join("; "), QString());
    QCOMPARE(cut_texts(*wizard_).join("; "), QString());
  }
}

QTEST_MAIN(JoinWizardTest)
#include "join_wizard_test.moc"
