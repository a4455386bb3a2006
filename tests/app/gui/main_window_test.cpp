// The window, fed by the monitor from a real control server.
#include "app/gui/main_window.h"

#include <QApplication>
#include <QClipboard>
#include <QLabel>
#include <QProgressBar>
#include <QPushButton>
#include <QTemporaryDir>
#include <QtTest>

#include <fstream>

#include "app/core/island_monitor.h"
#include "tests/app/gui/fake_trainer.h"

using namespace atl;
using namespace std::chrono_literals;

namespace {

constexpr MonitorTiming kFast{.interval = 50ms, .answer_time = 500ms};

// Time that this thread was ready to run, but the processor was busy with others.
qint64 waiting_for_processor_ms() {
  std::ifstream file("/proc/thread-self/schedstat");
  qint64 running = 0;
  qint64 waiting = 0;
  file >> running >> waiting;
  return waiting / 1'000'000;
}

// The longest that the event loop did not come round while `duration` passed, not counting a busy machine.
qint64 longest_block_ms(std::chrono::milliseconds duration) {
  qint64 longest = 0;
  QElapsedTimer gap;
  qint64 waited = waiting_for_processor_ms();
  gap.start();
  QTimer tick;
  QObject::connect(&tick, &QTimer::timeout, [&] {
    const qint64 waited_now = waiting_for_processor_ms();
    longest = std::max(longest, gap.restart() - (waited_now - waited));
    waited = waited_now;
  });
  tick.start(5);
  QTest::qWait(static_cast<int>(duration.count()));
  return longest;
}

IslandReport report_of(const IslandState& state, std::chrono::seconds age) {
  IslandReport report;
  report.link = IslandLink::kConnected;
  report.run_name = state.run_name;
  report.state = state;
  report.state_time = Clock::now() - age;
  return report;
}

}  // namespace

class MainWindowTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase() { QLocale::setDefault(QLocale::c()); }
  void init() {
    home_.directory = directory_.filePath(QString::number(++counter_)).toStdString();
    window_ = std::make_unique<MainWindow>(home_);
    window_->show();
  }

  void a_home_without_join_file_says_how_to_join() {
    watch();

    QTRY_COMPARE(text("state"), QString("\u25CB Not joined"));
    QVERIFY(text("advice").contains("Not joined: run `atoll join INVITE`"));
    QVERIFY(!label("loss")->isVisible());
  }

  void it_shows_what_the_trainer_says_with_units() {
    join();
    FakeTrainer trainer(home_);
    watch();

    QTRY_COMPARE(text("state"), QString("\u25B6 Training"));
    QCOMPARE(text("run"), QString("run gcide-demo"));
    QCOMPARE(text("age"), QString("Updated now"));
    QCOMPARE(text("loss"), QString("2.914 nats per token"));
    QCOMPARE(text("validation_loss"), QString("3.022 nats per token"));
    QCOMPARE(text("speed"), QString("31815 tokens/s"));
    QCOMPARE(text("islands"), QString("7 of 8 live"));
    QCOMPARE(text("last_sync"), QString("took 38 s"));
    QCOMPARE(text("next_sync"), QString("in about 4 min 10 s"));
    QCOMPARE(text("bytes_sent"), QString("1.9 GB"));
    QCOMPARE(text("computing"), QString("92 % of the time"));
    QCOMPARE(text("state_hash"), QString::fromStdString(training_state().state_hash));
    QCOMPARE(window_->findChild<QProgressBar*>("step")->value(), 371);
    QVERIFY(!label("advice")->isVisible());
  }

  void it_follows_a_changing_state() {
    join();
    FakeTrainer trainer(home_);
    watch();
    QTRY_COMPARE(text("round"), QString("42"));

    IslandState state = training_state();
    state.state = "syncing";
    state.inner_step = 500;
    state.round = 43;
    trainer.say(state);

    QTRY_COMPARE(text("state"), QString("\u21C4 Synchronizing"));
    QCOMPARE(text("round"), QString("43"));
    QCOMPARE(window_->findChild<QProgressBar*>("step")->text(), QString("step 500 of 500"));
  }

  void an_error_is_shown_with_what_to_do() {
    IslandState state = training_state();
    state.state = "error";
    state.error = "the loss is not finite";

    window_->showReport(report_of(state, 0s));

    QCOMPARE(text("state"), QString("\u26A0 Error"));
    QVERIFY(text("advice").contains("the loss is not finite"));
    QVERIFY(text("advice").contains("trainer.log"));
  }

  void text_from_elsewhere_is_not_markup() {
    IslandState state = training_state();
    state.error = "<h1>x</h1>";

    window_->showReport(report_of(state, 0s));

    for (const QLabel* found : window_->findChildren<QLabel*>()) {
      if (found->focusPolicy() != Qt::NoFocus) QCOMPARE(found->textFormat(), Qt::PlainText);
    }
  }

  void a_state_older_than_five_seconds_does_not_look_live() {
    window_->showReport(report_of(training_state(), 0s));
    QCOMPARE(label("loss")->foregroundRole(), QPalette::WindowText);

    window_->showReport(report_of(training_state(), 12s));

    QCOMPARE(text("age"), QString("Last update 12 s ago"));
    QCOMPARE(text("state"), QString("\u26A0 Not answering"));
    QCOMPARE(label("loss")->foregroundRole(), QPalette::PlaceholderText);
    QVERIFY(!window_->findChild<QProgressBar*>("step")->isEnabled());
    QVERIFY(text("advice").contains("does not answer"));
  }

  void a_trainer_that_goes_away_is_not_running_within_seconds() {
    join();
    auto trainer = std::make_unique<FakeTrainer>(home_);
    watch();
    QTRY_COMPARE(text("state"), QString("\u25B6 Training"));

    trainer.reset();

    QTRY_COMPARE_WITH_TIMEOUT(text("state"), QString("\u25A0 Not running"), 3000);
    QCOMPARE(label("loss")->foregroundRole(), QPalette::PlaceholderText);
    QVERIFY(text("command").startsWith("atoll join"));
  }

  void the_event_loop_never_waits_for_a_silent_trainer() {
    join();
    FakeTrainer trainer(home_);
    watch();
    QTRY_COMPARE(text("state"), QString("\u25B6 Training"));
    trainer.fall_silent();

    const qint64 longest = longest_block_ms(1500ms);

    QVERIFY2(longest <= 50, qPrintable(QString("%1 ms").arg(longest)));
  }

  void the_command_can_be_copied() {
    IslandReport report;
    report.link = IslandLink::kNotRunning;
    report.run_name = "gcide-demo";
    window_->showReport(report);

    window_->findChild<QPushButton*>("copy")->click();

    QCOMPARE(QApplication::clipboard()->text(), QString("atoll join --home " + path()));
  }

  void every_control_has_an_accessible_name_and_every_value_the_keyboard() {
    window_->showReport(report_of(training_state(), 0s));
    int controls = 0;

    for (const QWidget* widget : window_->findChildren<QWidget*>()) {
      const bool control = widget->focusPolicy() != Qt::NoFocus || qobject_cast<const QProgressBar*>(widget) != nullptr;
      if (!control || !widget->isVisible()) continue;
      ++controls;
      QVERIFY2(!widget->accessibleName().isEmpty(),
               qPrintable(widget->objectName() + widget->metaObject()->className()));
    }

    QVERIFY(controls > 15);
    QVERIFY(label("loss")->focusPolicy() & Qt::TabFocus);
    QCOMPARE(label("loss")->accessibleName(), QString("Loss: 2.914 nats per token"));
  }

  void cleanup() {
    monitor_.reset();
    window_.reset();
  }

 private:
  QLabel* label(const char* name) { return window_->findChild<QLabel*>(name); }
  QString text(const char* name) { return label(name)->text(); }
  QString path() const { return QString::fromStdString(home_.directory.string()); }
  void join() {
    std::filesystem::create_directories(home_.directory);
    QVERIFY(save_join_file(home_.join_file(), test_join_file()).ok());
  }
  void watch() {
    monitor_ = std::make_unique<IslandMonitor>(home_, kFast);
    connect(monitor_.get(), &IslandMonitor::reported, window_.get(), &MainWindow::showReport);
    monitor_->start();
  }

  QTemporaryDir directory_;
  int counter_ = 0;
  IslandHome home_;
  std::unique_ptr<MainWindow> window_;
  std::unique_ptr<IslandMonitor> monitor_;
};

QTEST_MAIN(MainWindowTest)
#include "main_window_test.moc"
