// From the first start to the finish, as a person sees it: the real window, driven through its widgets alone, over a
// real agent that it starts itself, a real hub and real trainers, some of which are killed on the way. All the while
// the window's event loop turns.
#include <sys/resource.h>

#include <QCheckBox>
#include <QClipboard>
#include <QPlainTextEdit>
#include <QRegularExpression>
#include <QtTest>
#include <csignal>

#include "app/core/check_model.h"
#include "app/core/islands_model.h"
#include "app/gui/join_wizard/join_wizard.h"
#include "app/gui/parts/ring_view.h"
#include "tests/app/core/loop_watch.h"
#include "tests/process/agent_service.h"
#include "tests/process/desktop.h"
#include "tests/process/tour_run.h"

using namespace atl;
using namespace atl::test;

namespace {

constexpr int kLimit = 60'000;  // milliseconds, for anything: a hang, not a slow machine

// What `ulimit -n` would have set before it was started.
void limit_open_files(pid_t process, rlim_t files) {
  const rlimit limit{files, files};
  if (::prlimit(process, RLIMIT_NOFILE, &limit, nullptr) != 0) qFatal("prlimit: %s", std::strerror(errno));
}

int number_in(const QString& text, const char* before) {
  const auto found = QRegularExpression(QString("%1 ([0-9]+)").arg(before)).match(text);
  return found.hasMatch() ? found.captured(1).toInt() : -1;
}

}  // namespace

