// What is logged, and what always is.
#include "net/base/log.h"

#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <QtTest>
#include <memory>
#include <sstream>

using namespace atl;

class LogTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void init();
  void only_the_chosen_level_and_above_is_logged_data();
  void only_the_chosen_level_and_above_is_logged();
  void a_name_that_is_no_level_changes_nothing();
  void what_another_program_waits_for_is_logged_at_any_level();

 private:
  std::ostringstream written_;
};

void LogTest::init() {
  written_.str("");
  spdlog::set_default_logger(
      std::make_shared<spdlog::logger>("test", std::make_shared<spdlog::sinks::ostream_sink_mt>(written_)));
  set_up_log();
}

void LogTest::only_the_chosen_level_and_above_is_logged_data() {
  QTest::addColumn<QString>("level");
  QTest::addColumn<int>("lines");
  QTest::newRow("error") << "error" << 1;
  QTest::newRow("warning") << "warning" << 2;
  QTest::newRow("info") << "info" << 3;
  QTest::newRow("debug") << "debug" << 4;
}

void LogTest::only_the_chosen_level_and_above_is_logged() {
  QFETCH(const QString, level);
  QFETCH(const int, lines);

  set_log_level(level.toStdString());
  spdlog::debug("d=1");
  spdlog::info("i=1");
  spdlog::warn("w=1");
  spdlog::error("e=1");

  QCOMPARE(QString::fromStdString(written_.str()).count('\n'), lines);
}

void LogTest::a_name_that_is_no_level_changes_nothing() {
  set_log_level("warning");

  for (const char* name : {"", "off", "loud"}) set_log_level(name);

  QCOMPARE(spdlog::get_level(), spdlog::level::warn);
}

void LogTest::what_another_program_waits_for_is_logged_at_any_level() {
  set_log_level("error");

  spdlog::info("a=1");
  log_at_any_level("b=1\nforged=1");

  const QString text = QString::fromStdString(written_.str());
  QVERIFY2(text.endsWith(" info b=1?forged=1\n"), qPrintable(text));
  QCOMPARE(text.count('\n'), 1);
}

QTEST_APPLESS_MAIN(LogTest)
#include "log_test.moc"
