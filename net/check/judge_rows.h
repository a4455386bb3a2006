// The rules behind judge.h's list, by topic. For net/check's own files.
#pragma once

#include "net/check/judge.h"

namespace atl {

// A row that was not judged, and why.
inline CheckRow skipped(std::string why) { return {.verdict = Verdict::kSkip, .text = std::move(why)}; }
inline CheckRow failed(std::string text, std::string fix) {
  return {.verdict = Verdict::kFail, .text = std::move(text), .fix = std::move(fix)};
}
// With `fix` unless it passes.
CheckRow judged(Verdict verdict, double value, std::string unit, std::string text, std::string fix);

// Otherwise its CPU does, cards or not.
inline bool computes_on_gpus(const NodeFacts& facts) { return facts.gpus_compute && !facts.gpu.devices.empty(); }
inline constexpr const char* kGpusIdle = "it computes on the CPU and leaves GPUs idle";

// judge_gpu.cpp: what NVML says
CheckRow judge_gpu_model(const NodeFacts& facts, const CheckPolicy& policy);
CheckRow judge_gpu_libraries(const NodeFacts& facts, const CheckPolicy& policy);
CheckRow judge_gpu_memory(const NodeFacts& facts, const CheckPolicy& policy);
CheckRow judge_gpu_ecc(const NodeFacts& facts, const CheckPolicy& policy);
CheckRow judge_gpu_driver(const NodeFacts& facts, const CheckPolicy& policy);
CheckRow judge_gpu_thermal(const NodeFacts& facts, const CheckPolicy& policy);
CheckRow judge_gpu_xid(const NodeFacts& facts, const CheckPolicy& policy);
// The row to show when there are no cards to judge; empty when there are.
std::optional<CheckRow> no_gpus(const GpuFacts& gpu);

// judge_gpu_measured.cpp: what was measured on the cards
CheckRow judge_gpu_bf16(const NodeFacts& facts, const CheckPolicy& policy);
CheckRow judge_gpu_spread(const NodeFacts& facts, const CheckPolicy& policy);
CheckRow judge_gpu_hbm(const NodeFacts& facts, const CheckPolicy& policy);
CheckRow judge_gpu_pcie(const NodeFacts& facts, const CheckPolicy& policy);
CheckRow judge_gpu_nvlink(const NodeFacts& facts, const CheckPolicy& policy);

// judge_host.cpp
CheckRow judge_cpu(const NodeFacts& facts, const CheckPolicy& policy);
CheckRow judge_ram(const NodeFacts& facts, const CheckPolicy& policy);
CheckRow judge_shm(const NodeFacts& facts, const CheckPolicy& policy);
CheckRow judge_nofile(const NodeFacts& facts, const CheckPolicy& policy);
CheckRow judge_memlock(const NodeFacts& facts, const CheckPolicy& policy);
CheckRow judge_net_cc(const NodeFacts& facts, const CheckPolicy& policy);
CheckRow judge_disk_free(const NodeFacts& facts, const CheckPolicy& policy);
CheckRow judge_disk_write(const NodeFacts& facts, const CheckPolicy& policy);

// judge_net.cpp
CheckRow judge_net_rtt(const NodeFacts& facts, const CheckPolicy& policy);
CheckRow judge_clock(const NodeFacts& facts, const CheckPolicy& policy);
CheckRow judge_net_bandwidth(const NodeFacts& facts, const CheckPolicy& policy);
CheckRow judge_net_loss(const NodeFacts& facts, const CheckPolicy& policy);
CheckRow judge_net_sync(const NodeFacts& facts, const CheckPolicy& policy);
CheckRow judge_net_inbound(const NodeFacts& facts, const CheckPolicy& policy);
CheckRow judge_net_islands(const NodeFacts& facts, const CheckPolicy& policy);

}  // namespace atl
