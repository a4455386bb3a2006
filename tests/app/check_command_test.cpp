// `atoll check` in-process: rows, fixes, exit codes, JSON; on GPUs that are a script.
#include <sys/stat.h>

#include <QtTest>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "net/check/check_row.h"
#include "net/check/judge.h"
#include "net/check/report_file.h"
#include "net/control/home.h"
#include "net/disk/checkpoint_directory.h"
#include "tests/app/cli_run.h"

using namespace atl;
using atl::test::CliOutcome;
using atl::test::CliRun;
using atl::test::contains;

namespace {

// From now on the GPU probe is this script.
void fake_gpu_probe(const CliRun& atoll, const std::string& script) {
  const auto path = atoll.path("gpu-probe.sh");
  std::ofstream(path) << "#!/bin/sh\n" << script << "\n";
  ::chmod(path.c_str(), 0755);
  qputenv("ATOLL_GPU_PROBE", QByteArray::fromStdString(path.string()));
}

const char* const kNoGpu =
    R"(echo '{"cuda_version":0,"devices":[],"driver":"","driver_found":false,"failed_how":"","failed_row":"","not_measured":"","problem":""}')";
const char* const kBroken =
    R"(echo '{"cuda_version":0,"devices":[],"driver":"","driver_found":true,"failed_how":"","failed_row":"","not_measured":"","problem":"NVML does not start"}')";
// ECC off is a warning, whatever else this machine is.
const char* const kEccOff =
    R"(echo '{"cuda_version":13000,"devices":[{"name":"NVIDIA H100 80GB HBM3","memory_bytes":85520809984,"ecc":false,"throttled":false,"pcie_generation":5,"pcie_lanes":16,"nvlinks":0}],"driver":"580.95.05","driver_found":true,"failed_how":"","failed_row":"","not_measured":"","problem":""}')";

// island.device, as the environment has it.
struct Configured {
  explicit Configured(const char* device) { qputenv("ATOLL_ISLAND_DEVICE", device); }
  ~Configured() { qunsetenv("ATOLL_ISLAND_DEVICE"); }
};

}  // namespace

class CheckCommandTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void a_row_that_fails_is_exit_code_6_and_has_a_fix();
  void gpus_that_are_broken_fail_only_who_asked_for_them_data();
  void gpus_that_are_broken_fail_only_who_asked_for_them();
  void warnings_are_exit_code_7_only_with_strict();
  void json_is_the_report();
  void a_machine_without_gpu_is_told_what_it_can_do();
  void gpus_that_lie_idle_and_what_they_lack_are_told();
  void nothing_is_left_where_no_run_was_joined();
  void quick_and_full_exclude_each_other();
  void a_member_is_checked_for_its_run_and_the_report_is_kept();
  void who_holds_a_state_of_the_run_comes_back_to_it_whatever_the_check_says();
  void who_holds_an_invite_is_checked_for_its_run();
  void who_holds_an_invite_learns_how_near_the_hub_is_and_keeps_the_invite();
  void a_join_stops_at_a_row_that_fails_before_the_invite_is_used();
  void who_left_the_choice_joins_with_gpus_that_are_broken_and_is_told();
};

void CheckCommandTest::a_row_that_fails_is_exit_code_6_and_has_a_fix() {
  CliRun atoll;
  fake_gpu_probe(atoll, kBroken);
  const Configured asked("gpu");

  const CliOutcome outcome = atoll({"check", "--quick"});

  QCOMPARE(outcome.exit_code, static_cast<int>(kExitCheckFailed));
  QVERIFY2(contains(outcome.out, "FAIL gpu.driver"), outcome.out.c_str());
  QVERIFY(contains(outcome.out, "fix: run 'nvidia-smi'"));
  QVERIFY(contains(outcome.out, "(exit 6)"));
  QVERIFY(outcome.err.empty());
}

void CheckCommandTest::gpus_that_are_broken_fail_only_who_asked_for_them_data() {
  QTest::addColumn<QByteArray>("configured");
  QTest::addColumn<QByteArray>("says");
  QTest::addColumn<bool>("fails");
  QTest::newRow("not configured") << QByteArray() << QByteArray("WARN gpu.driver") << false;
  QTest::newRow("auto") << QByteArray("auto") << QByteArray("WARN gpu.driver") << false;
  QTest::newRow("processor") << QByteArray("processor") << QByteArray("skip gpu.driver") << false;
  QTest::newRow("gpu") << QByteArray("gpu") << QByteArray("FAIL gpu.driver") << true;
}

void CheckCommandTest::gpus_that_are_broken_fail_only_who_asked_for_them() {
  QFETCH(const QByteArray, configured);
  QFETCH(const QByteArray, says);
  QFETCH(const bool, fails);
  CliRun atoll;
  fake_gpu_probe(atoll, kBroken);
  const Configured device(configured);
  if (configured.isEmpty()) qunsetenv("ATOLL_ISLAND_DEVICE");

  const CliOutcome outcome = atoll({"check", "--quick"});

  QVERIFY2(contains(outcome.out, says.toStdString()), outcome.out.c_str());
  QCOMPARE(contains(outcome.out, "FAIL gpu"), fails);
}

