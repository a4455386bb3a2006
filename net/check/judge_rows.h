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

// What the trainer will make of the cards, as far as the facts tell.
enum class CardUse {
  kNone,      // there are none
  kIdle,      // their owner has the processor compute
  kReplaced,  // by the processor, for something keeps them from computing and nobody insists on them
  kCompute,   // they are to, and who asked for them is failed by what keeps them from it
};
CardUse use_of_cards(const NodeFacts& facts, const CheckPolicy& policy);
// Otherwise its CPU does, cards or not.
inline bool computes_on_gpus(const NodeFacts& facts, const CheckPolicy& policy) {
  return use_of_cards(facts, policy) == CardUse::kCompute;
}
inline constexpr const char* kGpusIdle = "it computes on the CPU and leaves GPUs idle";

// Whether a row is about cards and what they need.
inline bool is_about_cards(std::string_view id) { return id.starts_with("gpu.") || id == "host.shm"; }
// Such a row by their owner's choice: it fails only whoever asked for GPUs, warns where the processor may take their
// place, and is no complaint where they are to lie idle.
void weigh_choice(CheckRow& row, const NodeFacts& facts);

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
CheckRow judge_net_buffers(const NodeFacts& facts, const CheckPolicy& policy);
CheckRow judge_net_sync(const NodeFacts& facts, const CheckPolicy& policy);
CheckRow judge_net_inbound(const NodeFacts& facts, const CheckPolicy& policy);
CheckRow judge_net_islands(const NodeFacts& facts, const CheckPolicy& policy);

}  // namespace atl
