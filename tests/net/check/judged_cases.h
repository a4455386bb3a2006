// Facts of machines (tests/golden/check), with one figure changed at a time, and what the judge of which row says of
// each: every threshold from both sides.
#pragma once

#include <QtCore/QtGlobal>
#include <functional>
#include <string>
#include <vector>

#include "net/base/file.h"
#include "net/check/judge.h"

namespace atl::test {

inline NodeFacts machine(const std::string& name) {
  const auto text = read_file(std::filesystem::path(ATOLL_TEST_DATA_DIR) / "check" / (name + ".json"));
  if (!text.ok()) qFatal("%s", text.error().message.c_str());
  auto facts = NodeFacts::from_json(*text);
  if (!facts.ok()) qFatal("%s", facts.error().message.c_str());
  return *facts;
}

inline CheckRow judge(const std::string& id, const NodeFacts& facts, const CheckPolicy& policy = {}) {
  const RowRule* rule = find_rule(id);
  if (rule == nullptr) qFatal("no row %s", id.c_str());
  return judge_row(*rule, facts, policy);
}

using FactsChange = std::function<void(NodeFacts&)>;
inline constexpr Verdict kPass = Verdict::kPass, kWarn = Verdict::kWarn, kFail = Verdict::kFail, kSkip = Verdict::kSkip;

struct JudgedCase {
  const char* name;
  const char* row;
  Verdict verdict;
  FactsChange change;
};

inline constexpr double kH100Flops = 989e12, kH100Memory = 3350e9;
inline const double kGen5 = 32e9 / 8 * 16 * 128 / 130 * 0.905;

inline FactsChange bf16(double flops) {
  return [flops](NodeFacts& f) {
    for (GpuDevice& device : f.gpu.devices) device.bf16_flops = flops;
  };
}
inline FactsChange hbm(double rate) {
  return [rate](NodeFacts& f) { f.gpu.devices[5].hbm_bytes_per_second = rate; };
}
inline FactsChange pcie(double rate) {
  return [rate](NodeFacts& f) { f.gpu.devices[3].pcie_bytes_per_second = rate; };
}
inline FactsChange spread(double fraction) {
  return [fraction](NodeFacts& f) {
    for (GpuDevice& device : f.gpu.devices) device.bf16_flops = 600e12;
    f.gpu.devices[2].bf16_flops = 600e12 * fraction;
  };
}
inline FactsChange nvlink(double rate) {
  return [rate](NodeFacts& f) { f.gpu.all_reduce_bytes_per_second = rate; };
}
inline FactsChange a100(double rate) {  // 300 GB/s of NVLink in place of 450
  return [rate](NodeFacts& f) {
    for (GpuDevice& device : f.gpu.devices) device.name = "NVIDIA A100-SXM4-80GB";
    f.gpu.all_reduce_bytes_per_second = rate;
  };
}
inline FactsChange device(int gpu, const std::function<void(GpuDevice&)>& change) {
  return [gpu, change](NodeFacts& f) { change(f.gpu.devices[static_cast<std::size_t>(gpu)]); };
}
inline FactsChange free_space(double bytes) {
  return [bytes](NodeFacts& f) { f.disk.free_bytes = static_cast<std::uint64_t>(bytes); };
}
inline FactsChange checkpoint_in(double seconds) {
  return [seconds](NodeFacts& f) { f.disk.write_bytes_per_second = checkpoint_bytes(*f.run) / seconds; };
}
inline FactsChange memory(double times) {
  return [times](NodeFacts& f) {
    f.host.ram_bytes = static_cast<std::uint64_t>(std::llround(times * static_cast<double>(f.run->bytes_beside_gpus)));
  };
}
inline FactsChange cpu_for(double parameters) {
  return [parameters](NodeFacts& f) {
    f.gpu.devices.clear();
    f.run->parameters = static_cast<std::uint64_t>(parameters);
  };
}
inline FactsChange sync_of(double fraction) {  // 14 islands; up is the slower direction
  return [fraction](NodeFacts& f) {
    f.run->inner_seconds = 1000;
    f.net.up_bytes_per_second = 2.0 * 13 / 14 * static_cast<double>(f.run->round_payload_bytes) / (fraction * 1000);
    f.net.down_bytes_per_second = 1e12;
  };
}
inline FactsChange inbound(bool reached, unsigned islands, unsigned hidden) {
  return [=](NodeFacts& f) {
    f.net.dialled_back = reached;
    f.net.islands = islands;
    f.net.hidden_islands = hidden;
  };
}
inline FactsChange xid(unsigned code, double age) {
  return [=](NodeFacts& f) { f.host.xids.push_back({code, age}); };
}

inline void idle(NodeFacts& f) { f.device = DeviceChoice::kProcessor; }
// In a build without kernels; the owner left the choice to the trainer.
inline void no_kernels(NodeFacts& f) {
  f.device = DeviceChoice::kAuto;
  f.gpu_kernels = false;
}
inline FactsChange libraries(std::optional<bool> found, bool compute = true) {
  return [=](NodeFacts& f) {
    f.gpu_kernels = compute;
    f.gpu.libraries_found = found;
    f.gpu.libraries_missing = "NCCL (NCCL was not found)";
  };
}

inline std::vector<JudgedCase> gpu_cases() {
  const auto nothing = [](NodeFacts&) {};
  return {
      {"eight alike, listed", "gpu.model", kPass, nothing},
      {"unlisted", "gpu.model", kWarn,
       [](NodeFacts& f) {
         for (auto& d : f.gpu.devices) d.name = "NVIDIA Z1";
       }},
      {"mixed", "gpu.model", kFail, device(1, [](GpuDevice& d) { d.name = "NVIDIA H200"; })},
      {"none, and they were asked for", "gpu.model", kFail, [](NodeFacts& f) { f.gpu.devices.clear(); }},
      {"none, and nobody insists", "gpu.model", kSkip,
       [](NodeFacts& f) {
         f.device = DeviceChoice::kAuto;
         f.gpu.devices.clear();
       }},
      {"idle", "gpu.model", kSkip, idle},
      {"no kernels", "gpu.model", kFail, [](NodeFacts& f) { f.gpu_kernels = false; }},
      {"no kernels, and nobody insists", "gpu.model", kWarn, no_kernels},
      {"all there", "gpu.libraries", kPass, nothing},
      {"one missing", "gpu.libraries", kFail, libraries(false)},
      {"one missing that nothing would use", "gpu.libraries", kWarn, libraries(false, false)},
      {"not tried", "gpu.libraries", kSkip, libraries(std::nullopt)},
      {"no cards", "gpu.libraries", kSkip, [](NodeFacts& f) { f.gpu.devices.clear(); }},
      {"idle", "gpu.memory", kSkip, idle},
      {"replaced by the CPU", "gpu.memory", kSkip, no_kernels},
      {"fits", "gpu.memory", kPass,
       [](NodeFacts& f) { f.gpu.devices[4].memory_bytes = static_cast<std::uint64_t>(gpu_bytes(*f.run, 8)) + 1; }},
      {"does not fit", "gpu.memory", kFail,
       [](NodeFacts& f) { f.gpu.devices[4].memory_bytes = static_cast<std::uint64_t>(gpu_bytes(*f.run, 8)) - 1; }},
      {"a card for the screen counts for nothing", "gpu.memory", kPass,
       [](NodeFacts& f) {
         f.gpu.devices[1].name = "NVIDIA T400";
         f.gpu.devices[1].memory_bytes = 1;
       }},
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

inline std::vector<JudgedCase> measured_cases() {
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

inline std::vector<JudgedCase> host_cases() {
  const NodeFacts node = machine("h100x8");
  const double three = disk_bytes(*node.run, 3), two = disk_bytes(*node.run, 2);
  return {
      {"GPUs compute", "cpu", kSkip, [](NodeFacts&) {}},
      {"GPUs lie idle", "cpu", kFail,
       [](NodeFacts& f) {
         idle(f);
         f.run->parameters = 3'000'000'001;
       }},
      {"GPUs that nobody insists on compute", "cpu", kSkip, [](NodeFacts& f) { f.device = DeviceChoice::kAuto; }},
      {"GPUs cannot compute", "cpu", kFail,
       [](NodeFacts& f) {
         f.device = DeviceChoice::kAuto;
         f.gpu.driver = "535.1";
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

// 16 times three fourths of 4 MB are 48 MB: 1.2 times 400 MB/s times 100 ms.
inline FactsChange buffers_of(std::uint64_t bytes) {
  return [bytes](NodeFacts& f) {
    f.host.tcp_send_bytes = 6 << 20;
    f.host.tcp_receive_bytes = bytes;
    f.net.up_bytes_per_second = 100e6;
    f.net.down_bytes_per_second = 400e6;
    f.net.rtt_seconds = 0.01;
    for (IslandFacts& link : f.net.links) link.rtt_seconds = 0.1;
  };
}

inline std::vector<JudgedCase> net_cases() {
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
      {"a link that 16 connections hold", "net.buffers", kPass, buffers_of(4'000'000)},
      {"a link that they do not hold", "net.buffers", kWarn, buffers_of(3'900'000)},
      {"not said", "net.buffers", kSkip, [](NodeFacts& f) { f.host.tcp_receive_bytes.reset(); }},
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

inline std::vector<JudgedCase> all_cases() {
  std::vector<JudgedCase> all;
  for (auto&& some : {gpu_cases(), measured_cases(), host_cases(), net_cases()})
    all.insert(all.end(), some.begin(), some.end());
  return all;
}

}  // namespace atl::test