void CheckCommandTest::warnings_are_exit_code_7_only_with_strict() {
  CliRun atoll;
  fake_gpu_probe(atoll, kEccOff);

  const CliOutcome lenient = atoll({"check", "--quick"});
  const CliOutcome strict = atoll({"check", "--quick", "--strict"});

  QVERIFY2(contains(lenient.out, "WARN gpu.ecc"), lenient.out.c_str());
  if (contains(lenient.out, "FAIL")) QSKIP("this machine fails a row of its own");
  QCOMPARE(lenient.exit_code, 0);
  QCOMPARE(strict.exit_code, static_cast<int>(kExitCheckWarnings));
}

void CheckCommandTest::json_is_the_report() {
  CliRun atoll;
  fake_gpu_probe(atoll, kNoGpu);

  const CliOutcome outcome = atoll({"check", "--json"});

  const auto report = CheckReport::from_json(outcome.out);
  QVERIFY2(report.ok(), report.ok() ? "" : report.error().message.c_str());
  QVERIFY(report->full);
  QCOMPARE(report->rows.size(), check_rules().size());
  QCOMPARE(nlohmann::json::parse(outcome.out)["counts"]["skip"].get<std::size_t>(), report->count(Verdict::kSkip));
}

void CheckCommandTest::a_machine_without_gpu_is_told_what_it_can_do() {
  CliRun atoll;
  fake_gpu_probe(atoll, kNoGpu);

  const CliOutcome outcome = atoll({"check", "--quick"});

  QVERIFY2(contains(outcome.out, "no GPU: can train models of up to"), outcome.out.c_str());
  QVERIFY(contains(outcome.out, "skip net.rtt        no run was joined"));
}

void CheckCommandTest::gpus_that_lie_idle_and_what_they_lack_are_told() {
  CliRun atoll;
  fake_gpu_probe(
      atoll, std::string(R"([ "$1" = libraries ] && echo '{"missing":[{"name":"NCCL","why":"none"}]}' || )") + kEccOff);

  const CliOutcome outcome = atoll({"check", "--quick"});

  QVERIFY2(contains(outcome.out, "WARN gpu.libraries"), outcome.out.c_str());
  QVERIFY(contains(outcome.out, "fix: run installer/gpu_libraries.sh"));
  QVERIFY2(contains(outcome.out, "computes on the CPU and leaves GPUs idle"), outcome.out.c_str());
  QVERIFY(!contains(outcome.out, "the GPUs compute"));
}

void CheckCommandTest::nothing_is_left_where_no_run_was_joined() {
  CliRun atoll;
  fake_gpu_probe(atoll, kNoGpu);

  (void)atoll({"check", "--quick"});

  QVERIFY(!std::filesystem::exists(atoll.path("island")));
}

void CheckCommandTest::quick_and_full_exclude_each_other() {
  CliRun atoll;

  QCOMPARE(atoll({"check", "--quick", "--full"}).exit_code, static_cast<int>(kExitUsage));
}

void CheckCommandTest::a_member_is_checked_for_its_run_and_the_report_is_kept() {
  CliRun atoll;
  fake_gpu_probe(atoll, kNoGpu);
  const auto hub = atoll.start_hub();
  atoll.fake_trainer("exit 0");
  const CliOutcome joined = atoll({"join", atoll.invite, "--listen", "127.0.0.1:0"});
  QVERIFY2(joined.exit_code == 0, joined.err.c_str());
  QVERIFY2(contains(joined.out, "checked this machine for the run"), joined.out.c_str());

  const CliOutcome outcome = atoll({"check", "--json"});

  const auto report = CheckReport::from_json(outcome.out);
  QVERIFY2(report.ok(), outcome.err.c_str());
  QVERIFY(!report->run_id.empty());
  for (const char* row : {"ram", "disk.free", "disk.write", "net.rtt", "clock", "net.bandwidth", "net.inbound"}) {
    QVERIFY2(report->find(row)->verdict == Verdict::kPass, report->find(row)->text.c_str());
  }
  const auto kept = load_check(atoll.path("island"));
  QVERIFY(kept.ok() && kept->full && kept->run_id == report->run_id);
}

void CheckCommandTest::who_holds_an_invite_is_checked_for_its_run() {
  CliRun atoll;
  fake_gpu_probe(atoll, kNoGpu);
  const auto hub = atoll.start_hub();
  std::ofstream(atoll.path("invite.txt")) << atoll.invite;
  const std::vector<std::string> check{"check", "--quick", "--json"};
  std::vector<std::string> with_invite = check;
  with_invite.insert(with_invite.end(), {"--invite-file", atoll.path("invite.txt").string()});

  const auto alone = nlohmann::json::parse(atoll(check).out);
  const auto invited = nlohmann::json::parse(atoll(with_invite).out);

  const auto verdict = [](const nlohmann::json& report, const char* id) {
    const auto row = std::ranges::find_if(report["rows"], [&](const nlohmann::json& one) { return one["id"] == id; });
    return row == report["rows"].end() ? std::string() : (*row)["verdict"].get<std::string>();
  };
  for (const char* id : {"ram", "disk.free", "disk.write"}) {
    QCOMPARE(verdict(alone, id), std::string("skip"));
    QVERIFY2(verdict(invited, id) != "skip" && !verdict(invited, id).empty(), invited.dump().c_str());
  }
  QCOMPARE(verdict(invited, "net.bandwidth"), std::string("skip"));  // members alone may measure it
  QVERIFY(invited.value("run_id", "").empty());
  QVERIFY(!std::filesystem::exists(atoll.path("island") / "join.json"));
}

