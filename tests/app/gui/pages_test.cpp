// First start, the pages Check and Logs, and the demo, over an agent in memory.
#include <QAbstractButton>
#include <QCheckBox>
#include <QClipboard>
#include <QComboBox>
#include <QDir>
#include <QGuiApplication>
#include <QLabel>
#include <QLineEdit>
#include <QListView>
#include <QPlainTextEdit>
#include <QProgressBar>
#include <QPushButton>
#include <QSpinBox>
#include <QTableView>
#include <QTableWidget>
#include <QToolButton>
#include <QtTest>

#include "app/core/check_model.h"
#include "app/gui/check_page.h"
#include "app/gui/check_topics.h"
#include "app/gui/demo/demo_runner.h"
#include "app/gui/demo/demo_summary_view.h"
#include "app/gui/demo_page.h"
#include "app/gui/first_start.h"
#include "app/gui/logs_page.h"
#include "app/gui/look/format.h"
#include "app/gui/parts/check_table.h"
#include "app/gui/parts/check_titles.h"
#include "app/gui/parts/notice.h"
#include "app/gui/settings_page.h"
#include "net/check/judge_rows.h"
#include "tests/app/gui/page_fixture.h"
#include "tests/app/gui/reach.h"
#include "tests/fakes/hub_states.h"
#include "tests/fakes/patience.h"

using namespace atl;
using namespace atl::test;

namespace {

constexpr const char* kSummary = R"({"rounds":40,"training_seconds":290.5,"first_validation_loss":5.5,
  "last_validation_loss":1.9,"tokens_per_second":30000,"tokens":8000000,"parameters":700000,"bytes_sent":50000000,
  "bytes_data_parallel_fp32":2000000000,"compute_utilisation":0.91,"outer_hashes_equal":true,
  "export_dir":"/tmp/model","sample":"An atoll is <b>a ring</b>"})";

nlohmann::json log_line(const char* source, const char* level, const std::string& text) {
  return {{"source", source}, {"time", "2026-11-21T21:36:32.125"}, {"level", level}, {"text", text}};
}

}  // namespace

class PagesTest : public QObject, private PageFixture {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase() { begin(); }
  void init() { renew(); }
  void cleanup() { end(); }

  void the_first_start_offers_three_ways();

  void a_check_is_run_and_its_rows_come_in();
  void a_verdict_is_a_word_and_an_icon();
  void what_helps_can_be_copied();
  void a_table_that_has_the_keyboard_begins_with_the_worst_row();
  void what_fails_comes_first_once_the_check_is_over();
  void every_row_of_the_check_has_a_name();
  void without_an_agent_the_check_offers_to_start_one();
  void without_an_agent_the_settings_offer_to_start_one();
  void a_check_of_before_the_join_is_not_shown_as_todays();

  void log_lines_are_filtered_by_level_source_and_words();
  void log_lines_are_read_only_while_somebody_looks();
  void chosen_log_lines_are_copied();

  void the_demo_says_what_is_missing();
  void the_demo_runs_and_shows_what_it_came_to();
  void a_demo_that_failed_says_why();
  void a_demo_can_be_stopped();
  void what_a_stopped_demo_came_to_stays();

  void every_page_can_be_used_by_everybody_data();
  void every_page_can_be_used_by_everybody();
};

// ---- first start

void PagesTest::the_first_start_offers_three_ways() {
  show<FirstStart>();
  auto* first = qobject_cast<FirstStart*>(page_.get());
  QSignalSpy join(first, &FirstStart::joinWanted), host(first, &FirstStart::hostWanted),
      demo(first, &FirstStart::demoWanted);

  for (const char* name : {"join", "host", "demo"}) find<QAbstractButton>(name)->click();

  QVERIFY(join.size() == 1 && host.size() == 1 && demo.size() == 1);
}

// ---- check

