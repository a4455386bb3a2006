// A preparation that is killed (SIGKILL, at any moment) and called again ends with the bytes of one that was left
// alone.
#include <zstd.h>

#include <QProcess>
#include <QTemporaryDir>
#include <QtTest>
#include <fstream>
#include <map>
#include <random>
#include <thread>

#include "net/data/prepare.h"

using namespace atl;

namespace {

using Path = std::filesystem::path;

constexpr int kKills = 20;
constexpr const char* kPrepare = "prepare";  // this program, to be killed: prepare INPUT OUTPUT THREADS

std::map<std::string, std::string> files_in(const Path& directory) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    std::ifstream file(entry.path(), std::ios::binary);
    files[entry.path().filename().string()] = {std::istreambuf_iterator<char>(file), {}};
  }
  return files;
}

std::string json_lines(int first, int count) {
  std::string lines;
  for (int i = first; i < first + count; ++i) {
    lines += "{\"text\": \"document " + std::to_string(i - i % 7) + " of many, " +
             std::string(static_cast<std::size_t>(500 + i % 3'000), static_cast<char>('a' + i % 26)) + "\"}\n";
  }
  return lines;
}

void write_zstd(const Path& path, const std::string& content) {
  std::string compressed(ZSTD_compressBound(content.size()), '\0');
  compressed.resize(ZSTD_compress(compressed.data(), compressed.size(), content.data(), content.size(), 3));
  std::ofstream(path, std::ios::binary) << compressed;
}

// Killed after a few documents it has something to go on from.
PrepareOptions options_of(std::size_t threads) {
  PrepareOptions options{.read = {.block_bytes = 50'000}, .shard_tokens = 1'000'000};
  options.threads = threads;
  options.checkpoint_every = std::chrono::milliseconds(1);
  return options;
}

}  // namespace

class PrepareKillTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase();
  void killed_at_any_moment_it_ends_with_the_same_bytes_data();
  void killed_at_any_moment_it_ends_with_the_same_bytes();

 private:
  Path path(const std::string& name) const { return Path(directory_.path().toStdString()) / name; }

  QTemporaryDir directory_;
};

void PrepareKillTest::initTestCase() {
  std::filesystem::create_directory(path("in"));
  write_zstd(path("in/a.jsonl.zst"), json_lines(0, 3'000));
  std::ofstream(path("in/b.txt")) << json_lines(10'000, 2'000);
  std::ofstream(path("in/c.jsonl")) << json_lines(1'000, 3'000);
}

void PrepareKillTest::killed_at_any_moment_it_ends_with_the_same_bytes_data() {
  QTest::addColumn<int>("threads");
  QTest::newRow("one thread") << 1;
  QTest::newRow("two threads") << 2;
}

void PrepareKillTest::killed_at_any_moment_it_ends_with_the_same_bytes() {
  QFETCH(const int, threads);
  const auto count = static_cast<std::size_t>(threads);
  const Path left_alone = path("whole-" + std::to_string(threads)), killed = path("killed-" + std::to_string(threads));
  const auto began = std::chrono::steady_clock::now();
  QVERIFY(prepare_dataset({path("in")}, left_alone, options_of(count), {}).ok());
  const auto took = std::chrono::steady_clock::now() - began;

  // Moments spread over more than all of the work, because what a kill leaves undone is done again.
  std::mt19937 random(static_cast<unsigned>(threads));
  std::uniform_real_distribution<double> part(0, 2.0 / kKills);
  int kills = 0;
  for (int tries = 0; kills < kKills && tries < 10 * kKills; ++tries) {
    QProcess child;
    child.start(QCoreApplication::applicationFilePath(),
                {kPrepare, QString::fromStdString(path("in").string()), QString::fromStdString(killed.string()),
                 QString::number(threads)});
    QVERIFY(child.waitForStarted());
    std::this_thread::sleep_for(took * part(random));
    child.kill();
    QVERIFY(child.waitForFinished());
    if (child.exitStatus() == QProcess::CrashExit) {
      ++kills;
      continue;
    }
    // It came to its end before: the rest of the kills take another.
    QCOMPARE(child.exitCode(), 0);
    QCOMPARE(files_in(killed), files_in(left_alone));
    std::filesystem::remove_all(killed);
  }
  QCOMPARE(kills, kKills);
  if (!std::filesystem::exists(killed)) {
    const auto ended = prepare_dataset({path("in")}, killed, options_of(count), {});
    QVERIFY2(ended.ok(), ended.ok() ? "" : ended.error().message.c_str());
  }
  QCOMPARE(files_in(killed), files_in(left_alone));
  QCOMPARE(files_in(killed), files_in(path("whole-1")));  // whatever the number of threads
}

int main(int argc, char** argv) {
  if (argc == 5 && std::string_view(argv[1]) == kPrepare) {
    return prepare_dataset({argv[2]}, argv[3], options_of(std::stoul(argv[4])), {}).ok() ? 0 : 1;
  }
  QCoreApplication app(argc, argv);
  PrepareKillTest test;
  return QTest::qExec(&test, argc, argv);
}
#include "prepare_kill_test.moc"