void CheckCommandTest::who_holds_an_invite_learns_how_near_the_hub_is_and_keeps_the_invite() {
  CliRun atoll;
  fake_gpu_probe(atoll, kNoGpu);
  const auto hub = atoll.start_hub();
  std::ofstream(atoll.path("invite.txt")) << atoll.invite;

  const CliOutcome outcome = atoll({"check", "--quick", "--invite-file", atoll.path("invite.txt").string()});

  QVERIFY2(contains(outcome.out, "PASS net.rtt"), outcome.out.c_str());
  QVERIFY(contains(outcome.out, "join first"));
  atoll.fake_trainer("exit 0");
  QCOMPARE(atoll({"join", atoll.invite}).exit_code, 0);  // it was not used up
}

void CheckCommandTest::a_join_stops_at_a_row_that_fails_before_the_invite_is_used() {
  CliRun atoll;
  fake_gpu_probe(atoll, kBroken);
  const auto hub = atoll.start_hub();
  atoll.fake_trainer("exit 0");

  const CliOutcome refused = atoll({"join", atoll.invite, "--yes", "--device", "gpu"});

  QCOMPARE(refused.exit_code, static_cast<int>(kExitCheckFailed));
  QVERIFY2(contains(refused.out, "FAIL gpu.driver"), refused.out.c_str());
  QVERIFY(!std::filesystem::exists(atoll.path("island") / "join.json"));
  const Configured asked("gpu");
  const CliOutcome configured = atoll({"join", atoll.invite, "--yes"});
  QCOMPARE(configured.exit_code, static_cast<int>(kExitCheckFailed));
  // What is said for this join counts, not what is configured.
  const CliOutcome without = atoll({"join", atoll.invite, "--listen", "127.0.0.1:0", "--yes", "--device", "processor"});
  QVERIFY2(without.exit_code == 0, without.out.c_str());
  QVERIFY2(!contains(without.out, "gpu.driver"), without.out.c_str());
}

void CheckCommandTest::who_left_the_choice_joins_with_gpus_that_are_broken_and_is_told() {
  CliRun atoll;
  fake_gpu_probe(atoll, kBroken);
  const auto hub = atoll.start_hub();
  atoll.fake_trainer("exit 0");

  const CliOutcome joined = atoll({"join", atoll.invite, "--listen", "127.0.0.1:0", "--yes"});

  QVERIFY2(joined.exit_code == 0, joined.out.c_str());
  QVERIFY2(contains(joined.out, "WARN gpu.driver"), joined.out.c_str());
  QVERIFY2(contains(joined.out, "the CPU computes in their place"), joined.out.c_str());
  QCOMPARE(load_join_file(atoll.path("island") / "join.json")->device, DeviceChoice::kAuto);
}

// No hub answers in no time.
void CheckCommandTest::who_holds_a_state_of_the_run_comes_back_to_it_whatever_the_check_says() {
  CliRun atoll;
  fake_gpu_probe(atoll, kNoGpu);
  std::ofstream(atoll.path("strict.json"))
      << R"({"model": "demo", "run": {"check": {"thresholds": {"net.rtt": {"pass": 0, "warn": 0}}}}})";
  const auto hub = atoll.start_hub("strict", {"--preset", atoll.path("strict.json").string()});
  atoll.fake_trainer("exit 0");
  const CliOutcome refused = atoll({"join", atoll.invite, "--listen", "127.0.0.1:0"});
  QCOMPARE(refused.exit_code, static_cast<int>(kExitCheckFailed));
  const CliOutcome again = atoll({"join"});
  QVERIFY2(again.exit_code == static_cast<int>(kExitCheckFailed), again.out.c_str());

  const IslandHome home{atoll.path("island")};
  std::filesystem::create_directories(home.checkpoint());
  std::filesystem::copy(ATOLL_TEST_DATA_DIR "/disk/outer.state", home.checkpoint() / kOuterStateFile);
  const CliOutcome back = atoll({"join"});

  QVERIFY2(back.exit_code == 0, back.err.c_str());
  QVERIFY2(contains(back.out, "FAIL net.rtt"), back.out.c_str());
  QVERIFY2(contains(back.out, "goes on all the same"), back.out.c_str());
}

QTEST_GUILESS_MAIN(CheckCommandTest)
#include "check_command_test.moc"
