// `atoll-gui --record` and `--replay` where a file is wrong or a disk is full: a clear error, and an exit code that
// says so.
#include "app/gui/recordings.h"

#include <QProcess>
#include <QSignalSpy>
#include <QTemporaryDir>
#include <QtTest>

#include "app/core/nodes.h"
#include "tests/app/core/fake_agent.h"
#include "tests/app/core/full_disk.h"
#include "tests/app/core/recording_script.h"
#include "tests/fakes/patience.h"

using namespace atl;
using namespace atl::test;
using namespace std::chrono_literals;

namespace {

constexpr int kLimit = 60'000;

QByteArray good_recording(const QString& path) {
  RecordingScript script(path);
  script.greet(0);
  script.event(1, "step", training_state());
  script.close();
  QFile file(path);
  return file.open(QIODevice::ReadOnly) ? file.readAll() : QByteArray();
}

void write(const QString& path, const QByteArray& content) {
  QFile file(path);
  if (!file.open(QIODevice::WriteOnly) || file.write(content) != content.size()) qFatal("%s", qPrintable(path));
}

}  // namespace

class RecordingsTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void init() { directory_ = std::make_unique<QTemporaryDir>(); }

  void what_cannot_be_shown_ends_the_program_with_an_error_data();
  void what_cannot_be_shown_ends_the_program_with_an_error();
  void what_cannot_be_written_ends_the_program_with_an_error_data();
  void what_cannot_be_written_ends_the_program_with_an_error();
  void a_recording_that_was_cut_off_is_shown_and_said_to_be();
  void a_disk_that_becomes_full_ends_the_recording_and_not_the_app();
  void a_good_recording_is_nothing_to_complain_of();

 private:
  QString path(const char* name) const { return directory_->filePath(name); }
  void start(QProcess& program, const QStringList& arguments) const;
  void expectError(const QStringList& arguments, const QString& words) const;
  std::unique_ptr<QTemporaryDir> directory_;
};

void RecordingsTest::start(QProcess& program, const QStringList& arguments) const {
  QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
  for (const char* name : {"HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME"}) environment.insert(name, directory_->path());
  environment.insert("QT_QPA_PLATFORM", "offscreen");
  environment.insert("LC_ALL", "C.UTF-8");
  environment.remove("LANGUAGE");
  program.setProcessEnvironment(environment);
  program.start(ATOLL_BIN_DIR "/atoll-gui", arguments);
}

void RecordingsTest::expectError(const QStringList& arguments, const QString& words) const {
  QProcess program;
  start(program, arguments);
  const bool ended = program.waitForFinished(kLimit);
  const QString said = QString::fromUtf8(program.readAllStandardError());
  QVERIFY2(ended, qPrintable(said));
  QCOMPARE(program.exitStatus(), QProcess::NormalExit);
  QCOMPARE(program.exitCode(), 2);
  QVERIFY2(said.contains(words), qPrintable(said));
}

void RecordingsTest::what_cannot_be_shown_ends_the_program_with_an_error_data() {
  QTest::addColumn<QByteArray>("content");
  QTest::addColumn<QString>("words");
  const QTemporaryDir directory;
  const QByteArray good = good_recording(directory.filePath("good"));
  QTest::newRow("something else") << QByteArray("#!/bin/sh\n") << "is no recording of Atoll's";
  QTest::newRow("empty") << QByteArray() << "is no recording of Atoll's";
  QTest::newRow("cut off in its first line") << good.left(20) << "is no recording of Atoll's";
  QTest::newRow("of a newer version") << QByteArray(good).replace("\"atoll_recording\":1", "\"atoll_recording\":2")
                                      << "was recorded by another version of Atoll";
}

void RecordingsTest::what_cannot_be_shown_ends_the_program_with_an_error() {
  QFETCH(const QByteArray, content);
  QFETCH(const QString, words);
  write(path("recording"), content);

  expectError({"--replay", path("recording")}, words);
  if (!QTest::currentTestFailed()) expectError({"--replay", path("none")}, "cannot be read");
}

void RecordingsTest::what_cannot_be_written_ends_the_program_with_an_error_data() {
  QTest::addColumn<QString>("file");
  QTest::newRow("no such directory") << "no/such/directory/recording";
  QTest::newRow("a directory") << ".";
  QTest::newRow("a full disk") << "/dev/full";
}

void RecordingsTest::what_cannot_be_written_ends_the_program_with_an_error() {
  QFETCH(const QString, file);
  if (file.startsWith("/") && !QFileInfo(file).isWritable()) QSKIP("this user may not write to /dev/full");
  const QString target = file.startsWith("/") ? file : path(qPrintable(file));

  expectError({"--home", path("home"), "--record", target}, "The recording cannot be written to " + target);
}

void RecordingsTest::a_recording_that_was_cut_off_is_shown_and_said_to_be() {
  write(path("cut"), good_recording(path("good")).chopped(30));
  QProcess program;

  start(program, {"--replay", path("cut")});

  QString said;
  program.setReadChannel(QProcess::StandardError);
  while (!said.contains("is not whole") && program.waitForReadyRead(kLimit)) {
    said += QString::fromUtf8(program.readAllStandardError());
  }
  QVERIFY2(said.contains(path("cut") + " is not whole"), qPrintable(said));
  QCOMPARE(program.state(), QProcess::Running);
  program.kill();
  program.waitForFinished(kLimit);

  Nodes nodes{QString()};
  Recordings recordings(nodes);
  GuiOptions options;
  options.replay = path("cut");
  QVERIFY(recordings.begin(options).ok());
  QCOMPARE(recordings.exitCode(0), 1);
}

void RecordingsTest::a_disk_that_becomes_full_ends_the_recording_and_not_the_app() {
  const FullAt limit(256 * 1024);
  FakeAgent agent;
  Nodes nodes{QString()};
  Node& node = nodes.add(std::make_unique<Node>(LocalNode{}, agent.open(), FakeCommands().run()));
  Recordings recordings(nodes);
  GuiOptions options;
  options.record = path("recording");
  QVERIFY(recordings.begin(options).ok());
  QSignalSpy failed(&node.link(), &AgentLink::recordingFailed);
  QTRY_VERIFY(node.live());
  QCOMPARE(recordings.exitCode(0), 0);

  for (int i = 0; i < 400; ++i) agent.step(2.5);

  QTRY_COMPARE(failed.size(), 1);
  QVERIFY(node.live());
  QVERIFY(!node.alerts().empty() && node.alerts().front().level == Alert::Level::kError);
  QCOMPARE(recordings.exitCode(0), 1);
  QCOMPARE(recordings.exitCode(3), 3);
}

void RecordingsTest::a_good_recording_is_nothing_to_complain_of() {
  good_recording(path("good"));
  Nodes nodes{QString()};
  GuiOptions options;
  options.replay = path("good");
  Recordings recordings(nodes);

  QVERIFY(open_nodes(options, nodes).ok());
  QVERIFY(recordings.begin(options).ok());

  QTRY_COMPARE_WITH_TIMEOUT(nodes.all().front()->link().state(), LinkState::kEnded, 20'000);
  QCOMPARE(recordings.exitCode(0), 0);
}

QTEST_GUILESS_MAIN(RecordingsTest)
#include "recordings_test.moc"