void PagesTest::a_check_is_run_and_its_rows_come_in() {
  show<CheckPage>();
  QCOMPARE(find<Notice>("check_notice")->kind(), Notice::Kind::kInfo);
  QVERIFY(page_->findChild<CheckTopics*>()->isVisible() && !find<QTableView>("check_rows")->isVisible());

  find<QPushButton>("full")->click();
  QVERIFY(!page_->findChild<CheckTopics*>()->isVisible() && find<QTableView>("check_rows")->isVisible());
  QTRY_COMPARE(agent().count("check.run"), std::size_t{1});
  QCOMPARE(agent().last_params("check.run")["full"], nlohmann::json(true));
  QVERIFY(find<QProgressBar>("check_busy")->isVisible() && !find<QPushButton>("quick")->isEnabled());
  agent().tell("check.result", {{"row", check_row("disk.free", "fail", "212 GB", "choose another directory")}});
  QTRY_COMPARE(find<QTableView>("check_rows")->model()->rowCount(), 1);
  tell_check(agent(), {check_row("disk.free", "fail", "212 GB", "choose another directory")});

  QTRY_COMPARE(find<Notice>("check_notice")->kind(), Notice::Kind::kError);
  QVERIFY(find<QPushButton>("quick")->isEnabled());
  QVERIFY(find<QLabel>("last_check")->text().startsWith("Last check: "));
}

void PagesTest::a_verdict_is_a_word_and_an_icon() {
  show<CheckPage>();
  tell_check(agent(), {check_row("net.cc", "warn", "cubic", "modprobe tcp_bbr")});
  const QAbstractItemModel* rows = find<QTableView>("check_rows")->model();
  QTRY_COMPARE(rows->rowCount(), 1);

  const QModelIndex verdict = rows->index(0, 0);

  QCOMPARE(verdict.data().toString(), QString("Warning"));
  QVERIFY(!verdict.data(Qt::DecorationRole).value<QIcon>().isNull());
  QCOMPARE(verdict.data(Qt::AccessibleTextRole).toString(),
           QString("Warning: TCP congestion control: cubic. What to do: modprobe tcp_bbr"));
}

void PagesTest::what_helps_can_be_copied() {
  show<CheckPage>();
  tell_check(agent(),
             {check_row("disk.free", "pass", "812 GB"), check_row("net.cc", "warn", "cubic", "modprobe tcp_bbr")});
  auto* table = find<QTableView>("check_rows");
  QTRY_VERIFY(find<QPushButton>("copy_fix")->isEnabled());  // the first is chosen
  table->selectRow(1);
  QVERIFY(!find<QPushButton>("copy_fix")->isEnabled());
  table->selectRow(0);

  focus(table);
  QTest::keySequence(table, QKeySequence::Copy);

  QCOMPARE(QGuiApplication::clipboard()->text(), QString("modprobe tcp_bbr"));
  QVERIFY(find<QPushButton>("copy_fix")->isEnabled());
  QVERIFY(!find<QPushButton>("copy_all_fixes")->isVisible());
}

void PagesTest::a_table_that_has_the_keyboard_begins_with_the_worst_row() {
  show<CheckPage>();
  auto* table = find<QTableView>("check_rows");
  const std::vector<nlohmann::json> rows = {check_row("clock", "skip", "no hub"),
                                            check_row("disk.free", "fail", "212 GB", "choose another directory")};
  agent().tell("check.result", {{"row", rows[0]}});
  QTRY_COMPARE(table->model()->rowCount(), 1);
  table->setFocus();  // its first row is the current one from now on, wherever it goes

  tell_check(agent(), rows);

  QTRY_VERIFY(table->selectionModel()->isRowSelected(0));
  QVERIFY(find<QPushButton>("copy_fix")->isEnabled());
}

