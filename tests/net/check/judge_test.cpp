// Every row of the node check, on facts of a machine (tests/golden/check) with one figure changed: each threshold from
// both sides.
#include "net/check/judge.h"

#include <fmt/format.h>

#include <QtTest>
#include <nlohmann/json.hpp>

#include "net/base/file.h"
#include "net/check/run_needs.h"

using namespace atl;

namespace {

NodeFacts machine(const std::string& name) {
  const auto text = read_file(std::filesystem::path(ATOLL_TEST_DATA_DIR) / "check" / (name + ".json"));
  if (!text.ok()) qFatal("%s", text.error().message.c_str());
  auto facts = NodeFacts::from_json(*text);
  if (!facts.ok()) qFatal("%s", facts.error().message.c_str());
  return *facts;
}

CheckRow judge(const std::string& id, const NodeFacts& facts, const CheckPolicy& policy = {}) {
  const RowRule* rule = find_rule(id);
  if (rule == nullptr) qFatal("no row %s", id.c_str());
  return judge_row(*rule, facts, policy);
}

using Change = std::function<void(NodeFacts&)>;
constexpr Verdict kPass = Verdict::kPass, kWarn = Verdict::kWarn, kFail = Verdict::kFail, kSkip = Verdict::kSkip;

struct Case {
  const char* name;
  const char* row;
  Verdict verdict;
  Change change;
};

constexpr double kH100Flops = 989e12, kH100Memory = 3350e9;
const double kGen5 = 32e9 / 8 * 16 * 128 / 130 * 0.905;

Change bf16(double flops) {
  return [flops](NodeFacts& f) {
    for (GpuDevice& device : f.gpu.devices) device.bf16_flops = flops;
  };
}
Change hbm(double rate) {
  return [rate](NodeFacts& f) { f.gpu.devices[5].hbm_bytes_per_second = rate; };
}
Change pcie(double rate) {
  return [rate](NodeFacts& f) { f.gpu.devices[3].pcie_bytes_per_second = rate; };
}
Change spread(double fraction) {
  return [fraction](NodeFacts& f) {
    for (GpuDevice& device : f.gpu.devices) device.bf16_flops = 600e12;
    f.gpu.devices[2].bf16_flops = 600e12 * fraction;
  };
}
Change nvlink(double rate) {
  return [rate](NodeFacts& f) { f.gpu.all_reduce_bytes_per_second = rate; };
}
Change a100(double rate) {  // 300 GB/s of NVLink in place of 450
  return [rate](NodeFacts& f) {
    for (GpuDevice& device : f.gpu.devices) device.name = "NVIDIA A100-SXM4-80GB";
    f.gpu.all_reduce_bytes_per_second = rate;
  };
}
Change device(int gpu, const std::function<void(GpuDevice&)>& change) {
  return [gpu, change](NodeFacts& f) { change(f.gpu.devices[static_cast<std::size_t>(gpu)]); };
}
Change free_space(double bytes) {
  return [bytes](NodeFacts& f) { f.disk.free_bytes = static_cast<std::uint64_t>(bytes); };
}
Change checkpoint_in(double seconds) {
  return [seconds](NodeFacts& f) { f.disk.write_bytes_per_second = checkpoint_bytes(*f.run) / seconds; };
}
Change memory(double times) {
  return [times](NodeFacts& f) {
    f.host.ram_bytes = static_cast<std::uint64_t>(std::llround(times * static_cast<double>(f.run->bytes_beside_gpus)));
  };
}
Change cpu_for(double parameters) {
  return [parameters](NodeFacts& f) {
    f.gpu.devices.clear();
    f.run->parameters = static_cast<std::uint64_t>(parameters);
  };
}
Change sync_of(double fraction) {  // 14 islands; up is the slower direction
  return [fraction](NodeFacts& f) {
    f.run->inner_seconds = 1000;
    f.net.up_bytes_per_second = 2.0 * 13 / 14 * static_cast<double>(f.run->round_payload_bytes) / (fraction * 1000);
    f.net.down_bytes_per_second = 1e12;
  };
}
Change inbound(bool reached, unsigned islands, unsigned hidden) {
  return [=](NodeFacts& f) {
    f.net.dialled_back = reached;
    f.net.islands = islands;
    f.net.hidden_islands = hidden;
  };
}
Change xid(unsigned code, double age) {
  return [=](NodeFacts& f) { f.host.xids.push_back({code, age}); };
}

void idle(NodeFacts& f) { f.gpus_compute = false; }
Change libraries(std::optional<bool> found, bool compute = true) {
  return [=](NodeFacts& f) {
    f.gpus_compute = compute;
    f.gpu.libraries_found = found;
    f.gpu.libraries_missing = "NCCL (NCCL was not found)";
  };
}

std::vector<Case> gpu_cases() {
  const auto nothing = [](NodeFacts&) {};
  return {
      {"eight alike, listed", "gpu.model", kPass, nothing},
      {"unlisted", "gpu.model", kWarn,
       [](NodeFacts& f) {
         for (auto& d : f.gpu.devices) d.name = "NVIDIA Z1";
       }},
      {"mixed", "gpu.model", kFail, device(1, [](GpuDevice& d) { d.name = "NVIDIA H200"; })},
      {"none", "gpu.model", kSkip, [](NodeFacts& f) { f.gpu.devices.clear(); }},
      {"idle", "gpu.model", kWarn, idle},
      {"all there", "gpu.libraries", kPass, nothing},
      {"one missing", "gpu.libraries", kFail, libraries(false)},
      {"one missing that nothing would use", "gpu.libraries", kWarn, libraries(false, false)},
      {"not tried", "gpu.libraries", kSkip, libraries(std::nullopt)},
      {"no cards", "gpu.libraries", kSkip, [](NodeFacts& f) { f.gpu.devices.clear(); }},
      {"idle", "gpu.memory", kSkip, idle},
      {"fits", "gpu.memory", kPass,
       [](NodeFacts& f) { f.gpu.devices[4].memory_bytes = static_cast<std::uint64_t>(gpu_bytes(*f.run, 8)) + 1; }},
      {"does not fit", "gpu.memory", kFail,
       [](NodeFacts& f) { f.gpu.devices[4].memory_bytes = static_cast<std::uint64_t>(gpu_bytes(*f.run, 8)) - 1; }},
      {"no run", "gpu.memory", kSkip, [](NodeFacts& f) { f.run.reset(); }},
      {"on", "gpu.ecc", kPass, nothing},
      {"off", "gpu.ecc", kWarn, device(2, [](GpuDevice& d) { d.ecc = false; })},
      {"none on this card", "gpu.ecc", kSkip,
       [](NodeFacts& f) {
         for (auto& d : f.gpu.devices) d.ecc.reset();
       }},
      {"remap pending", "gpu.ecc", kWarn, device(7, [](GpuDevice& d) { d.remap_pending = true; })},
      {"remap failed", "gpu.ecc", kFail, device(7, [](GpuDevice& d) { d.remap_failed = true; })},
      {"one uncorrected error", "gpu.ecc", kFail, device(0, [](GpuDevice& d) { d.uncorrected_errors = 1; })},
      {"just new enough", "gpu.driver", kPass, [](NodeFacts& f) { f.gpu.driver = "580.00"; }},
      {"too old", "gpu.driver", kFail, [](NodeFacts& f) { f.gpu.driver = "579.99.99"; }},
      {"not a version", "gpu.driver", kFail, [](NodeFacts& f) { f.gpu.driver = "580x"; }},
      {"NVML fails", "gpu.driver", kFail, [](NodeFacts& f) { f.gpu.problem = "Driver/library version mismatch"; }},
      {"no driver", "gpu.driver", kSkip, [](NodeFacts& f) { f.gpu = {}; }},
      {"cool", "gpu.thermal", kPass, device(6, [](GpuDevice& d) { d.celsius = 82.9; })},
      {"hot", "gpu.thermal", kWarn, device(6, [](GpuDevice& d) { d.celsius = 83; })},
      {"slowed down", "gpu.thermal", kWarn, device(6, [](GpuDevice& d) { d.throttled = true; })},
      {"none", "gpu.xid", kPass, nothing},
      {"an old one", "gpu.xid", kPass, xid(79, 86401)},
      {"a harmless one", "gpu.xid", kWarn, xid(13, 86399)},
      {"48", "gpu.xid", kFail, xid(48, 10)},
      {"79", "gpu.xid", kFail, xid(79, 86400)},
      {"log not readable", "gpu.xid", kSkip, [](NodeFacts& f) { f.host.kernel_log_readable = false; }},
  };
}

std::vector<Case> measured_cases() {
  return {
      {"60 %", "gpu.bf16", kPass, bf16(0.60 * kH100Flops)},
      {"below 60 %", "gpu.bf16", kWarn, bf16(0.5999 * kH100Flops)},
      {"45 %", "gpu.bf16", kWarn, bf16(0.45 * kH100Flops)},
      {"below 45 %", "gpu.bf16", kFail, bf16(0.4499 * kH100Flops)},
      {"more than can be", "gpu.bf16", kFail, bf16(2 * kH100Flops)},
      {"wrong result", "gpu.bf16", kFail, device(3, [](GpuDevice& d) { d.bf16_correct = false; })},
      {"not verified", "gpu.bf16", kFail, device(3, [](GpuDevice& d) { d.bf16_correct.reset(); })},
      {"a card without figure", "gpu.bf16", kSkip, device(3, [](GpuDevice& d) { d.bf16_flops.reset(); })},
      {"unlisted", "gpu.bf16", kSkip,
       [](NodeFacts& f) {
         for (auto& d : f.gpu.devices) d.name = "NVIDIA Z1";
       }},
      {"hung", "gpu.bf16", kFail,
       [](NodeFacts& f) {
         f.gpu.failed_row = "gpu.bf16";
         f.gpu.failed_how = "no answer";
       }},
      {"after one that hung", "gpu.hbm", kSkip,
       [](NodeFacts& f) {
         f.gpu.failed_row = "gpu.bf16";
         for (auto& d : f.gpu.devices) d.hbm_bytes_per_second.reset();
       }},
      {"92 %", "gpu.spread", kPass, spread(0.92)},
      {"below 92 %", "gpu.spread", kWarn, spread(0.9199)},
      {"85 %", "gpu.spread", kWarn, spread(0.85)},
      {"below 85 %", "gpu.spread", kFail, spread(0.8499)},
      {"one card", "gpu.spread", kSkip, [](NodeFacts& f) { f.gpu.devices.resize(1); }},
      {"75 %", "gpu.hbm", kPass, hbm(0.75 * kH100Memory)},
      {"below 75 %", "gpu.hbm", kWarn, hbm(0.7499 * kH100Memory)},
      {"60 %", "gpu.hbm", kWarn, hbm(0.6001 * kH100Memory)},
      {"below 60 %", "gpu.hbm", kFail, hbm(0.5999 * kH100Memory)},
      {"70 %", "gpu.pcie", kPass, pcie(0.7001 * kGen5)},
      {"below 70 %", "gpu.pcie", kWarn, pcie(0.6999 * kGen5)},
      {"40 GB/s is enough on gen 5 x16", "gpu.pcie", kPass, pcie(40e9)},
      {"35 %", "gpu.pcie", kWarn, pcie(0.3501 * kGen5)},
      {"below 35 %", "gpu.pcie", kFail, pcie(0.3499 * kGen5)},
      {"link not known", "gpu.pcie", kSkip,
       [](NodeFacts& f) {
         for (auto& d : f.gpu.devices) d.pcie_generation = 0;
       }},
      {"340 GB/s", "gpu.nvlink", kPass, nvlink(340e9)},
      {"below 340 GB/s", "gpu.nvlink", kWarn, nvlink(339.9e9)},
      {"200 GB/s", "gpu.nvlink", kWarn, nvlink(200e9)},
      {"below 200 GB/s", "gpu.nvlink", kFail, nvlink(199.9e9)},
      {"A100: 227 GB/s", "gpu.nvlink", kPass, a100(227e9)},
      {"A100: 226 GB/s", "gpu.nvlink", kWarn, a100(226e9)},
      {"wrong result", "gpu.nvlink", kFail, [](NodeFacts& f) { f.gpu.all_reduce_correct = false; }},
      {"no NVLink", "gpu.nvlink", kSkip,
       [](NodeFacts& f) {
         for (auto& d : f.gpu.devices) d.nvlinks = 0;
       }},
  };
}

std::vector<Case> host_cases() {
  const NodeFacts node = machine("h100x8");
  const double three = disk_bytes(*node.run, 3), two = disk_bytes(*node.run, 2);
  return {
      {"GPUs compute", "cpu", kSkip, [](NodeFacts&) {}},
      {"GPUs lie idle", "cpu", kFail,
       [](NodeFacts& f) {
         idle(f);
         f.run->parameters = 3'000'000'001;
       }},
      {"small model", "cpu", kPass, cpu_for(300e6)},
      {"larger model", "cpu", kWarn, cpu_for(300e6 + 1)},
      {"3 billion", "cpu", kWarn, cpu_for(3e9)},
      {"too large", "cpu", kFail, cpu_for(3e9 + 1)},
      {"a quarter more", "ram", kPass, memory(1.25)},
      {"less than a quarter more", "ram", kWarn, memory(1.2499)},
      {"once", "ram", kWarn, memory(1)},
      {"less than once", "ram", kFail, memory(0.9999)},
      {"3 checkpoints", "disk.free", kPass, free_space(three + 1)},
      {"less than 3", "disk.free", kWarn, free_space(three - 2)},
      {"3, and one more state to keep", "disk.free", kWarn,
       [three](NodeFacts& f) {
         f.disk.free_bytes = static_cast<std::uint64_t>(three + 1);
         f.run->keep_states += 1;
       }},
      {"2 checkpoints", "disk.free", kWarn, free_space(two + 1)},
      {"less than 2", "disk.free", kFail, free_space(two - 2)},
      {"cannot be written", "disk.free", kFail, [](NodeFacts& f) { f.disk.problem = "read-only"; }},
      {"cannot be written", "disk.write", kFail, [](NodeFacts& f) { f.disk.problem = "read-only"; }},
      {"60 s", "disk.write", kPass, checkpoint_in(59.999)},
      {"more than 60 s", "disk.write", kWarn, checkpoint_in(60.001)},
      {"180 s", "disk.write", kWarn, checkpoint_in(179.999)},
      {"more than 180 s", "disk.write", kFail, checkpoint_in(180.001)},
      {"enough", "host.shm", kPass, [](NodeFacts& f) { f.host.shm_bytes = 1'000'000'000; }},
      {"a container's", "host.shm", kWarn, [](NodeFacts& f) { f.host.shm_bytes = 67'108'864; }},
      {"least", "host.shm", kWarn, [](NodeFacts& f) { f.host.shm_bytes = 32'000'000; }},
      {"less", "host.shm", kFail, [](NodeFacts& f) { f.host.shm_bytes = 31'999'999; }},
      {"GPUs lie idle", "host.shm", kSkip, idle},
      {"65536", "host.nofile", kPass, [](NodeFacts& f) { f.host.nofile = 65536; }},
      {"65535", "host.nofile", kWarn, [](NodeFacts& f) { f.host.nofile = 65535; }},
      {"4096", "host.nofile", kWarn, [](NodeFacts& f) { f.host.nofile = 4096; }},
      {"4095", "host.nofile", kFail, [](NodeFacts& f) { f.host.nofile = 4095; }},
      {"unlimited", "host.memlock", kPass, [](NodeFacts&) {}},
      {"limited", "host.memlock", kWarn, [](NodeFacts& f) { f.host.memlock_bytes = 1ull << 40; }},
      {"GPUs lie idle", "host.memlock", kSkip, idle},
      {"no GPU", "host.memlock", kSkip, [](NodeFacts& f) { f.gpu.devices.clear(); }},
      {"bbr", "net.cc", kPass, [](NodeFacts&) {}},
      {"no bbr", "net.cc", kWarn, [](NodeFacts& f) { f.host.bbr_usable = false; }},
  };
}

std::vector<Case> net_cases() {
  return {
      {"150 ms", "net.rtt", kPass, [](NodeFacts& f) { f.net.rtt_seconds = 0.150; }},
      {"151 ms", "net.rtt", kWarn, [](NodeFacts& f) { f.net.rtt_seconds = 0.151; }},
      {"300 ms", "net.rtt", kWarn, [](NodeFacts& f) { f.net.rtt_seconds = 0.300; }},
      {"301 ms", "net.rtt", kFail, [](NodeFacts& f) { f.net.rtt_seconds = 0.301; }},
      {"hub does not answer", "net.rtt", kFail, [](NodeFacts& f) { f.net.problem = "connection refused"; }},
      {"not joined", "net.rtt", kSkip, [](NodeFacts& f) { f.net.not_measured = "no run was joined"; }},
      {"0.49 %", "net.loss", kPass, [](NodeFacts& f) { f.net.loss = 0.0049; }},
      {"0.5 %", "net.loss", kWarn, [](NodeFacts& f) { f.net.loss = 0.005; }},
      {"1.99 %", "net.loss", kWarn, [](NodeFacts& f) { f.net.loss = 0.0199; }},
      {"2 %", "net.loss", kFail, [](NodeFacts& f) { f.net.loss = 0.02; }},
      {"1.99 s behind", "clock", kPass, [](NodeFacts& f) { f.net.clock_offset_seconds = -1.99; }},
      {"2 s behind", "clock", kWarn, [](NodeFacts& f) { f.net.clock_offset_seconds = -2; }},
      {"30 s ahead", "clock", kWarn, [](NodeFacts& f) { f.net.clock_offset_seconds = 30; }},
      {"31 s ahead", "clock", kFail, [](NodeFacts& f) { f.net.clock_offset_seconds = 31; }},
      {"both ways", "net.bandwidth", kPass, [](NodeFacts&) {}},
      {"nothing up", "net.bandwidth", kFail, [](NodeFacts& f) { f.net.up_bytes_per_second = 0; }},
      {"10 %", "net.sync", kPass, sync_of(0.09999)},
      {"more than 10 %", "net.sync", kWarn, sync_of(0.10001)},
      {"20 %", "net.sync", kWarn, sync_of(0.19999)},
      {"more than 20 %", "net.sync", kFail, sync_of(0.20001)},
      {"no round yet", "net.sync", kSkip, [](NodeFacts& f) { f.run->inner_seconds = 0; }},
      {"only an invite", "net.sync", kSkip, [](NodeFacts& f) { f.net.limited = "join first"; }},
      {"reached", "net.inbound", kPass, inbound(true, 13, 13)},
      {"not reached, half is hidden then", "net.inbound", kWarn, inbound(false, 13, 6)},
      {"not reached, more than half", "net.inbound", kFail, inbound(false, 13, 7)},
      {"not tried", "net.inbound", kSkip, [](NodeFacts& f) { f.net.dialled_back.reset(); }},
      {"near", "net.islands", kPass, [](NodeFacts&) {}},
      {"far", "net.islands", kWarn, [](NodeFacts& f) { f.net.links[0].rtt_seconds = 0.2; }},
      {"none answers", "net.islands", kWarn,
       [](NodeFacts& f) {
         for (auto& l : f.net.links) l.rtt_seconds.reset();
       }},
      {"alone", "net.islands", kSkip, [](NodeFacts& f) { f.net.links.clear(); }},
  };
}

}  // namespace

Q_DECLARE_METATYPE(Change)

class JudgeTest : public QObject {
  Q_OBJECT

 private Q_SLOTS:
  void each_threshold_from_both_sides_data();
  void each_threshold_from_both_sides();
  void every_row_and_every_threshold_is_tested();
  void a_good_node_passes_every_row();
  void a_machine_without_gpu_is_told_what_it_can_do();
  void cards_that_lie_idle_are_never_said_to_compute();
  void every_warning_and_failure_has_a_fix();
  void a_run_may_move_every_threshold();
  void a_wrong_policy_is_refused_data();
  void a_wrong_policy_is_refused();
  void a_required_row_that_was_skipped_fails();
  void facts_survive_json();
  void wrong_facts_are_refused();
  void a_report_survives_json();
  void needs_are_the_models();
};

std::vector<Case> all_cases() {
  std::vector<Case> all;
  for (auto&& some : {gpu_cases(), measured_cases(), host_cases(), net_cases()})
    all.insert(all.end(), some.begin(), some.end());
  return all;
}

void JudgeTest::each_threshold_from_both_sides_data() {
  QTest::addColumn<QString>("row");
  QTest::addColumn<int>("verdict");
  QTest::addColumn<Change>("change");
  for (const Case& c : all_cases()) {
    QTest::addRow("%s: %s", c.row, c.name) << QString(c.row) << static_cast<int>(c.verdict) << c.change;
  }
}

void JudgeTest::each_threshold_from_both_sides() {
  QFETCH(const QString, row);
  QFETCH(const int, verdict);
  QFETCH(const Change, change);
  NodeFacts facts = machine("h100x8");
  change(facts);

  const CheckRow judged = judge(row.toStdString(), facts);

  QVERIFY2(static_cast<int>(judged.verdict) == verdict,
           (judged.text + " / " + std::string(to_string(judged.verdict))).c_str());
  QCOMPARE(judged.id, row.toStdString());
  QVERIFY(!judged.text.empty());
}

void JudgeTest::every_row_and_every_threshold_is_tested() {
  std::map<std::string, std::set<Verdict>> seen;
  for (const Case& c : all_cases()) seen[c.row].insert(c.verdict);

  for (const RowRule& rule : check_rules()) QVERIFY2(seen.contains(std::string(rule.id)), std::string(rule.id).c_str());
  for (const std::string_view name : threshold_names())
    QVERIFY2(seen[std::string(name)].contains(kPass), std::string(name).c_str());
}

void JudgeTest::a_good_node_passes_every_row() {
  const NodeFacts facts = machine("h100x8");
  for (const RowRule& rule : check_rules()) {
    const CheckRow row = judge_row(rule, facts, {});
    if (rule.id == "cpu") continue;
    QVERIFY2(row.verdict == kPass, (row.id + ": " + row.text).c_str());
  }
}

void JudgeTest::a_machine_without_gpu_is_told_what_it_can_do() {
  const NodeFacts facts = machine("desk");

  QVERIFY(judge("cpu", facts).text.find("no GPU: can train models of up to 300 million parameters") !=
          std::string::npos);
  QVERIFY(judge("gpu.model", facts).text.find("it trains on its CPU") != std::string::npos);
  for (const RowRule& rule : check_rules()) {
    const CheckRow row = judge_row(rule, facts, {});
    QVERIFY2(row.verdict != kFail, (row.id + ": " + row.text).c_str());
    if (rule.id.starts_with("gpu.")) QCOMPARE(row.verdict, kSkip);
  }
}

void JudgeTest::cards_that_lie_idle_are_never_said_to_compute() {
  NodeFacts facts = machine("h100x8");
  idle(facts);

  const CheckRow model = judge("gpu.model", facts), cpu = judge("cpu", facts);

  QVERIFY2(model.text.find("computes on the CPU") != std::string::npos, model.text.c_str());
  QVERIFY2(cpu.text.find("GPUs idle") != std::string::npos, cpu.text.c_str());
  for (const RowRule& rule : check_rules()) {
    const CheckRow row = judge_row(rule, facts, {});
    QVERIFY2(row.text.find("GPUs compute") == std::string::npos, row.text.c_str());
  }
  // Who needs the cards is told that they will not do.
  const auto policy = parse_check_policy(R"({"require": ["gpu.memory"]})");
  QVERIFY(policy.ok());
  QCOMPARE(judge("gpu.memory", facts, *policy).verdict, kFail);
}

void JudgeTest::every_warning_and_failure_has_a_fix() {
  for (const Case& c : all_cases()) {
    NodeFacts facts = machine("h100x8");
    c.change(facts);
    const CheckRow row = judge(c.row, facts);
    if (row.verdict == kWarn || row.verdict == kFail) QVERIFY2(!row.fix.empty(), c.row);
    if (row.verdict == kPass) QVERIFY2(row.fix.empty(), c.row);
  }
}

void JudgeTest::a_run_may_move_every_threshold() {
  // Each row, on facts that pass: with limits beyond them it fails.
  NodeFacts facts = machine("h100x8");
  facts.net.clock_offset_seconds = 1;
  for (const std::string_view name : threshold_names()) {
    NodeFacts own = facts;
    if (name == "cpu") cpu_for(1000)(own);
    const bool more_is_better =
        judge(std::string(name), own).verdict == kPass &&
        parse_check_policy(fmt::format(R"({{"thresholds":{{"{}":{{"pass":1e30,"warn":0}}}}}})", name)).ok();
    const std::string limit = more_is_better ? R"({"pass":1e30,"warn":1e29})" : R"({"pass":0,"warn":0})";
    const auto policy = parse_check_policy(fmt::format(R"({{"thresholds":{{"{}":{}}}}})", name, limit));
    QVERIFY2(policy.ok(), policy.ok() ? "" : policy.error().message.c_str());
    QVERIFY2(judge(std::string(name), own, *policy).verdict == kFail, std::string(name).c_str());
  }
}

void JudgeTest::a_wrong_policy_is_refused_data() {
  QTest::addColumn<QByteArray>("text");
  QTest::addColumn<QByteArray>("says");
  QTest::newRow("no JSON") << QByteArray("{") << QByteArray("no JSON");
  QTest::newRow("a list") << QByteArray("[]") << QByteArray("no object");
  QTest::newRow("unknown key") << QByteArray(R"({"requires": []})") << QByteArray("neither");
  QTest::newRow("unknown row required") << QByteArray(R"({"require": ["gpu.colour"]})") << QByteArray("no such row");
  QTest::newRow("unknown threshold") << QByteArray(R"({"thresholds": {"gpu.ecc": {}}})") << QByteArray("these have");
  QTest::newRow("no number") << QByteArray(R"({"thresholds": {"ram": {"pass": "2"}}})") << QByteArray("a number");
  QTest::newRow("negative") << QByteArray(R"({"thresholds": {"ram": {"pass": -2}}})") << QByteArray("a number");
  QTest::newRow("warns stricter") << QByteArray(R"({"thresholds": {"ram": {"pass": 1, "warn": 2}}})")
                                  << QByteArray("stricter");
  QTest::newRow("warns stricter, less is better")
      << QByteArray(R"({"thresholds": {"clock": {"pass": 3, "warn": 2}}})") << QByteArray("stricter");
}

void JudgeTest::a_wrong_policy_is_refused() {
  QFETCH(const QByteArray, text);
  QFETCH(const QByteArray, says);

  const auto policy = parse_check_policy(text.toStdString());

  QVERIFY(!policy.ok());
  QVERIFY2(policy.error().message.find(says.toStdString()) != std::string::npos, policy.error().message.c_str());
}

void JudgeTest::a_required_row_that_was_skipped_fails() {
  const auto policy = parse_check_policy(R"({"require": ["gpu.bf16", "ram"]})");
  const NodeFacts facts = machine("desk");

  const CheckRow row = judge("gpu.bf16", facts, *policy);

  QCOMPARE(row.verdict, kFail);
  QVERIFY2(row.text.find("no NVIDIA driver") != std::string::npos, row.text.c_str());
  QCOMPARE(judge("gpu.hbm", facts, *policy).verdict, kSkip);
  QCOMPARE(judge("ram", machine("h100x8"), *policy).verdict, kPass);
}

void JudgeTest::facts_survive_json() {
  for (const char* name : {"h100x8", "desk"}) {
    const NodeFacts facts = machine(name);
    const auto again = NodeFacts::from_json(facts.to_json().dump());
    QVERIFY(again.ok());
    QCOMPARE(again->to_json().dump(), facts.to_json().dump());
  }
}

void JudgeTest::wrong_facts_are_refused() {
  const std::string good = to_json(machine("h100x8").gpu).dump();
  QVERIFY(gpu_facts_from_json(good).ok());
  for (const char* wrong :
       {R"({"bf16_flops":null})", R"({"bf16_flops":-1})", R"({"celsius":"hot"})", R"({"nvlinks":-3})"}) {
    auto json = nlohmann::json::parse(good);
    const auto change = nlohmann::json::parse(wrong);
    for (const auto& [key, value] : change.items()) json["devices"][0][key] = value;
    QVERIFY2(!gpu_facts_from_json(json.dump()).ok(), wrong);
  }
  QVERIFY(!gpu_facts_from_json("").ok());
  QVERIFY(!gpu_facts_from_json("[]").ok());
  QVERIFY(!gpu_facts_from_json(std::string(300'000, ' ')).ok());
  auto many = nlohmann::json::parse(good);
  many["devices"] = nlohmann::json::array();
  for (int i = 0; i <= 64; ++i) many["devices"].push_back(nlohmann::json::parse(good)["devices"][0]);
  QVERIFY(!gpu_facts_from_json(many.dump()).ok());
}

void JudgeTest::a_report_survives_json() {
  CheckReport report{.software = "atoll 0.1.0", .run_id = "0123456789abcdef", .time = 1763725000.25, .full = true};
  for (const RowRule& rule : check_rules()) report.rows.push_back(judge_row(rule, machine("desk"), {}));

  const auto again = CheckReport::from_json(report.to_json().dump());

  QVERIFY2(again.ok(), again.ok() ? "" : again.error().message.c_str());
  QCOMPARE(again->to_json().dump(), report.to_json().dump());
  QVERIFY(!CheckReport::from_json(R"({"version": 2})").ok());
}

void JudgeTest::needs_are_the_models() {
  RunConfig run;
  run.model_json =
      R"({"vocab_size":128256,"hidden_size":4096,"intermediate_size":14336,"num_hidden_layers":32,"num_attention_heads":32,"num_key_value_heads":8})";
  run.dataset_json = R"({})";
  run.wire = WireFormat::kFp32;
  QVERIFY(!needs_of(run).ok());  // no dataset

  const std::string shard = fmt::format(R"([{{"file":"a.bin","tokens":116,"bytes":264,"sha256":"{:064}"}}])", 0);
  run.dataset_json = fmt::format(
      R"({{"format":"atoll-dataset","version":1,"tokenizer":"bytes","vocab_size":257,"train":{0},"validation":{0}}})",
      shard);
  const auto needs = needs_of(run);

  QVERIFY2(needs.ok(), needs.ok() ? "" : needs.error().message.c_str());
  QCOMPARE(needs->parameters, std::uint64_t{8'030'261'248});  // Llama 3 8B
  QCOMPARE(needs->payload_bytes, 4 * needs->parameters);
  QCOMPARE(needs->round_payload_bytes, needs->payload_bytes);
  run.fragments = 4;
  const auto in_parts = needs_of(run);
  QVERIFY(in_parts.ok());
  QCOMPARE(in_parts->payload_bytes, needs->payload_bytes);
  QVERIFY(in_parts->round_payload_bytes < 0.3 * static_cast<double>(needs->payload_bytes));
  QVERIFY(in_parts->round_payload_bytes >= needs->payload_bytes / 4);
  QCOMPARE(needs->data_bytes, std::uint64_t{2 * 264});
  QCOMPARE(checkpoint_bytes(*needs), 8.0 * 8'030'261'248);
}

QTEST_APPLESS_MAIN(JudgeTest)
#include "judge_test.moc"
