// The demo as people start it: real processes, real training of a small model.
#include <signal.h>

#include <QFile>
#include <QJsonDocument>
#include <QJsonObject>
#include <QProcess>
#include <QTemporaryDir>
#include <QtTest>
#include <fstream>

#include "tests/fakes/processes.h"

class DemoProcessTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void init() {
    if (!QFile::exists(ATOLL_BIN_DIR "/atoll-trainer")) QSKIP("atoll-trainer is not built (no libtorch)");
    std::ofstream text(file("book.txt").toStdString());
    for (int i = 0; i < 20'000; ++i) text << "Line " << i << " of a book about islands in a ring.\n";
  }

  void two_rounds_end_with_a_summary_and_a_model();
  void an_island_is_killed_and_another_joins();
  void nothing_is_left_running_data();
  void nothing_is_left_running();

 private:
  QString file(const QString& name) const { return directory_.filePath(name); }
  // Starts `atoll demo` on the small text, in `directory`.
  std::unique_ptr<QProcess> start(const QString& directory, const QStringList& arguments, int inner_steps = 4);
  // What the demo in `directory` has printed so far.
  QByteArray output_of(const QString& directory) const {
    QFile printed(file(directory + ".out"));
    return printed.open(QIODevice::ReadOnly) ? printed.readAll() : QByteArray();
  }
  // Processes whose command line names this test's directory.
  std::size_t processes_left() const { return atl::test::processes_of(directory_.path().toStdString()).size(); }
  QTemporaryDir directory_;
};

std::unique_ptr<QProcess> DemoProcessTest::start(const QString& directory, const QStringList& arguments,
                                                 int inner_steps) {
  auto process = std::make_unique<QProcess>();
  QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
  environment.insert("XDG_CACHE_HOME", file("cache"));
  process->setProcessEnvironment(environment);
  process->setProcessChannelMode(QProcess::MergedChannels);
  process->setStandardOutputFile(file(directory + ".out"));
  process->start(ATOLL_BIN_DIR "/atoll", QStringList{"demo", "--text", file("book.txt"), "--dir", file(directory),
                                                     "--batch", "2", "--inner-steps", QString::number(inner_steps)} +
                                             arguments);
  return process;
}

void DemoProcessTest::two_rounds_end_with_a_summary_and_a_model() {
  const auto demo = start("two", {"--rounds", "2", "--summary", file("summary.json")});

  QVERIFY2(demo->waitForFinished(300'000), output_of("two"));
  const QByteArray output = output_of("two");

  QVERIFY2(demo->exitCode() == 0, output);
  QFile summary_file(file("summary.json"));
  QVERIFY(summary_file.open(QIODevice::ReadOnly));
  const QJsonObject summary = QJsonDocument::fromJson(summary_file.readAll()).object();
  QCOMPARE(summary["rounds"].toInt(), 2);
  QVERIFY(summary["outer_hashes_equal"].toBool());
  QVERIFY(summary["last_validation_loss"].toDouble() < summary["first_validation_loss"].toDouble());
  QVERIFY(summary["bytes_sent"].toDouble() > 0);
  QVERIFY(summary["bytes_data_parallel_fp32"].toDouble() > 2 * summary["bytes_sent"].toDouble());
  QVERIFY(QFile::exists(summary["export_dir"].toString() + "/model.safetensors"));
  QVERIFY(output.contains("round   1"));
  QVERIFY(!output.contains('\033'));
  QCOMPARE(processes_left(), std::size_t{0});
}

void DemoProcessTest::an_island_is_killed_and_another_joins() {
  const auto demo = start("kill", {"--rounds", "9", "--kill", "--summary", file("summary.json")}, 12);

  QVERIFY2(demo->waitForFinished(400'000), output_of("kill"));
  const QByteArray output = output_of("kill");

  QVERIFY2(demo->exitCode() == 0, output);
  QVERIFY2(output.contains("killed clipperton"), output);
  QVERIFY2(output.contains("diego joins"), output);
  QFile summary_file(file("summary.json"));
  QVERIFY(summary_file.open(QIODevice::ReadOnly));
  QVERIFY(QJsonDocument::fromJson(summary_file.readAll()).object()["outer_hashes_equal"].toBool());
}

void DemoProcessTest::nothing_is_left_running_data() {
  QTest::addColumn<int>("signal");
  QTest::newRow("Ctrl-C") << SIGINT;
  QTest::newRow("SIGTERM") << SIGTERM;
  QTest::newRow("kill -9") << SIGKILL;
}

void DemoProcessTest::nothing_is_left_running() {
  QFETCH(const int, signal);
  const QString directory = QString("stop%1").arg(signal);
  const auto demo = start(directory, {"--rounds", "1000"});
  QTRY_VERIFY_WITH_TIMEOUT(output_of(directory).contains("round   1"), 180'000);
  QVERIFY(processes_left() >= 8);  // the demo, the hub, three times join and trainer

  ::kill(static_cast<pid_t>(demo->processId()), signal);

  QVERIFY(demo->waitForFinished(60'000));
  QTRY_COMPARE_WITH_TIMEOUT(processes_left(), std::size_t{0}, 60'000);
}

QTEST_GUILESS_MAIN(DemoProcessTest)
#include "demo_process_test.moc"
