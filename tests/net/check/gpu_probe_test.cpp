// The child that asks the GPUs: with a fake NVML, and as a fake program that hangs, crashes and lies.
#include "net/check/gpu_probe.h"

#include <sys/stat.h>
#include <sys/wait.h>

#include <QTemporaryDir>
#include <QtTest>
#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "net/check/judge.h"
#include "net/check/nvml.h"
#include "tests/fakes/patience.h"

using namespace atl;
using namespace std::chrono_literals;

namespace {

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// Where the owner asked for GPUs, as else what is wrong with them is a warning.
Verdict verdict_of(const std::string& row, const GpuFacts& gpu, DeviceChoice device = DeviceChoice::kGpu) {
  NodeFacts facts;
  facts.device = device;
  facts.gpu = gpu;
  return judge_row(*find_rule(row), facts, {}).verdict;
}

}  // namespace

class GpuProbeTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void nvml_is_read_through_its_own_functions();
  void what_nvml_cannot_do_is_told_data();
  void what_nvml_cannot_do_is_told();
  void a_machine_without_nvml_has_no_driver();
  void what_cards_do_is_read_over_time();
  void a_sample_that_cannot_be_is_refused_data();
  void a_sample_that_cannot_be_is_refused();
  void a_driver_that_hangs_or_crashes_is_a_failed_row_data();
  void a_driver_that_hangs_or_crashes_is_a_failed_row();
  void a_probe_that_measures_all_is_believed();
  void a_probe_that_goes_wrong_fails_its_row_data();
  void a_probe_that_goes_wrong_fails_its_row();
  void libraries_that_are_missing_are_named();
  void libraries_that_do_not_load_are_missing();
  void what_a_killed_probe_started_dies_with_it();
  void a_check_that_is_cut_short_ends_the_probe();
  void a_build_without_gpu_says_why_it_measures_nothing();

 private:
  GpuProbe fake(const std::string& script) {
    const std::string path = directory_.filePath("probe.sh").toStdString();
    std::ofstream(path) << "#!/bin/sh\n" << script << "\n";
    ::chmod(path.c_str(), 0755);
    return {.program = path, .nvml = {}, .list_time = 500ms, .measure_time = 500ms};
  }
  GpuFacts two_cards() { return read_nvml(FAKE_NVML_LIBRARY); }

  QTemporaryDir directory_;
  AbortSignal abort_;
};

