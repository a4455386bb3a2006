// What `cmake --install` puts in place: programs that find one another.
#include <QDir>
#include <QFile>
#include <QProcess>
#include <QTemporaryDir>
#include <QtTest>

class InstallTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase() {
    const QByteArray said = run(ATOLL_CMAKE, {"--install", ATOLL_BUILD_DIR, "--prefix", prefix_.path()});
    QVERIFY2(QFile::exists(program("atoll")), said);
  }
  void the_check_finds_its_probe() {
    QVERIFY(QFile::exists(program("atoll-gpu-probe")));

    const QByteArray rows = run(program("atoll"), {"check", "--quick", "--home", prefix_.filePath("home")});

    QVERIFY2(rows.contains("gpu."), rows);
    QVERIFY2(!rows.contains("is not beside"), rows);
  }
  void the_trainer_is_found_with_its_libraries() {
    if (!QFile::exists(ATOLL_BIN_DIR "/atoll-trainer")) QSKIP("atoll-trainer is not built (no libtorch)");

    const QByteArray said = run(program("atoll"), {"sample", "--model", "/nowhere/model", "--prompt", "x"});

    QVERIFY2(said.contains("atoll-trainer: ") && said.contains("/nowhere/model"), said);
  }
  void no_program_looks_for_libraries_in_the_directory_that_it_is_started_in() {
    for (const QString& directory : {QStringLiteral(ATOLL_BIN_DIR), prefix_.filePath("bin")}) {
      for (const QFileInfo& file : QDir(directory).entryInfoList({"atoll*"}, QDir::Files)) {
        const QByteArray dynamic = run("readelf", {"--dynamic", "--wide", file.filePath()});
        QVERIFY2(dynamic.contains("NEEDED"), dynamic);
        const qsizetype path = dynamic.indexOf("runpath: [");  // of some there is none
        if (path < 0) continue;
        const QByteArray places = dynamic.mid(path + 10, dynamic.indexOf(']', path) - path - 10);
        for (const QByteArray& place : places.split(':')) {
          QVERIFY2(place.startsWith('/') || place.startsWith("$ORIGIN"), (file.filePath() + ": " + places).toUtf8());
        }
      }
    }
  }
  void what_shells_and_scripts_want_is_there() {
    for (const char* file :
         {"share/man/man1/atoll.1", "share/atoll/schemas/status.json", "share/bash-completion/completions/atoll",
          "share/zsh/site-functions/_atoll", "share/fish/vendor_completions.d/atoll.fish"}) {
      QVERIFY2(QFile::exists(prefix_.filePath(file)), file);
    }
  }
  void a_desktop_finds_the_app_and_opens_links_with_it() {
    if (!QFile::exists(ATOLL_BIN_DIR "/atoll-gui")) QSKIP("atoll-gui is not built (no Qt Widgets)");
    QVERIFY(QFile::exists(program("atoll-gui")));
    for (const char* file :
         {"share/applications/org.atoll.Atoll.desktop", "share/metainfo/org.atoll.Atoll.metainfo.xml",
          "share/icons/hicolor/scalable/apps/org.atoll.Atoll.svg"}) {
      QVERIFY2(QFile::exists(prefix_.filePath(file)), file);
    }
    QFile entry(prefix_.filePath("share/applications/org.atoll.Atoll.desktop"));
    QVERIFY(entry.open(QIODevice::ReadOnly));
    const QByteArray text = entry.readAll();
    QVERIFY(text.contains("MimeType=x-scheme-handler/atoll;") && text.contains("Exec=atoll-gui %u"));
  }

 private:
  QString program(const QString& name) const { return prefix_.filePath("bin/" + name); }
  // All that it says.
  static QByteArray run(const QString& program, const QStringList& arguments) {
    QProcess process;
    QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
    for (const char* name : {"ATOLL_TRAINER", "ATOLL_GPU_PROBE", "ATOLL_PROGRAM"}) environment.remove(name);
    process.setProcessEnvironment(environment);
    process.setProcessChannelMode(QProcess::MergedChannels);
    process.start(program, arguments);
    if (!process.waitForFinished(100'000)) return "it does not end";
    return process.readAll();
  }

  QTemporaryDir prefix_;
};

QTEST_GUILESS_MAIN(InstallTest)
#include "install_test.moc"