void PagesTest::what_fails_comes_first_once_the_check_is_over() {
  show<CheckPage>();
  auto* table = find<QTableView>("check_rows");
  const auto shown = [table] {
    QStringList titles;
    for (int row = 0; row < table->model()->rowCount(); ++row)
      titles << table->model()->index(row, CheckModel::kRow).data().toString();
    return titles;
  };
  const std::vector<nlohmann::json> rows = {check_row("clock", "skip", "no hub"), check_row("ram", "pass", "64 GB"),
                                            check_row("host.nofile", "warn", "8192", "ulimit -n 65536"),
                                            check_row("disk.free", "fail", "212 GB", "choose another directory"),
                                            check_row("net.cc", "warn", "cubic", "modprobe tcp_bbr")};
  const QStringList as_they_came{"Clock", "Main memory", "Open files allowed", "Free disk space",
                                 "TCP congestion control"};
  for (const nlohmann::json& row : rows) agent().tell("check.result", {{"row", row}});
  QTRY_COMPARE(shown(), as_they_came);
  table->selectRow(2);

  tell_check(agent(), rows);

  const QStringList worst_first{"Free disk space", "Open files allowed", "TCP congestion control", "Main memory",
                                "Clock"};
  QTRY_COMPARE(shown(), worst_first);
  QCOMPARE(table->currentIndex().row(), 1);  // what was chosen stays so
  find<QPushButton>("copy_fix")->click();
  QCOMPARE(QGuiApplication::clipboard()->text(), QString("ulimit -n 65536"));
  find<QPushButton>("copy_all_fixes")->click();
  QCOMPARE(QGuiApplication::clipboard()->text().split('\n').mid(0, 3),
           QStringList({"# Free disk space: 212 GB", "choose another directory", "# Open files allowed: 8192"}));
}

void PagesTest::every_row_of_the_check_has_a_name() {
  for (const RowRule& rule : check_rules()) {
    const std::string id(rule.id);
    QVERIFY2(check_title(id) != QString::fromStdString(id), id.c_str());
  }
}

void PagesTest::without_an_agent_the_check_offers_to_start_one() {
  show<CheckPage>();
  QVERIFY(!find<QPushButton>("start_agent")->isVisible());
  QSignalSpy wanted(qobject_cast<CheckPage*>(page_.get()), &CheckPage::startWanted);

  hang_up();

  QTRY_COMPARE(find<Notice>("check_notice")->kind(), Notice::Kind::kWarning);
  QVERIFY(!find<QPushButton>("quick")->isEnabled());
  QTRY_VERIFY(find<QPushButton>("start_agent")->isVisible());
  find<QPushButton>("start_agent")->click();
  QCOMPARE(wanted.size(), 1);
  agent().welcome();
  QTRY_VERIFY(find<QPushButton>("quick")->isEnabled());
  QTRY_VERIFY(!find<QPushButton>("start_agent")->isVisible());
}

void PagesTest::without_an_agent_the_settings_offer_to_start_one() {
  show<SettingsPage>();
  QSignalSpy wanted(qobject_cast<SettingsPage*>(page_.get()), &SettingsPage::startWanted);

  hang_up();

  QTRY_VERIFY(find<QPushButton>("start_agent")->isVisible());
  find<QPushButton>("start_agent")->click();
  QCOMPARE(wanted.size(), 1);
}

void PagesTest::a_check_of_before_the_join_is_not_shown_as_todays() {
  show<CheckPage>();

  tell_check(agent(), {check_row("disk.free", "pass", "812 GB")}, /*run_id=*/"");

  auto* notice = find<Notice>("check_notice");
  QTRY_COMPARE(notice->kind(), Notice::Kind::kWarning);
  QVERIFY2(notice->sentence().startsWith("This result is old"), qPrintable(notice->sentence()));
  QVERIFY2(find<QLabel>("last_check")->text().endsWith(", for no run"), qPrintable(find<QLabel>("last_check")->text()));
  QVERIFY(!find<QTableView>("check_rows")->isEnabled());
  tell_check(agent(), {check_row("disk.free", "pass", "812 GB")});
  QTRY_COMPARE(notice->kind(), Notice::Kind::kGood);
  QVERIFY(find<QLabel>("last_check")->text().contains(QString("for the run \u201C")));
  QVERIFY(find<QTableView>("check_rows")->isEnabled());
}

// ---- logs

