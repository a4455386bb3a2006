#include <fmt/format.h>

#include <algorithm>

#include "net/check/figures.h"
#include "net/check/gpu_cards.h"
#include "net/check/judge_rows.h"

namespace atl {
namespace {

// No card is so much faster than its data sheet: the probe does not tell the truth.
constexpr double kBeyondBelief = 1.5;
constexpr double kH100NvlinkBytesPerSecond = 450e9;

const std::string kSlowFix =
    "look for other users of the cards (nvidia-smi), power caps (nvidia-smi -q -d POWER) and heat";

// Why there is nothing to judge; `id` is the row's.
std::optional<CheckRow> not_measured(const GpuFacts& gpu, std::string_view id) {
  if (auto row = no_gpus(gpu)) return row;
  if (gpu.failed_row == id) {
    return failed(gpu.failed_how, "run 'nvidia-smi'; if the cards hang, restart the machine, then check again");
  }
  if (!gpu.not_measured.empty()) return skipped(gpu.not_measured);
  return std::nullopt;
}

CheckRow no_figure(const GpuFacts& gpu) {
  return skipped(gpu.failed_row.empty() ? "the probe did not measure it"
                                        : "not reached, because " + gpu.failed_row + " failed");
}

struct Slowest {
  double rate = 0;
  std::size_t gpu = 0;
};

// Empty unless every card has a figure.
std::optional<Slowest> slowest(const GpuFacts& gpu, std::optional<double> GpuDevice::*rate) {
  Slowest least;
  for (std::size_t i = 0; i < gpu.devices.size(); ++i) {
    const auto& value = gpu.devices[i].*rate;
    if (!value) return std::nullopt;
    if (i == 0 || *value < least.rate) least = {*value, i};
  }
  return least;
}

// A rate in proportion to what is possible. `peak` of 0: not known.
CheckRow judge_rate(const Slowest& least, double peak, Limit limit, const char* unit, const std::string& rate,
                    const std::string& fix) {
  if (peak <= 0) return skipped(fmt::format("{}; what it should be is not known", rate));
  const double fraction = least.rate / peak;
  if (fraction > kBeyondBelief) {
    return failed(
        fmt::format("{} is {} of what the card can do: the measurement is wrong", rate, figures::percent(fraction)),
        "check again; if it stays, report it with 'atoll diag'");
  }
  return judged(at_least(fraction, limit), least.rate, unit,
                fmt::format("{} (GPU {}), {} of the best", rate, least.gpu, figures::percent(fraction)), fix);
}

}  // namespace

CheckRow judge_gpu_bf16(const NodeFacts& facts, const CheckPolicy& policy) {
  const GpuFacts& gpu = facts.gpu;
  if (auto row = not_measured(gpu, "gpu.bf16")) return *row;
  for (std::size_t i = 0; i < gpu.devices.size(); ++i) {
    if (gpu.devices[i].bf16_correct == false) {
      return failed(fmt::format("GPU {} computes wrong results", i), "do not train on it: have the card replaced");
    }
  }
  const auto least = slowest(gpu, &GpuDevice::bf16_flops);
  if (!least) return no_figure(gpu);
  const bool verified = std::ranges::all_of(gpu.devices, [](const GpuDevice& d) { return d.bf16_correct == true; });
  if (!verified) return failed("the probe did not verify its results", "update atoll, then check again");
  const GpuCard* card = find_gpu_card(gpu.devices.front().name);
  return judge_rate(*least, card != nullptr ? card->bf16_flops : 0, policy.thresholds.gpu_bf16, "FLOP/s",
                    figures::flops(least->rate), kSlowFix);
}

CheckRow judge_gpu_spread(const NodeFacts& facts, const CheckPolicy& policy) {
  const GpuFacts& gpu = facts.gpu;
  if (auto row = not_measured(gpu, "gpu.spread")) return *row;
  if (gpu.devices.size() < 2) return skipped("there is one card");
  const auto least = slowest(gpu, &GpuDevice::bf16_flops);
  if (!least) return no_figure(gpu);
  std::vector<double> rates;
  for (const GpuDevice& device : gpu.devices) rates.push_back(*device.bf16_flops);
  std::ranges::sort(rates);
  const std::size_t half = rates.size() / 2;
  const double median = rates.size() % 2 == 1 ? rates[half] : (rates[half - 1] + rates[half]) / 2;
  const double fraction = median > 0 ? least->rate / median : 0;
  return judged(at_least(fraction, policy.thresholds.gpu_spread), fraction, "fraction",
                fmt::format("slowest card (GPU {}) at {} of the median", least->gpu, figures::percent(fraction)),
                kSlowFix);
}

CheckRow judge_gpu_hbm(const NodeFacts& facts, const CheckPolicy& policy) {
  const GpuFacts& gpu = facts.gpu;
  if (auto row = not_measured(gpu, "gpu.hbm")) return *row;
  const auto least = slowest(gpu, &GpuDevice::hbm_bytes_per_second);
  if (!least) return no_figure(gpu);
  const GpuCard* card = find_gpu_card(gpu.devices.front().name);
  return judge_rate(*least, card != nullptr ? card->memory_bytes_per_second : 0, policy.thresholds.gpu_hbm, "B/s",
                    figures::bytes_per_second(least->rate), kSlowFix);
}

CheckRow judge_gpu_pcie(const NodeFacts& facts, const CheckPolicy& policy) {
  const GpuFacts& gpu = facts.gpu;
  if (auto row = not_measured(gpu, "gpu.pcie")) return *row;
  const auto least = slowest(gpu, &GpuDevice::pcie_bytes_per_second);
  if (!least) return no_figure(gpu);
  const GpuDevice& device = gpu.devices[least->gpu];
  const std::string rate = fmt::format("{} over gen {} x{}", figures::bytes_per_second(least->rate),
                                       device.pcie_generation, device.pcie_lanes);
  return judge_rate(*least, pcie_bytes_per_second(device.pcie_generation, device.pcie_lanes),
                    policy.thresholds.gpu_pcie, "B/s", rate,
                    "seat the card anew, check the slot's lanes in the firmware, or another user of the bus");
}

CheckRow judge_gpu_nvlink(const NodeFacts& facts, const CheckPolicy& policy) {
  const GpuFacts& gpu = facts.gpu;
  if (auto row = not_measured(gpu, "gpu.nvlink")) return *row;
  if (gpu.devices.size() < 2) return skipped("there is one card");
  const bool linked = std::ranges::all_of(gpu.devices, [](const GpuDevice& d) { return d.nvlinks > 0; });
  if (gpu.all_reduce_correct == false) {
    return failed("the all-reduce over the cards gives wrong results",
                  "check the links (nvidia-smi nvlink -s) and the fabric manager; restart the machine");
  }
  if (!gpu.all_reduce_bytes_per_second) return no_figure(gpu);
  const double rate = *gpu.all_reduce_bytes_per_second;
  const std::string text =
      fmt::format("all-reduce over {} cards: {}", gpu.devices.size(), figures::bytes_per_second(rate));
  if (!linked) return skipped(text + "; there is no NVLink between all cards");
  if (gpu.all_reduce_correct != true)
    return failed("the probe did not verify its results", "update atoll, then check again");
  const GpuCard* card = find_gpu_card(gpu.devices.front().name);
  if (card == nullptr || card->nvlink_bytes_per_second <= 0) return skipped(text + "; what it should be is not known");
  const double scale = card->nvlink_bytes_per_second / kH100NvlinkBytesPerSecond;
  const Limit h100 = policy.thresholds.gpu_nvlink;
  return judged(
      at_least(rate, {h100.pass * scale, h100.warn * scale}), rate, "B/s", text,
      "check the links (nvidia-smi nvlink -s) and the fabric manager (systemctl status nvidia-fabricmanager)");
}

}  // namespace atl
