// What becomes of an island when its disk fails it: read-only, full, or with a damaged history. It says so in words,
// trains on where it can, goes on when the disk is well again, and loses nothing that was written.
#include <QtTest/QTest>
#include <algorithm>
#include <fstream>

#include "net/base/file.h"
#include "net/disk/kept_states.h"
#include "tests/process/agent_service.h"
#include "tests/process/local_run.h"
#include "tests/process/private_mounts.h"
#include "tests/process/program.h"

using namespace atl;
using namespace atl::test;

namespace {

constexpr std::uint64_t kDiskBytes = 32u << 20;

RunConfig run_config() {
  RunConfig run = small_run(1);
  run.inner_steps = 160;  // rounds.list tells of 500 rounds: more than there are
  return run;
}

ProgramOutcome atoll(const std::vector<std::string>& arguments) {
  return outcome_of(*start_atoll(arguments, QProcessEnvironment::systemEnvironment()));
}

std::string warning_in(const nlohmann::json& state) { return state["agent"].value("warning", ""); }
bool has(const std::string& text, const char* words) { return text.find(words) != std::string::npos; }

// The rounds in the island's history, which must follow each other without a gap.
std::vector<std::uint32_t> rounds_of(const AgentService& service) {
  const nlohmann::json answer = require(service.call("rounds.list", {{"limit", 500}}));
  std::vector<std::uint32_t> rounds;
  for (const nlohmann::json& round : answer["rounds"])
    rounds.insert(rounds.begin(), round["round"].get<std::uint32_t>());
  for (std::size_t i = 1; i < rounds.size(); ++i) {
    if (rounds[i] != rounds[i - 1] + 1) qFatal("round %u is missing in the history", rounds[i - 1] + 1);
  }
  return rounds;
}

}  // namespace

class DiskFaultsTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void initTestCase() { no_mounts_ = enter_private_mounts(); }
  void a_home_that_is_read_only_is_said_and_trains_once_it_can_be_written();
  void a_state_directory_that_is_read_only_costs_records_and_no_training();
  void a_disk_that_fills_up_stops_no_training_and_loses_no_record();
  void a_history_that_is_damaged_at_the_start_is_set_aside();
  void a_history_that_is_damaged_while_it_is_written_costs_no_training();

 private:
  std::optional<std::string> no_mounts_;
};

void DiskFaultsTest::a_home_that_is_read_only_is_said_and_trains_once_it_can_be_written() {
  if (no_mounts_) QSKIP(no_mounts_->c_str());
  const LocalRun run(run_config());
  std::filesystem::create_directory(run.directory() / "islands");
  const SmallDisk disk(run.directory() / "islands", kDiskBytes);
  const IslandHome home = run.make_home("read-only");
  disk.set_read_only(true);

  for (const char* command : {"agent", "join"}) {
    const ProgramOutcome outcome = atoll({command, "--home", home.directory.string()});

    QVERIFY2(outcome.exit_code == 5, outcome.err.c_str());
    QVERIFY2(has(outcome.err, home.directory.c_str()) && has(outcome.err, "Read-only file system"),
             outcome.err.c_str());
    QVERIFY2(has(outcome.err, "choose another directory"), outcome.err.c_str());
  }
  disk.set_read_only(false);

  AgentService service(home);
  QVERIFY(service.wait_for_training());
}

void DiskFaultsTest::a_state_directory_that_is_read_only_costs_records_and_no_training() {
  if (no_mounts_) QSKIP(no_mounts_->c_str());
  const LocalRun run(run_config());
  const IslandHome home = run.make_home("no records");
  const std::filesystem::path state = agent_home_in(home.directory).state;
  std::filesystem::create_directory(state);
  const SmallDisk disk(state, kDiskBytes);
  disk.set_read_only(true);

  AgentService service(home);
  QVERIFY(service.wait_for_training());

  QVERIFY(service.wait_until([](const nlohmann::json& now) { return has(warning_in(now), "Read-only file system"); }));
  const auto paused = service.call("pause");
  QVERIFY(paused.ok());
  QVERIFY(has(paused->value("warning", ""), "a restart of this machine forgets it"));
  QVERIFY(service.wait_until([](const nlohmann::json& now) { return now["state"] == "paused"; }));
  disk.set_read_only(false);
  QVERIFY(service.call("resume").ok());
  QVERIFY(service.wait_for_rounds(1));
  QVERIFY(service.wait_until([](const nlohmann::json& now) { return warning_in(now).empty(); }));
  QVERIFY(wait_for([&] { return !rounds_of(service).empty(); }));
}

