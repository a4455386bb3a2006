#include "net/check/judge.h"

#include <fmt/format.h>

#include "net/check/judge_rows.h"

namespace atl {
namespace {

constexpr RowRule kRules[] = {
    {"cpu", FactGroup::kGpu, true, judge_cpu},
    {"ram", FactGroup::kGpu, true, judge_ram},
    {"host.nofile", FactGroup::kHost, true, judge_nofile},
    {"net.cc", FactGroup::kHost, true, judge_net_cc},
    {"disk.free", FactGroup::kDisk, true, judge_disk_free},
    {"disk.write", FactGroup::kDisk, true, judge_disk_write},
    {"gpu.driver", FactGroup::kGpu, true, judge_gpu_driver},
    {"gpu.model", FactGroup::kGpu, true, judge_gpu_model},
    {"gpu.libraries", FactGroup::kGpu, true, judge_gpu_libraries},
    {"gpu.memory", FactGroup::kGpu, true, judge_gpu_memory},
    {"gpu.ecc", FactGroup::kGpu, true, judge_gpu_ecc},
    {"gpu.thermal", FactGroup::kGpu, true, judge_gpu_thermal},
    {"gpu.xid", FactGroup::kGpu, true, judge_gpu_xid},
    {"host.shm", FactGroup::kGpu, true, judge_shm},
    {"host.memlock", FactGroup::kGpu, true, judge_memlock},
    {"net.rtt", FactGroup::kNet, true, judge_net_rtt},
    {"clock", FactGroup::kNet, true, judge_clock},
    {"net.bandwidth", FactGroup::kNet, true, judge_net_bandwidth},
    {"net.loss", FactGroup::kNet, false, judge_net_loss},
    {"net.buffers", FactGroup::kNet, true, judge_net_buffers},
    {"net.sync", FactGroup::kNet, true, judge_net_sync},
    {"net.inbound", FactGroup::kNet, true, judge_net_inbound},
    {"net.islands", FactGroup::kNet, false, judge_net_islands},
    {"gpu.bf16", FactGroup::kGpuMeasured, false, judge_gpu_bf16},
    {"gpu.spread", FactGroup::kGpuMeasured, false, judge_gpu_spread},
    {"gpu.hbm", FactGroup::kGpuMeasured, false, judge_gpu_hbm},
    {"gpu.pcie", FactGroup::kGpuMeasured, false, judge_gpu_pcie},
    {"gpu.nvlink", FactGroup::kGpuMeasured, false, judge_gpu_nvlink},
};

}  // namespace

CheckRow judged(Verdict verdict, double value, std::string unit, std::string text, std::string fix) {
  CheckRow row{.verdict = verdict, .value = value, .unit = std::move(unit), .text = std::move(text)};
  if (verdict != Verdict::kPass) row.fix = std::move(fix);
  return row;
}

std::span<const RowRule> check_rules() { return kRules; }

const RowRule* find_rule(std::string_view id) {
  for (const RowRule& rule : kRules) {
    if (rule.id == id) return &rule;
  }
  return nullptr;
}

CheckRow judge_row(const RowRule& rule, const NodeFacts& facts, const CheckPolicy& policy) {
  CheckRow row = rule.judge(facts, policy);
  row.id = rule.id;
  if (is_about_cards(rule.id) && !policy.requires_row(rule.id)) weigh_choice(row, facts);
  if (row.verdict == Verdict::kSkip && policy.requires_row(rule.id)) {
    row.verdict = Verdict::kFail;
    row.text = fmt::format("this run requires it, and it was not checked: {}", row.text);
    row.fix = "see why it was skipped; a machine that cannot have it cannot join this run";
  }
  return row;
}

}  // namespace atl