#define AWAIT(condition) \
  QVERIFY2(QTest::qWaitFor([&] { return bool(condition); }, kLimit), qPrintable("in vain: " #condition "; " + shown()))
#define AWAIT_TEXT(actual, words)                                             \
  QVERIFY2(QTest::qWaitFor([&] { return (actual).contains(words); }, kLimit), \
           qPrintable(QString("not '%1' but: %2; ").arg(words, actual) + shown()))

class DesktopTourTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase();
  void cleanupTestCase();
  void init();
  void cleanup();

  void the_first_start_offers_three_ways();
  void an_invite_that_is_none_says_what_is_wrong_with_it();
  void a_hub_with_another_key_has_no_way_around();
  void a_hub_that_cannot_be_used_is_said_data();
  void a_hub_that_cannot_be_used_is_said();
  void a_warning_of_the_node_check_needs_a_tick();
  void a_fail_of_the_node_check_stops();
  void a_used_invite_is_refused();
  void an_invite_leads_through_six_pages_to_the_first_step();
  void the_dashboard_follows_three_rounds();
  void the_sync_page_shows_the_ring_and_the_islands();
  void a_pause_says_what_it_costs_and_is_followed();
  void resume_trains_again();
  void a_killed_trainer_is_shown_with_its_cause_and_comes_back();
  void a_killed_agent_is_not_shown_as_live();
  void the_window_starts_an_agent_that_is_gone();
  void a_killed_hub_is_said_until_it_is_back();
  void closing_the_window_stops_nothing();
  void finish_completes_the_round_and_stops();

 private:
  QString state() const { return desktop_->text("state"); }
  // For whoever reads of a failure.
  QString shown() const {
    return QStringList{state(), desktop_->text("age"), desktop_->text("run"), desktop_->said("advice")}.join(" | ");
  }
  int round() const { return number_in(desktop_->text("run"), "round"); }
  int accepted() const { return number_in(desktop_->text("accepted"), "round"); }
  bool can_go_on() const { return desktop_->wizard()->button(QWizard::NextButton)->isEnabled(); }
  int page() const { return desktop_->wizard() != nullptr ? desktop_->wizard()->currentId() : -1; }
  void paste(const std::string& invite) {
    watch_->without([&] { QGuiApplication::clipboard()->setText(QString::fromStdString(invite)); });
    QVERIFY(desktop_->click("paste"));
  }
  pid_t agent() const {
    return watch_->without([this] { return run_->agent(); });
  }
  pid_t trainer() const {
    return watch_->without([this] { return run_->trainer(); });
  }
  void go_to_check(const std::string& invite);
  void go_to_joining(const std::string& invite);

  bool stuck_ = false;
  std::unique_ptr<TourRun> run_;
  std::unique_ptr<Desktop> desktop_;
  std::unique_ptr<LoopWatch> watch_;
};

void DesktopTourTest::initTestCase() {
  QLocale::setDefault(QLocale::c());
  qputenv("ATOLL_PROGRAM", ATOLL_BIN_DIR "/atoll");
  QApplication::setQuitOnLastWindowClosed(false);
  run_ = std::make_unique<TourRun>();
  desktop_ = std::make_unique<Desktop>(run_->home());
  watch_ = std::make_unique<LoopWatch>(Desktop::xServer());
}

void DesktopTourTest::cleanupTestCase() {
  if (desktop_) desktop_->close();
  run_.reset();
}

// Each step begins where the one before it ended.
void DesktopTourTest::init() {
  if (stuck_) QSKIP("the tour was stuck before");
  (void)watch_->restart();
}

void DesktopTourTest::cleanup() {
  stuck_ = stuck_ || QTest::currentTestFailed();
  if (stuck_) return;
  const qint64 longest = watch_->restart();
  qInfo("%s: the event loop was held up for %lld ms at most (%.2f of %lld ms)", QTest::currentTestFunction(), longest,
        static_cast<double>(longest) / kLongestHoldUp, kLongestHoldUp);
  QVERIFY2(longest <= kLongestHoldUp * timing_slack(),
           qPrintable(QString("the event loop was held up for %1 ms").arg(longest)));
}

// ---- the way in

void DesktopTourTest::the_first_start_offers_three_ways() {
  watch_->without([&] { desktop_->open(); });  // no loop turns before the window is there

  AWAIT(desktop_->offers("join") && desktop_->offers("host") && desktop_->offers("demo"));
  QCOMPARE(agent(), 0);
  QVERIFY(desktop_->click("join"));

  AWAIT(page() == JoinWizard::kInvite);
  QVERIFY(!can_go_on());
}

void DesktopTourTest::an_invite_that_is_none_says_what_is_wrong_with_it() {
  const std::string good = watch_->without([&] { return run_->good_invite(); });
  const std::string expired = watch_->without([&] { return run_->expired_invite(); });
  std::string changed = good;
  changed[20] = changed[20] == 'A' ? 'B' : 'A';
  QTest::keyClicks(desktop_->find<QPlainTextEdit>("invite"), "Dear Ada, here it is:", {}, /*delay=*/2);
  AWAIT_TEXT(desktop_->said("invite_notice"), "This is not an invite.");

  const std::pair<std::string, const char*> bad[] = {
      {good.substr(0, good.size() - 9), "The end of the invite is missing."},
      {changed, "A part of the invite is missing or was changed."},
      {expired, "This invite has expired."}};
  for (const auto& one : bad) {
    paste(one.first);
    AWAIT_TEXT(desktop_->said("invite_notice"), one.second);
    QVERIFY(!can_go_on());
  }
  paste(good);
  AWAIT_TEXT(desktop_->said("invite_notice"), "An invite to the run \u201Ctest run\u201D.");
  QVERIFY(can_go_on());
}

void DesktopTourTest::a_hub_with_another_key_has_no_way_around() {
  paste(watch_->without([&] { return run_->invite_with_another_pin(); }));
  QVERIFY(desktop_->click(QWizard::NextButton));
  QCOMPARE(page(), JoinWizard::kTrust);

  AWAIT_TEXT(desktop_->said("trust_notice"), "The hub that answers is not the one in the invite.");

  QVERIFY(agent() > 0);
  QVERIFY(!can_go_on());
  QVERIFY(!desktop_->offers("retry"));
  QVERIFY(desktop_->click(QWizard::BackButton));
}

void DesktopTourTest::a_hub_that_cannot_be_used_is_said_data() {
  QTest::addColumn<std::string>("invite");
  QTest::addColumn<QString>("words");
  QTest::newRow("down") << run_->invite_to_a_hub_that_is_down() << "The hub cannot be reached.";
  QTest::newRow("of another run") << run_->invite_of_another_run() << "The hub serves another run than the invite's.";
}

void DesktopTourTest::a_hub_that_cannot_be_used_is_said() {
  QFETCH(std::string, invite);
  QFETCH(QString, words);
  paste(invite);
  QVERIFY(desktop_->click(QWizard::NextButton));

  AWAIT_TEXT(desktop_->said("trust_notice"), words);

  QVERIFY(!can_go_on());
  QVERIFY(desktop_->offers("retry"));
  QVERIFY(desktop_->click(QWizard::BackButton));
}

void DesktopTourTest::go_to_check(const std::string& invite) {
  AWAIT(page() == JoinWizard::kInvite);
  paste(invite);
  QVERIFY(desktop_->click(QWizard::NextButton));
  AWAIT_TEXT(desktop_->said("trust_notice"), "its key was verified");
  QVERIFY(desktop_->text("run").startsWith("test run ("));
  QCOMPARE(desktop_->text("operator"), QString("Ada"));
  QVERIFY(desktop_->click(QWizard::NextButton));
  QCOMPARE(page(), JoinWizard::kCheck);
}

void DesktopTourTest::a_warning_of_the_node_check_needs_a_tick() {
  limit_open_files(agent(), 8192);

  go_to_check(watch_->without([&] { return run_->good_invite(); }));

  AWAIT(desktop_->offers("accept_warnings"));
  const int row = desktop_->row("check_rows", "Open files allowed");
  QCOMPARE(desktop_->cell("check_rows", row, CheckModel::kVerdict), QString("Warning"));
  QVERIFY(!desktop_->cell("check_rows", row, CheckModel::kFix).isEmpty());
  QVERIFY(!can_go_on());
  QTest::keyClick(desktop_->find<QCheckBox>("accept_warnings"), Qt::Key_Space);
  QVERIFY(can_go_on());
}

void DesktopTourTest::a_fail_of_the_node_check_stops() {
  limit_open_files(agent(), 1024);

  QVERIFY(desktop_->click("again"));

  AWAIT_TEXT(desktop_->said("check_notice"), "so this machine cannot join yet");
  const int row = desktop_->row("check_rows", "Open files allowed");
  QCOMPARE(desktop_->cell("check_rows", row, CheckModel::kVerdict), QString("Fail"));
  QVERIFY(!can_go_on());
  QVERIFY(!desktop_->offers("accept_warnings"));
  ::kill(agent(), SIGKILL);  // the next one has this program's limits
  QVERIFY(desktop_->click(QWizard::BackButton) && desktop_->click(QWizard::BackButton));
}

void DesktopTourTest::go_to_joining(const std::string& invite) {
  go_to_check(invite);
  AWAIT(can_go_on() || desktop_->offers("accept_warnings"));
  if (!can_go_on()) QVERIFY(desktop_->click("accept_warnings"));
  QVERIFY(desktop_->click(QWizard::NextButton));
  QCOMPARE(page(), JoinWizard::kResources);
  AWAIT(desktop_->find<QWidget>("island.listen") != nullptr);
  QVERIFY(desktop_->type("name", "atoll one"));
  QVERIFY(desktop_->type("island.listen", "127.0.0.1:0"));
  QVERIFY(desktop_->click(QWizard::NextButton));
  AWAIT(page() == JoinWizard::kConsent);
  QVERIFY(!desktop_->wizard()->button(QWizard::CommitButton)->isEnabled());
  QVERIFY(desktop_->click("agree"));
  QVERIFY(desktop_->click(QWizard::CommitButton));
  QCOMPARE(page(), JoinWizard::kJoining);
}

void DesktopTourTest::a_used_invite_is_refused() {
  go_to_joining(watch_->without([&] { return run_->used_invite(); }));

  AWAIT_TEXT(desktop_->said("joining_notice"), "This invite has been used up.");

  QVERIFY(desktop_->offers("retry"));
  QVERIFY(!desktop_->wizard()->button(QWizard::FinishButton)->isEnabled());
  QCOMPARE(trainer(), 0);
  QVERIFY(desktop_->click(QWizard::CancelButton));
  AWAIT(desktop_->offers("join"));
}

void DesktopTourTest::an_invite_leads_through_six_pages_to_the_first_step() {
  QVERIFY(desktop_->click("join"));

  go_to_joining(watch_->without([&] { return run_->good_invite(); }));

  AWAIT_TEXT(desktop_->said("joining_notice"), "This machine trains with the others now.");
  for (const char* stage : {"stage_0", "stage_1", "stage_2", "stage_3", "stage_4", "stage_5", "stage_6"}) {
    QVERIFY2(desktop_->text(stage) == "done", qPrintable(desktop_->text(stage)));
  }
  QVERIFY(trainer() > 0);
  QVERIFY(desktop_->click(QWizard::FinishButton));
  AWAIT_TEXT(desktop_->text("run"), "run test run");
}

// ---- the dashboard

void DesktopTourTest::the_dashboard_follows_three_rounds() {
  AWAIT(accepted() >= 0);
  const int first = accepted(), began = round();

  AWAIT(accepted() >= first + 3 && round() >= began + 3);

  AWAIT_TEXT(desktop_->text("age"), "Updated now");
  AWAIT_TEXT(desktop_->newestPoint(), "This island");
  QVERIFY(desktop_->choosePage("Training"));
  AWAIT_TEXT(desktop_->newestPoint(), "Training ");
}

void DesktopTourTest::the_sync_page_shows_the_ring_and_the_islands() {
  QVERIFY(desktop_->press(QKeySequence("Ctrl+3")));

  AWAIT(desktop_->find<RingView>("ring") != nullptr);
  const auto ring = [&] { return desktop_->find<RingView>("ring")->accessibleDescription(); };
  for (const char* name : {"atoll one (this island)", "reef", "cay"}) AWAIT_TEXT(ring(), name);
  for (const char* name : {"reef", "cay"}) {
    AWAIT(desktop_->row("islands", name) >= 0);
    const auto state = [&] { return desktop_->cell("islands", desktop_->row("islands", name), IslandsModel::kState); };
    // Which link is slow on a busy machine is chance.
    AWAIT(state().contains("up") || state().contains("slowest"));
  }
  AWAIT(desktop_->text("last_sync").contains("s"));
  QVERIFY(desktop_->choosePage("Overview"));
}

// ---- wishes

void DesktopTourTest::a_pause_says_what_it_costs_and_is_followed() {
  AWAIT(state() == "Training" && desktop_->offers("pause"));
  QVERIFY(desktop_->click("pause"));
  AWAIT_TEXT(desktop_->text("cost"), "steps that this island took in round");

  QVERIFY(desktop_->click("do_it"));

  AWAIT(state() == "Paused");
  AWAIT(trainer() == 0);
  AWAIT_TEXT(desktop_->said("advice"), "Paused until you resume.");
  QVERIFY(!desktop_->offers("pause"));
}

void DesktopTourTest::resume_trains_again() {
  QVERIFY(desktop_->click("resume"));

  AWAIT(state() == "Training" && trainer() > 0);
  AWAIT(desktop_->offers("pause"));
}

// ---- what dies

void DesktopTourTest::a_killed_trainer_is_shown_with_its_cause_and_comes_back() {
  AWAIT(accepted() >= 0 && state() == "Training");
  const pid_t killed = trainer();
  desktop_->follow("state");

  ::kill(killed, SIGKILL);

  AWAIT(desktop_->seen().contains("Error"));
  AWAIT(desktop_->row("alerts", "somebody killed it (signal 9)") >= 0);
  AWAIT(state() == "Training" && trainer() != killed);
  const int before = accepted();
  AWAIT(accepted() > before);
}

void DesktopTourTest::a_killed_agent_is_not_shown_as_live() {
  const pid_t before = trainer();

  ::kill(agent(), SIGKILL);

  AWAIT(state() == "No agent" || state() == "Connection lost");
  AWAIT_TEXT(desktop_->text("age"), "Last update");
  QVERIFY(!desktop_->offers("pause"));
  QCOMPARE(desktop_->find<QLabel>("run")->foregroundRole(), QPalette::PlaceholderText);
  watch_->without([&] { run_->start_agent(); });
  AWAIT(state() == "Training" && desktop_->text("age").startsWith("Updated now"));
  QCOMPARE(trainer(), before);  // it went on, and was taken over
}

void DesktopTourTest::the_window_starts_an_agent_that_is_gone() {
  ::kill(agent(), SIGKILL);
  AWAIT(state() == "No agent");
  AWAIT_TEXT(desktop_->said("advice"), "so nothing trains here");

  QVERIFY(desktop_->click("act"));

  AWAIT(state() == "Training" && agent() > 0);
}

void DesktopTourTest::a_killed_hub_is_said_until_it_is_back() {
  watch_->without([&] { run_->kill_hub(); });

  AWAIT_TEXT(desktop_->said("advice"), "the hub does not answer");
  watch_->without([&] { run_->serve_hub(); });
  AWAIT(run_->hub_serves());
  AWAIT(desktop_->said("advice").isEmpty());
  const int before = accepted();
  AWAIT(accepted() >= before + 2 && state() == "Training");
}

void DesktopTourTest::closing_the_window_stops_nothing() {
  const pid_t agent_before = agent(), trainer_before = trainer();
  const int before = accepted();
  desktop_->close();
  QTest::qWait(1000);

  watch_->without([&] { desktop_->open(); });

  AWAIT(accepted() > before);
  QCOMPARE(agent(), agent_before);
  QCOMPARE(trainer(), trainer_before);
}

void DesktopTourTest::finish_completes_the_round_and_stops() {
  AWAIT(state() == "Training" && desktop_->offers("finish"));
  desktop_->follow("state");
  QVERIFY(desktop_->click("finish"));
  AWAIT_TEXT(desktop_->text("cost"), "then it leaves. Nothing is lost.");

  QVERIFY(desktop_->click("do_it"));

  AWAIT(state() == "Stopped");
  QVERIFY2(desktop_->seen().contains("Finishing"), qPrintable(desktop_->seen().join(", ")));
  AWAIT_TEXT(desktop_->said("advice"), "Nothing trains here until you resume.");
  QCOMPARE(trainer(), 0);
  QVERIFY(desktop_->offers("resume"));
}

QTEST_MAIN(DesktopTourTest)
#include "desktop_tour_test.moc"