void PagesTest::log_lines_are_filtered_by_level_source_and_words() {
  const nlohmann::json lines = {log_line("agent", "info", "agent started"), log_line("trainer", "error", "edge broke"),
                                log_line("agent", "debug", "turn"), log_line("trainer", "", "no level")};
  agent().answer("logs.read", nlohmann::json{{"lines", lines}, {"cursor", "c"}});
  agent().answer("logs.read", [lines](const nlohmann::json& params) {
    return nlohmann::json{{"lines", params.contains("cursor") ? nlohmann::json::array() : lines}, {"cursor", "c"}};
  });
  show<LogsPage>();
  const QAbstractItemModel* shown = find<QListView>("lines")->model();
  QTRY_COMPARE(shown->rowCount(), 3);  // all but debug

  find<QComboBox>("level")->setCurrentIndex(3);
  QCOMPARE(shown->rowCount(), 1);
  QVERIFY(shown->index(0, 0).data(Qt::AccessibleTextRole).toString().startsWith("Error: "));
  find<QComboBox>("level")->setCurrentIndex(0);
  QCOMPARE(shown->rowCount(), 4);
  find<QComboBox>("source")->setCurrentIndex(1);
  QCOMPARE(shown->rowCount(), 2);
  QTest::keyClicks(find<QLineEdit>("search"), "STARTED");
  QCOMPARE(shown->rowCount(), 1);
  QTest::keyClicks(find<QLineEdit>("search"), "?");
  QCOMPARE(shown->rowCount(), 0);
  QTRY_COMPARE(find<Notice>("logs_notice")->sentence(), QString("No line fits what you look for."));
}

void PagesTest::log_lines_are_read_only_while_somebody_looks() {
  show<LogsPage>();
  QTRY_VERIFY(agent().count("logs.read") >= 1);

  page_->hide();
  const std::size_t before = agent().count("logs.read");
  QTest::qWait(1200);
  QCOMPARE(agent().count("logs.read"), before);

  page_->show();
  QTRY_VERIFY(agent().count("logs.read") > before);
}

void PagesTest::chosen_log_lines_are_copied() {
  show<LogsPage>();
  auto* list = find<QListView>("lines");
  QTRY_COMPARE(list->model()->rowCount(), 2);

  find<QPushButton>("copy")->click();
  QCOMPARE(QGuiApplication::clipboard()->text().count('\n'), 2);
  list->setCurrentIndex(list->model()->index(1, 0));
  focus(list);
  QTest::keySequence(list, QKeySequence::Copy);

  QVERIFY(QGuiApplication::clipboard()->text().contains("edge slow"));
  QCOMPARE(QGuiApplication::clipboard()->text().count('\n'), 1);
}

// ---- demo

void PagesTest::the_demo_says_what_is_missing() {
  show<DemoPage>();

  find<QLineEdit>("demo_text")->setText("/nowhere/book.txt");

  QCOMPARE(find<Notice>("demo_notice")->sentence(), QString("There is no such file."));
  QVERIFY(!find<QPushButton>("start_demo")->isEnabled());
}

void PagesTest::the_demo_runs_and_shows_what_it_came_to() {
  world_->commands.answer({"demo"}, {.out = "3 islands and a hub started\n", .hangs = true});
  show<DemoPage>();
  QFile text(world_->directory.filePath("book.txt"));
  QVERIFY(text.open(QIODevice::WriteOnly));
  find<QLineEdit>("demo_text")->setText(text.fileName());
  find<QPushButton>("start_demo")->click();
  QTRY_VERIFY(!world_->commands.asked().empty());
  const QStringList arguments = world_->commands.asked().back().arguments;
  QVERIFY(arguments.contains("--text") && arguments.contains(text.fileName()));
  QTRY_VERIFY(find<QPlainTextEdit>("demo_output")->toPlainText().contains("3 islands"));
  QVERIFY(qobject_cast<DemoPage*>(page_.get())->running());
  QVERIFY(find<QPushButton>("stop_demo")->isVisible());

  const auto outcome = DemoOutcome::from_json(kSummary);

  QVERIFY(outcome.ok());
  QCOMPARE(outcome->rounds, 40u);
  QCOMPARE(outcome->sample, QString("An atoll is <b>a ring</b>"));
  QVERIFY(outcome->outer_hashes_equal.value_or(false));
  QVERIFY(!DemoOutcome::from_json("no JSON").ok());
}

