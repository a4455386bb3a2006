// From which figure on a row of the node check passes, warns or fails; and which rows a run insists on. A run's
// manifest may override them: RunConfig's "check", {"require": ["gpu.bf16"], "thresholds": {"gpu.bf16": {"pass": 0.5,
// "warn": 0.4}}}. Plain values; any thread.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "net/base/result.h"
#include "net/check/check_row.h"

namespace atl {

// `pass` or better passes, `warn` or better warns, what is worse fails.
struct Limit {
  double pass = 0;
  double warn = 0;
};

// More is better: rates, free space.
constexpr Verdict at_least(double value, Limit limit) {
  return value >= limit.pass ? Verdict::kPass : value >= limit.warn ? Verdict::kWarn : Verdict::kFail;
}
// Less is better: times. The limit itself is still within.
constexpr Verdict at_most(double value, Limit limit) {
  return value <= limit.pass ? Verdict::kPass : value <= limit.warn ? Verdict::kWarn : Verdict::kFail;
}
// Less is better, and the limit itself is not within.
constexpr Verdict below(double value, Limit limit) {
  return value < limit.pass ? Verdict::kPass : value < limit.warn ? Verdict::kWarn : Verdict::kFail;
}

struct CheckThresholds {
  Limit gpu_driver{580, 580};        // major version: what CUDA 13 needs
  Limit gpu_bf16{0.60, 0.45};        // of the card's dense peak
  Limit gpu_spread{0.92, 0.85};      // slowest card / median
  Limit gpu_hbm{0.75, 0.60};         // of the card's memory bandwidth
  Limit gpu_pcie{0.70, 0.35};        // of what its link carries
  Limit gpu_nvlink{340e9, 200e9};    // B/s on H100 SXM; other cards in proportion to their NVLink
  Limit gpu_thermal{83, 1000};       // C; a hot card warns and never fails
  Limit cpu_parameters{300e6, 3e9};  // of the model, on a machine without GPU
  Limit disk_free{3, 2};             // checkpoints, beside what else disk_bytes() counts
  Limit disk_write{60, 180};         // s for a checkpoint
  Limit ram{1.25, 1};                // x what the trainer holds in main memory at most
  Limit shm{1e9, 32e6};              // B, with several GPUs
  Limit nofile{65536, 4096};         // open files
  Limit clock{2, 30};                // s off the hub's
  Limit net_rtt{0.150, 0.300};       // s to the hub
  Limit net_loss{0.005, 0.02};       // of what is sent to the hub
  Limit net_sync{0.10, 0.20};        // all-reduce / inner phase
};

struct CheckPolicy {
  CheckThresholds thresholds;
  std::set<std::string> required;  // rows that must pass or warn for the run to take an island

  bool requires_row(std::string_view id) const { return required.contains(std::string(id)); }
};

// `text`: the manifest's object, empty for none. kInvalidArgument names a row that has no threshold or does not exist,
// a limit that is no number, or one whose warning is stricter than its pass.
Result<CheckPolicy> parse_check_policy(std::string_view text);

// Rows that have thresholds, by name.
std::vector<std::string_view> threshold_names();

}  // namespace atl