void GpuProbeTest::nvml_is_read_through_its_own_functions() {
  qunsetenv("FAKE_NVML");
  const GpuFacts gpu = two_cards();

  QVERIFY2(gpu.problem.empty(), gpu.problem.c_str());
  QVERIFY(gpu.driver_found);
  QCOMPARE(gpu.driver, std::string("580.95.05"));
  QCOMPARE(gpu.cuda_version, 13000u);
  QCOMPARE(gpu.devices.size(), std::size_t{2});
  QCOMPARE(gpu.devices[0].name, std::string("NVIDIA H100 80GB HBM3"));
  QCOMPARE(gpu.devices[0].memory_bytes, std::uint64_t{85'520'809'984});
  QCOMPARE(gpu.devices[0].uncorrected_errors, std::optional<std::uint64_t>(0));
  QCOMPARE(gpu.devices[1].uncorrected_errors, std::optional<std::uint64_t>(3));
  QVERIFY(gpu.devices[1].remap_pending.value() && !gpu.devices[1].remap_failed.value());
  QCOMPARE(gpu.devices[1].celsius, std::optional<double>(85));
  QVERIFY(!gpu.devices[0].throttled && gpu.devices[1].throttled);
  QCOMPARE(gpu.devices[0].pcie_generation, 5u);
  QCOMPARE(gpu.devices[0].nvlinks, 0u);  // the function is missing
}

void GpuProbeTest::what_nvml_cannot_do_is_told_data() {
  QTest::addColumn<QByteArray>("mode");
  QTest::addColumn<QByteArray>("says");
  QTest::newRow("mismatch") << QByteArray("mismatch") << QByteArray("version mismatch");
  QTest::newRow("a lost card") << QByteArray("lost") << QByteArray("reach GPU 1: GPU is lost");
  QTest::newRow("too many") << QByteArray("many") << QByteArray("100000 GPUs");
}

void GpuProbeTest::what_nvml_cannot_do_is_told() {
  QFETCH(const QByteArray, mode);
  QFETCH(const QByteArray, says);
  qputenv("FAKE_NVML", mode);

  const GpuFacts gpu = two_cards();

  QVERIFY2(contains(gpu.problem, says.toStdString()), gpu.problem.c_str());
  QVERIFY(gpu.devices.empty());
  QCOMPARE(verdict_of("gpu.driver", gpu), Verdict::kFail);
  qputenv("FAKE_NVML", "endless name");
  QVERIFY(two_cards().devices.at(0).name.size() <= 128);
}

void GpuProbeTest::a_machine_without_nvml_has_no_driver() {
  const GpuFacts missing = read_nvml("/nowhere/libnvidia-ml.so.1");
  QVERIFY(!missing.driver_found && contains(missing.problem, "/nowhere"));
  qputenv("FAKE_NVML", "none");

  const GpuFacts none = two_cards();

  QVERIFY(none.driver_found && none.devices.empty() && none.problem.empty());
  QCOMPARE(verdict_of("gpu.model", none, DeviceChoice::kAuto), Verdict::kSkip);
}

void GpuProbeTest::what_cards_do_is_read_over_time() {
  qunsetenv("FAKE_NVML");
  const QTemporaryDir directory;
  qputenv("FAKE_NVML_DIR", directory.path().toUtf8());
  const auto no_directory = qScopeGuard([] { qunsetenv("FAKE_NVML_DIR"); });
  std::ofstream(directory.filePath("computing.1").toStdString()) << "4711 12000\n";
  std::ofstream(directory.filePath("drawing.1").toStdString()) << "4711 12000\n815 150\n";
  std::vector<std::vector<GpuReading>> told;

  const std::string problem = watch_gpus(
      20ms,
      [&](const std::vector<GpuReading>& gpus) {
        told.push_back(gpus);
        return told.size() < 2;
      },
      FAKE_NVML_LIBRARY);

  QVERIFY2(problem.empty(), problem.c_str());
  QCOMPARE(told.size(), std::size_t{2});
  const GpuSample& first = told[0].at(0).now;
  QCOMPARE(first.name, std::string("NVIDIA H100 80GB HBM3"));
  QCOMPARE(first.utilisation, std::optional(0.07));
  QCOMPARE(first.memory_bytes, std::optional(1e6));
  QCOMPARE(first.power_watts, std::optional(612.5));
  QCOMPARE(first.power_limit_watts, std::optional(700.0));
  QCOMPARE(first.temperature_celsius, std::optional(40.0));
  QCOMPARE(first.sm_clock_hertz, std::optional(1.98e9));
  QVERIFY(first.throttling.empty());  // it is idle
  QVERIFY(!told[0][1].now.nvlink_bytes_per_second && !told[1][0].now.nvlink_bytes_per_second);
  const GpuSample& second = told[1].at(1).now;
  QCOMPARE(second.throttling, std::string("heat"));
  QCOMPARE(second.ecc_errors, std::optional<std::uint64_t>(3));
  QVERIFY(second.nvlink_bytes_per_second && *second.nvlink_bytes_per_second > 0);
  // At least 20 ms for four times 1 MiB: the two cards' readings count the fake's both links up.
  QVERIFY(*second.nvlink_bytes_per_second <= 4.0 * (1 << 20) / 0.02);
  QVERIFY(told[1][0].processes.empty());
  QCOMPARE(told[1][1].processes, (std::vector<GpuProcess>{{4711, 12e9}, {815, 150e6}}));  // each once
  const auto read = parse_gpu_readings(nlohmann::json({{"gpus", to_json(told[1])}}).dump());
  QVERIFY(read.ok());
  QCOMPARE(to_json(*read).dump(), to_json(told[1]).dump());
  QCOMPARE(read->at(1).now.index, 1u);  // its place in the list
  QVERIFY(contains(watch_gpus(
                       20ms, [](const auto&) { return false; }, "/nowhere/libnvidia-ml.so.1"),
                   "/nowhere"));
}

void GpuProbeTest::a_sample_that_cannot_be_is_refused_data() {
  QTest::addColumn<QByteArray>("line");
  QTest::addColumn<int>("code");
  const int wrong = static_cast<int>(ErrorCode::kProtocol);
  QTest::newRow("nothing") << QByteArray() << wrong;
  QTest::newRow("no list") << QByteArray(R"({"gpus": 7})") << wrong;
  QTest::newRow("a card that is none") << QByteArray(R"({"gpus": [7]})") << wrong;
  QTest::newRow("a card without a name") << QByteArray(R"({"gpus": [{}]})") << wrong;
  QTest::newRow("a negative figure") << QByteArray(R"({"gpus": [{"name": "H100", "power_watts": -1}]})") << wrong;
  QTest::newRow("a text for a figure") << QByteArray(R"({"gpus": [{"name": "H100", "power_watts": "1"}]})") << wrong;
  QTest::newRow("no processes") << QByteArray(R"({"gpus": [{"name": "H100", "processes": 7}]})") << wrong;
  QTest::newRow("a process without a number")
      << QByteArray(R"({"gpus": [{"name": "H100", "processes": [{"memory_bytes": 1}]}]})") << wrong;
  QTest::newRow("a process with less than nothing")
      << QByteArray(R"({"gpus": [{"name": "H100", "processes": [{"pid": 1, "memory_bytes": -1}]}]})") << wrong;
  QTest::newRow("more than there can be")
      << QByteArray(R"({"gpus": [)") + QByteArray(R"({"name": "H100"},)").repeated(64) + R"({"name": "H100"}]})"
      << wrong;
  QTest::newRow("a problem") << QByteArray(R"({"problem": "GPU is lost"})") << static_cast<int>(ErrorCode::kNotFound);
}

void GpuProbeTest::a_sample_that_cannot_be_is_refused() {
  QFETCH(const QByteArray, line);
  QFETCH(const int, code);

  const auto read = parse_gpu_readings(line.toStdString());

  QVERIFY(!read.ok());
  QCOMPARE(static_cast<int>(read.error().code), code);
}

void GpuProbeTest::a_driver_that_hangs_or_crashes_is_a_failed_row_data() {
  QTest::addColumn<QByteArray>("mode");
  QTest::addColumn<QByteArray>("says");
  QTest::newRow("well") << QByteArray() << QByteArray();
  QTest::newRow("hangs") << QByteArray("hang") << QByteArray("does not answer");
  QTest::newRow("crashes") << QByteArray("crash") << QByteArray("crashed");
}

void GpuProbeTest::a_driver_that_hangs_or_crashes_is_a_failed_row() {
  QFETCH(const QByteArray, mode);
  QFETCH(const QByteArray, says);
  qputenv("FAKE_NVML", mode);
  const GpuProbe probe{.program = ATOLL_BIN_DIR "/atoll-gpu-probe",
                       .nvml = FAKE_NVML_LIBRARY,
                       .list_time = mode == "hang" ? 500ms : 20'000ms};

  const GpuFacts gpu = list_gpus(probe, abort_);

  if (says.isEmpty()) {
    QCOMPARE(gpu.devices.size(), std::size_t{2});
    return;
  }
  QVERIFY2(contains(gpu.problem, says.toStdString()), gpu.problem.c_str());
  QCOMPARE(verdict_of("gpu.driver", gpu), Verdict::kFail);
  QCOMPARE(verdict_of("gpu.model", gpu, DeviceChoice::kAuto), Verdict::kSkip);
}

const char* const kBf16 = R"(echo '{"begin":"gpu.bf16"}'
echo '{"gpu":0,"bf16_flops":6.1e14,"bf16_correct":true}'
echo '{"gpu":1,"bf16_flops":6.2e14,"bf16_correct":true}'
echo '{"begin":"gpu.hbm"}'
)";

void GpuProbeTest::a_probe_that_measures_all_is_believed() {
  qunsetenv("FAKE_NVML");
  GpuFacts gpu = two_cards();

  GpuProbe probe = fake(std::string(kBf16) + R"(echo '{"gpu":0,"hbm_bytes_per_second":2.8e12}'
echo '{"gpu":1,"hbm_bytes_per_second":2.7e12}'
echo '{"begin":"gpu.pcie"}'
echo '{"gpu":0,"pcie_bytes_per_second":5e10}'
echo '{"gpu":1,"pcie_bytes_per_second":1e10}'
echo '{"begin":"gpu.nvlink"}'
echo '{"done":true}')");
  probe.measure_time = 20s;
  measure_gpus(probe, abort_, gpu);

  QVERIFY2(gpu.failed_row.empty(), gpu.failed_how.c_str());
  QCOMPARE(verdict_of("gpu.bf16", gpu), Verdict::kPass);
  QCOMPARE(verdict_of("gpu.spread", gpu), Verdict::kPass);
  QCOMPARE(verdict_of("gpu.hbm", gpu), Verdict::kPass);
  QCOMPARE(verdict_of("gpu.pcie", gpu), Verdict::kFail);
  QCOMPARE(verdict_of("gpu.nvlink", gpu), Verdict::kSkip);
}

void GpuProbeTest::a_probe_that_goes_wrong_fails_its_row_data() {
  QTest::addColumn<QByteArray>("then");  // after bf16 was measured and gpu.hbm begun
  QTest::addColumn<QByteArray>("says");
  QTest::newRow("hangs") << QByteArray("sleep 600") << QByteArray("hang");
  QTest::newRow("hangs and ignores SIGTERM") << QByteArray("trap '' TERM; sleep 600") << QByteArray("hang");
  QTest::newRow("crashes") << QByteArray("kill -SEGV $$") << QByteArray("crashed");
  QTest::newRow("ends too early") << QByteArray("exit 0") << QByteArray("before it was done");
  QTest::newRow("complains") << QByteArray("echo 'no memory' >&2; exit 1") << QByteArray("no memory");
  QTest::newRow("tells an error") << QByteArray(R"(echo '{"error":"an illegal address"}')")
                                  << QByteArray("illegal address");
  QTest::newRow("no JSON") << QByteArray("echo nonsense; echo '{\"done\":true}'") << QByteArray("not understood");
  QTest::newRow("a card too many") << QByteArray(R"(echo '{"gpu":7,"hbm_bytes_per_second":1}'; echo '{"done":true}')")
                                   << QByteArray("NVML does not know");
  QTest::newRow("a negative rate") << QByteArray(R"(echo '{"gpu":0,"hbm_bytes_per_second":-1}'; echo '{"done":true}')")
                                   << QByteArray("no number of 0 or more");
  QTest::newRow("an unknown row") << QByteArray(R"(echo '{"begin":"ram"}'; echo '{"done":true}')")
                                  << QByteArray("unknown row");
  QTest::newRow("without end") << QByteArray("while :; do echo 0123456789012345678901234567890123456789; done")
                               << QByteArray("");  // floods: cut off, or not understood
}

void GpuProbeTest::a_probe_that_goes_wrong_fails_its_row() {
  QFETCH(const QByteArray, then);
  QFETCH(const QByteArray, says);
  qunsetenv("FAKE_NVML");
  GpuFacts gpu = two_cards();
  GpuProbe probe = fake(kBf16 + then.toStdString());
  probe.measure_time = then.contains("sleep") ? 1s : 20s;

  measure_gpus(probe, abort_, gpu);

  QCOMPARE(gpu.failed_row, std::string("gpu.hbm"));
  QVERIFY2(contains(gpu.failed_how, says.toStdString()), gpu.failed_how.c_str());
  QCOMPARE(verdict_of("gpu.bf16", gpu), Verdict::kPass);  // what was measured before holds
  QCOMPARE(verdict_of("gpu.hbm", gpu), Verdict::kFail);
  QCOMPARE(verdict_of("gpu.pcie", gpu), Verdict::kSkip);
}

void GpuProbeTest::libraries_that_are_missing_are_named() {
  GpuFacts none, some, all, nonsense;
  for (GpuFacts* facts : {&some, &all, &nonsense}) facts->devices.resize(1);

  find_gpu_libraries({.program = "/nowhere/probe", .nvml = {}}, abort_, none);
  find_gpu_libraries(fake(R"(echo '{"missing":[{"name":"NCCL","why":"not in /x"},{"name":"cuFile","why":"y"}]}')"),
                     abort_, some);
  find_gpu_libraries(fake(R"(echo '{"missing":[]}')"), abort_, all);
  find_gpu_libraries(fake(R"(echo '{"missing":7}')"), abort_, nonsense);

  QVERIFY(!none.libraries_found && none.libraries_missing.empty());  // without cards nobody asks
  QCOMPARE(some.libraries_found, std::optional(false));
  QCOMPARE(some.libraries_missing, std::string("NCCL, cuFile (not in /x)"));
  QCOMPARE(all.libraries_found, std::optional(true));
  QVERIFY(!nonsense.libraries_found);
  QVERIFY2(contains(nonsense.libraries_missing, "cannot be tried"), nonsense.libraries_missing.c_str());
  QCOMPARE(verdict_of("gpu.libraries", some), Verdict::kWarn);
  QCOMPARE(verdict_of("gpu.libraries", nonsense), Verdict::kSkip);
}

void GpuProbeTest::libraries_that_do_not_load_are_missing() {
  const auto wheel = std::filesystem::path(directory_.path().toStdString()) / "nvidia" / "nccl" / "lib";
  std::filesystem::create_directories(wheel);
  std::ofstream(wheel / "libnccl.so.2") << "half of a download";
  qputenv("ATOLL_LIBTORCH", directory_.path().toUtf8());
  GpuFacts gpu;
  gpu.devices.resize(1);

  find_gpu_libraries({.program = ATOLL_BIN_DIR "/atoll-gpu-probe", .nvml = {}}, abort_, gpu);

  qunsetenv("ATOLL_LIBTORCH");
  QCOMPARE(gpu.libraries_found, std::optional(false));
  QVERIFY2(contains(gpu.libraries_missing, "NCCL"), gpu.libraries_missing.c_str());
}

void GpuProbeTest::what_a_killed_probe_started_dies_with_it() {
  const std::string pid_file = directory_.filePath("pid").toStdString();
  GpuFacts gpu;
  gpu.devices.resize(1);

  measure_gpus(fake("sleep 600 & echo $! > " + pid_file + "; wait"), abort_, gpu);

  pid_t pid = 0;
  std::ifstream(pid_file) >> pid;
  QVERIFY(pid > 0);
  QTRY_VERIFY(::kill(pid, 0) != 0 || [&] {  // gone, or a zombie that nobody has reaped yet
    std::string state;
    std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
    std::getline(stat, state);
    return contains(state, ") Z");
  }());
}

void GpuProbeTest::a_check_that_is_cut_short_ends_the_probe() {
  GpuFacts gpu;
  gpu.devices.resize(1);
  GpuProbe probe = fake("sleep 600");
  probe.measure_time = 600s;
  AbortSignal abort;
  const std::jthread interrupter([&] {
    std::this_thread::sleep_for(50ms);
    abort.raise("interrupted");
  });

  measure_gpus(probe, abort, gpu);

  QVERIFY(gpu.failed_row.empty());
  QVERIFY(!gpu.not_measured.empty());
}

void GpuProbeTest::a_build_without_gpu_says_why_it_measures_nothing() {
  qunsetenv("FAKE_NVML");
  GpuFacts gpu = two_cards();  // of which CUDA knows nothing on a machine without

  measure_gpus({.program = ATOLL_BIN_DIR "/atoll-gpu-probe", .nvml = {}, .measure_time = 60s, .matmul_seconds = 0.1},
               abort_, gpu);

  const Verdict verdict = verdict_of("gpu.bf16", gpu);
  if (verdict == Verdict::kPass || verdict == Verdict::kWarn) QSKIP("this machine has GPUs");
  QVERIFY(!gpu.failed_how.empty() || !gpu.not_measured.empty());
}

QTEST_APPLESS_MAIN(GpuProbeTest)
#include "gpu_probe_test.moc"
