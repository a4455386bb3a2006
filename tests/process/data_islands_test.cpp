// A run of two islands that both need all of its data, again and again: its hub serves each chunk about once, for they
// give them to each other.
#include <QtTest/QTest>
#include <csignal>
#include <fstream>
#include <regex>

#include "net/base/file.h"
#include "net/control/home.h"
#include "net/data/tree_builder.h"
#include "tests/process/agent_service.h"
#include "tests/process/run_parts.h"
#include "tests/process/scene.h"

using namespace atl;
using namespace atl::test;

namespace {

constexpr std::uint32_t kSmallChunk = 4096;

struct Fetched {
  int of_mirrors = 0, of_islands = 0, of_hub = 0;
  int all() const { return of_mirrors + of_islands + of_hub; }
};

}  // namespace

class DataIslandsTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void the_hub_serves_each_chunk_about_once();

 private:
  std::unique_ptr<QProcess> join(const std::string& name) {
    return scene_.start({"join", scene_.invite(), "--yes", "--threads", "1", "--listen", "127.0.0.1:0", "--home",
                         scene_.path(name).string()});
  }
  // Whole chunks in its cache.
  std::size_t chunks_of(const std::string& name) const {
    std::size_t count = 0;
    std::error_code gone;
    for (std::filesystem::recursive_directory_iterator at(IslandHome{scene_.path(name)}.data(), gone), end;
         !gone && at != end; at.increment(gone)) {
      std::error_code ignored;
      count += at->is_regular_file(ignored) && at->file_size(ignored) == kSmallChunk ? 1 : 0;
    }
    return count;
  }
  // What its trainers said when they ended.
  Fetched fetched_by(const std::string& name) const {
    Fetched fetched;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(scene_.path(name))) {
      if (entry.path().filename() != "trainer.log") continue;
      const std::string log = require(read_file(entry.path()));
      const std::regex said("chunks_of_mirrors=(\\d+) chunks_of_islands=(\\d+) chunks_of_hub=(\\d+)");
      for (std::sregex_iterator found(log.begin(), log.end(), said), end; found != end; ++found) {
        fetched.of_mirrors += std::stoi((*found)[1]);
        fetched.of_islands += std::stoi((*found)[2]);
        fetched.of_hub += std::stoi((*found)[3]);
      }
    }
    return fetched;
  }

  Scene scene_;
};

void DataIslandsTest::the_hub_serves_each_chunk_about_once() {
  std::string text;
  for (int i = 0; text.size() < 48 * 1024; ++i) text += "int f" + std::to_string(i) + "() { return 7; }\n";
  QVERIFY(write_file_atomically(scene_.path("code.txt"), text, FileMode::kPublic).ok());
  const std::string code = scene_.path("code").string();
  QCOMPARE(scene_.run({"data", "prepare", scene_.path("code.txt").string(), "--output", code}).exit_code, 0);
  QCOMPARE(scene_.run({"data", "index", code, "--chunk-bytes", std::to_string(kSmallChunk)}).exit_code, 0);
  const ChunkTreeIndex index = require(read_tree_head(scene_.path("code") / kTrainTree)).index;
  const std::size_t whole = index.tokens / index.chunk_tokens();
  QVERIFY(whole >= 16);
  scene_.make_hub(
      "hub", {"--data", code, "--weights", "code=1", "--inner-steps", "2", "--batch", "8", "--validate-every", "0"});
  scene_.serve_hub();

  const auto first = join("first");
  QVERIFY(wait_for([&] { return chunks_of("first") >= whole / 2; }));
  const auto second = join("second");
  QVERIFY(wait_for([&] { return chunks_of("first") == whole && chunks_of("second") == whole; }));
  for (QProcess* island : {first.get(), second.get()}) ::kill(static_cast<pid_t>(island->processId()), SIGINT);
  outcome_of(*first);
  outcome_of(*second);

  const Fetched by_first = fetched_by("first"), by_second = fetched_by("second");
  const auto chunks = static_cast<int>(whole);
  const std::string figures = "of the hub " + std::to_string(by_first.of_hub) + " and " +
                              std::to_string(by_second.of_hub) + ", of the other " +
                              std::to_string(by_first.of_islands) + " and " + std::to_string(by_second.of_islands) +
                              ", of " + std::to_string(chunks);
  qInfo("%s", figures.c_str());
  QVERIFY2(by_first.all() >= chunks && by_second.all() >= chunks, figures.c_str());
  QVERIFY2(by_first.of_hub + by_second.of_hub <= chunks + chunks / 2, figures.c_str());  // without: twice as many
}

QTEST_GUILESS_MAIN(DataIslandsTest)
#include "data_islands_test.moc"