void PagesTest::a_demo_that_failed_says_why() {
  world_->commands.answer({"demo"}, {.exit_code = 13, .err = "atoll: atoll-trainer is not beside atoll\n"});
  show<DemoPage>();
  find<QLineEdit>("demo_text")->setText(QCoreApplication::applicationFilePath());

  find<QPushButton>("start_demo")->click();

  QTRY_COMPARE(find<Notice>("demo_notice")->kind(), Notice::Kind::kError);
  QVERIFY(find<Notice>("demo_notice")->advice().contains("atoll-trainer is not beside"));
}

void PagesTest::a_demo_can_be_stopped() {
  world_->commands.answer({"demo"}, {.hangs = true});
  show<DemoPage>();
  find<QLineEdit>("demo_text")->setText(QCoreApplication::applicationFilePath());
  find<QPushButton>("start_demo")->click();
  QTRY_VERIFY(!world_->commands.asked().empty());

  find<QPushButton>("stop_demo")->click();

  QTRY_VERIFY(!qobject_cast<DemoPage*>(page_.get())->running());
  QVERIFY(find<QPushButton>("start_demo")->isVisible());
  QVERIFY(!find<Notice>("demo_notice")->says());
}

void PagesTest::what_a_stopped_demo_came_to_stays() {
  world_->commands.answer({"demo"}, {.hangs = true});
  world_->commands.answer({"export"}, {.exit_code = 0});
  world_->commands.answer({"sample"}, {.exit_code = 0, .out = "An atoll is a ring of coral.\n"});
  const QString directory = world_->directory.filePath("demo");
  DemoRunner runner(world_->commands.run(), directory);
  DemoSummaryView view(runner);
  runner.start({});
  QTRY_VERIFY(!world_->commands.asked().empty());
  QVERIFY(QDir().mkpath(directory + "/islands/amber"));
  HubState state = training_run(/*islands=*/1, /*rounds=*/12);
  runner.takeHub(state);
  QSignalSpy ended(&runner, &DemoRunner::ended);

  runner.stop();

  QTRY_COMPARE(ended.size(), 1);
  QVERIFY(runner.outcome() && runner.wasStopped());
  view.showOutcome();
  QCOMPARE(view.findChild<QPlainTextEdit*>("sample")->toPlainText(), QString("An atoll is a ring of coral."));
  const auto figures = view.findChildren<QLabel*>("figure");
  const auto says = [&](const QString& text) {
    return std::ranges::any_of(figures, [&](const QLabel* one) { return one->text().contains(text); });
  };
  QVERIFY(says(directory + "/model"));
  QVERIFY(says(text::loss(state.rounds.back().mean_loss_nats)));
  QVERIFY(view.findChild<QPushButton*>("open_model")->isEnabled());
}

// ---- for everybody

void PagesTest::every_page_can_be_used_by_everybody_data() {
  QTest::addColumn<QString>("name");
  for (const char* name : {"first start", "check", "logs", "settings", "demo"}) QTest::newRow(name) << QString(name);
}

void PagesTest::every_page_can_be_used_by_everybody() {
  QFETCH(QString, name);
  if (name == "first start") show<FirstStart>();
  if (name == "check") show<CheckPage>();
  if (name == "logs") show<LogsPage>();
  if (name == "settings") show<SettingsPage>();
  if (name == "demo") show<DemoPage>();
  tell_check(agent(), {check_row("disk.free", "fail", "212 GB", "choose another directory")});
  QTest::qWait(100);

  QCOMPARE(unnamed_controls(*page_), QStringList());
  QCOMPARE(unreached_controls(*page_), QStringList());
  QCOMPARE(shared_mnemonics(*page_).join("; "), QString());
  QCOMPARE(cut_texts(*page_), QStringList());
}

QTEST_MAIN(PagesTest)
#include "pages_test.moc"