void DiskFaultsTest::a_disk_that_fills_up_stops_no_training_and_loses_no_record() {
  if (no_mounts_) QSKIP(no_mounts_->c_str());
  const LocalRun run(run_config());
  std::filesystem::create_directory(run.directory() / "islands");
  const SmallDisk disk(run.directory() / "islands", kDiskBytes);
  const IslandHome home = run.make_home("full");
  AgentService service(home);
  QVERIFY(service.wait_for_training());
  QVERIFY(wait_for([&] { return !kept_states(home.checkpoint()).empty(); }));
  QVERIFY(wait_for([&] { return !rounds_of(service).empty(); }));
  const pid_t trainer = service.trainer();
  const std::uint32_t first = rounds_of(service).front();

  disk.fill();

  // Long enough for a checkpoint that cannot be written, too.
  QVERIFY(service.wait_for_rounds(12));
  QVERIFY(service.wait_until([](const nlohmann::json& now) {
    // Of an average, or of a snapshot, for which there is no room to begin with.
    const std::string error = now.value("error", "");
    return has(warning_in(now), "history is not written") && (has(error, "No space left") || has(error, "make room"));
  }));
  const ProgramOutcome status = atoll({"status", "--home", home.directory.string()});
  QVERIFY2(status.exit_code == 0 && has(status.out, "raining goes on"), status.out.c_str());
  QCOMPARE(atoll({"checkpoints", "verify", "--home", home.directory.string()}).exit_code, 0);
  const auto resumed = service.call("resume");
  QVERIFY(resumed.ok() && has(resumed->value("warning", ""), "No space left"));

  disk.free_space();

  QVERIFY(service.wait_until(
      [](const nlohmann::json& now) { return warning_in(now).empty() && now.value("error", "?").empty(); }));
  QVERIFY(service.wait_for_rounds(2));
  QCOMPARE(service.trainer(), trainer);
  const std::uint32_t committed = run.state().outer_step;
  QVERIFY(wait_for([&] { return rounds_of(service).back() + 1 >= committed; }));
  QCOMPARE(rounds_of(service).front(), first);
  QCOMPARE(service.end(), 0);
  QCOMPARE(atoll({"checkpoints", "verify", "--home", home.directory.string()}).exit_code, 0);
}

void DiskFaultsTest::a_history_that_is_damaged_at_the_start_is_set_aside() {
  const LocalRun run(run_config());
  const IslandHome home = run.make_home("damaged before");
  const AgentHome agent = agent_home_in(home.directory);
  std::filesystem::create_directory(agent.state);
  const std::string damaged(100'000, 'x');
  std::ofstream(agent.history()) << damaged;

  AgentService service(home);
  QVERIFY(service.wait_for_training());

  QVERIFY(service.wait_until([](const nlohmann::json& now) { return has(warning_in(now), "it was kept as "); }));
  const std::string warning = warning_in(service.state());
  QVERIFY2(has(warning, "Training is not affected"), warning.c_str());
  const auto begin = warning.find("it was kept as ") + std::string("it was kept as ").size();
  QCOMPARE(require(read_file(warning.substr(begin, warning.find(" and a new one") - begin))), damaged);
  QVERIFY(wait_for([&] { return !rounds_of(service).empty(); }));
}

void DiskFaultsTest::a_history_that_is_damaged_while_it_is_written_costs_no_training() {
  const LocalRun run(run_config());
  const IslandHome home = run.make_home("damaged meanwhile");
  AgentService service(home);
  QVERIFY(service.wait_for_training());
  QVERIFY(wait_for([&] { return !rounds_of(service).empty(); }));
  const pid_t trainer = service.trainer();
  const std::filesystem::path history = service.home().history();

  // What it writes to and what it wrote last.
  for (const std::string& path : {history.string(), history.string() + "-wal"}) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file << std::string(std::filesystem::file_size(path), 'x');
  }

  QVERIFY(service.wait_for_rounds(2));
  service.kill();  // at the latest the next one that opens it sees the damage
  QVERIFY(service.wait_until([&](const nlohmann::json& now) {
    const auto is_copy = [](const auto& file) { return has(file.path().filename().string(), ".damaged-"); };
    const std::filesystem::directory_iterator files(history.parent_path());
    return now["agent"]["trainer_pid"] == trainer && std::any_of(begin(files), end(files), is_copy);
  }));
  QVERIFY(service.wait_for_rounds(2));
  QVERIFY(wait_for([&] { return !rounds_of(service).empty(); }));
}

QTEST_GUILESS_MAIN(DiskFaultsTest)
#include "disk_faults_test.moc"
