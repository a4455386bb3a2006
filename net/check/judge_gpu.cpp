#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "net/base/gpu_libraries.h"
#include "net/check/figures.h"
#include "net/check/gpu_bounds.h"
#include "net/check/gpu_cards.h"
#include "net/check/judge_rows.h"
#include "net/check/run_needs.h"

namespace atl {
namespace {

// "8x NVIDIA H100 80GB HBM3"
std::string list_models(const GpuFacts& gpu) {
  std::vector<std::pair<std::string, int>> models;
  for (const GpuDevice& device : gpu.devices) {
    const auto found = std::ranges::find(models, device.name, [](const auto& model) { return model.first; });
    if (found == models.end()) {
      models.emplace_back(device.name, 1);
    } else {
      ++found->second;
    }
  }
  std::vector<std::string> parts;
  parts.reserve(models.size());
  for (const auto& [name, count] : models) parts.push_back(fmt::format("{}x {}", count, name));
  return fmt::format("{}", fmt::join(parts, ", "));
}

// "GPU 2", "GPUs 0, 3"; empty when `is_so` of none.
template <class Predicate>
std::string list_gpus(const GpuFacts& gpu, Predicate is_so) {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < gpu.devices.size(); ++i) {
    if (is_so(gpu.devices[i])) found.push_back(i);
  }
  if (found.empty()) return {};
  return fmt::format("GPU{} {}", found.size() == 1 ? "" : "s", fmt::join(found, ", "));
}

// nullopt: it is not understood.
std::optional<unsigned> driver_version(const GpuFacts& gpu) {
  unsigned major = 0;
  const char* end = gpu.driver.data() + gpu.driver.size();
  const auto [at, error] = std::from_chars(gpu.driver.data(), end, major);
  if (error != std::errc() || (at != end && *at != '.')) return std::nullopt;
  return major;
}

// Of the cards that would compute, which are alike.
struct ComputingCards {
  std::string_view name;
  std::size_t count = 0;
  double smallest_bytes = 0;
};
ComputingCards those_that_compute(const GpuFacts& gpu) {
  std::vector<CardMemory> cards;
  for (const GpuDevice& device : gpu.devices) cards.push_back({device.name, device.memory_bytes});
  ComputingCards computing;
  computing.name = kind_that_computes(cards);
  for (const CardMemory& card : cards) {
    if (card.name != computing.name) continue;
    const auto bytes = static_cast<double>(card.bytes);
    computing.smallest_bytes = computing.count == 0 ? bytes : std::min(bytes, computing.smallest_bytes);
    ++computing.count;
  }
  return computing;
}

// Of a run that is not known nothing is said against it.
bool run_fits(const NodeFacts& facts) {
  const ComputingCards cards = those_that_compute(facts.gpu);
  return !facts.run || cards.smallest_bytes >= gpu_bytes(*facts.run, cards.count);
}

// That the trainer's own look at the cards will end in: it computes on the processor.
bool cards_cannot_compute(const NodeFacts& facts, const CheckPolicy& policy) {
  const std::optional<unsigned> driver = driver_version(facts.gpu);
  return !facts.gpu_kernels || facts.gpu.libraries_found == false || !run_fits(facts) || !driver ||
         at_least(*driver, policy.thresholds.gpu_driver) == Verdict::kFail;
}

// Rows whose failure cards_cannot_compute() knows of.
bool says_that_cards_cannot_compute(std::string_view id) {
  return id == "gpu.driver" || id == "gpu.libraries" || id == "gpu.memory";
}

}  // namespace

CardUse use_of_cards(const NodeFacts& facts, const CheckPolicy& policy) {
  if (facts.gpu.devices.empty()) return CardUse::kNone;
  if (facts.device == DeviceChoice::kProcessor) return CardUse::kIdle;
  if (facts.device == DeviceChoice::kGpu) return CardUse::kCompute;
  return cards_cannot_compute(facts, policy) ? CardUse::kReplaced : CardUse::kCompute;
}

void weigh_choice(CheckRow& row, const NodeFacts& facts) {
  if (row.verdict == Verdict::kSkip || facts.device == DeviceChoice::kGpu) return;
  if (facts.device == DeviceChoice::kProcessor) {
    row.verdict = Verdict::kSkip;
    row.text += "; left idle, as its owner chose (island.device)";
    row.fix.clear();
    return;
  }
  if (row.verdict != Verdict::kFail) return;
  row.verdict = Verdict::kWarn;
  if (says_that_cards_cannot_compute(row.id) || !facts.gpu_kernels) {
    row.text += "; the CPU computes in their place";
  } else {
    row.fix += "; to leave GPUs idle: atoll config set island.device processor, then atoll join";
  }
}

std::optional<CheckRow> no_gpus(const GpuFacts& gpu) {
  if (!gpu.devices.empty()) return std::nullopt;
  if (!gpu.problem.empty()) return skipped("the GPUs could not be asked; see gpu.driver");
  return skipped(gpu.driver_found ? "the driver knows of no GPU" : "there is no NVIDIA driver on this machine");
}

CheckRow judge_gpu_driver(const NodeFacts& facts, const CheckPolicy& policy) {
  const GpuFacts& gpu = facts.gpu;
  if (!gpu.problem.empty()) {
    return failed(gpu.problem, "run 'nvidia-smi'; if it fails too: reinstall the driver, or restart the machine");
  }
  if (!gpu.driver_found || gpu.devices.empty()) return *no_gpus(gpu);
  const std::optional<unsigned> major = driver_version(gpu);
  if (!major) {
    return failed(fmt::format("the driver's version is not understood: '{}'", gpu.driver),
                  "install a released NVIDIA driver");
  }
  const Limit limit = policy.thresholds.gpu_driver;
  return judged(at_least(*major, limit), *major, "version", fmt::format("driver {}", gpu.driver),
                fmt::format("install NVIDIA driver {} or newer", limit.pass));
}

CheckRow judge_gpu_model(const NodeFacts& facts, const CheckPolicy&) {
  const GpuFacts& gpu = facts.gpu;
  if (auto row = no_gpus(gpu)) {
    if (facts.device == DeviceChoice::kGpu) {
      return failed(row->text + ", and GPUs were asked for",
                    "if the processor may compute: leave --device gpu out, or atoll config set island.device auto, "
                    "then atoll join");
    }
    if (gpu.problem.empty()) row->text += "; it trains on its CPU, which suits small models";
    return *row;
  }
  const auto count = static_cast<double>(gpu.devices.size());
  const std::string models = list_models(gpu);
  if (!facts.gpu_kernels) {
    return judged(Verdict::kFail, count, "count", fmt::format("{}: this build of atoll computes on CPUs alone", models),
                  "take a build with CUDA's kernels: ATOLL_GPU=yes ATOLL_CUDA_KERNELS=yes (README, Building by hand)");
  }
  const std::string& first = gpu.devices.front().name;
  if (!std::ranges::all_of(gpu.devices, [&](const GpuDevice& device) { return device.name == first; })) {
    return judged(
        Verdict::kFail, count, "count",
        fmt::format("{}: only cards that are alike compute together, here {}", models, those_that_compute(gpu).name),
        "choose cards of one model: atoll join --gpus LIST");
  }
  const bool listed = find_gpu_card(first) != nullptr;
  return judged(listed ? Verdict::kPass : Verdict::kWarn, count, "count",
                listed ? models : models + ": not a listed card, so its rates cannot be judged",
                "none needed; look at the rates that 'atoll check --full' measures yourself");
}

CheckRow judge_gpu_libraries(const NodeFacts& facts, const CheckPolicy&) {
  const GpuFacts& gpu = facts.gpu;
  if (auto row = no_gpus(gpu)) return *row;
  if (!gpu.libraries_found) {
    return skipped(gpu.libraries_missing.empty() ? "they were not tried" : gpu.libraries_missing);
  }
  if (*gpu.libraries_found) return {.verdict = Verdict::kPass, .text = "all that computing on GPUs takes is there"};
  // Nothing fails that would not be used.
  return {.verdict = facts.gpu_kernels ? Verdict::kFail : Verdict::kWarn,
          .text = "missing: " + gpu.libraries_missing,
          .fix = std::string(kGpuLibrariesFix)};
}

CheckRow judge_gpu_memory(const NodeFacts& facts, const CheckPolicy& policy) {
  if (auto row = no_gpus(facts.gpu)) return *row;
  const ComputingCards cards = those_that_compute(facts.gpu);
  const double bytes = cards.smallest_bytes;
  const bool fits = run_fits(facts);
  if (fits && !computes_on_gpus(facts, policy)) {
    return skipped(fmt::format("{} a card; {}", figures::bytes(bytes), kGpusIdle));
  }
  if (!facts.run) return skipped(fmt::format("{} a card; which run is it for?", figures::bytes(bytes)));
  return judged(fits ? Verdict::kPass : Verdict::kFail, bytes, "B",
                fmt::format("{} a card {} {} for this run", figures::bytes(bytes), fits ? ">=" : "<",
                            figures::bytes(gpu_bytes(*facts.run, cards.count))),
                "use more cards, or cards with more memory");
}

CheckRow judge_gpu_ecc(const NodeFacts& facts, const CheckPolicy&) {
  if (auto row = no_gpus(facts.gpu)) return *row;
  const GpuFacts& gpu = facts.gpu;
  const std::string restart =
      "restart the machine or reset the card (nvidia-smi --gpu-reset); if it comes back, replace it";
  if (const auto bad = list_gpus(gpu, [](const GpuDevice& d) { return d.remap_failed.value_or(false); });
      !bad.empty()) {
    return failed(bad + ": memory rows could not be remapped", "have the card replaced");
  }
  const auto has_errors = [](const GpuDevice& d) { return d.uncorrected_errors.value_or(0) > 0; };
  if (const auto bad = list_gpus(gpu, has_errors); !bad.empty()) {
    return failed(bad + ": uncorrected memory errors", restart);
  }
  CheckRow row{.verdict = Verdict::kWarn};
  if (const auto bad = list_gpus(gpu, [](const GpuDevice& d) { return d.remap_pending.value_or(false); });
      !bad.empty()) {
    row.text = bad + ": a remap of memory rows waits for a restart";
    row.fix = "restart the machine, or reset the card: nvidia-smi --gpu-reset";
    return row;
  }
  if (const auto off = list_gpus(gpu, [](const GpuDevice& d) { return d.ecc == false; }); !off.empty()) {
    row.text = off + ": ECC is off";
    row.fix = "nvidia-smi -e 1, then restart the machine";
    return row;
  }
  if (std::ranges::none_of(gpu.devices, [](const GpuDevice& d) { return d.ecc.has_value(); })) {
    return skipped("these cards have no ECC");
  }
  return {.verdict = Verdict::kPass, .text = "on, no uncorrected errors"};
}

CheckRow judge_gpu_thermal(const NodeFacts& facts, const CheckPolicy& policy) {
  if (auto row = no_gpus(facts.gpu)) return *row;
  std::optional<double> hottest;
  for (const GpuDevice& device : facts.gpu.devices) {
    if (device.celsius) hottest = std::max(hottest.value_or(*device.celsius), *device.celsius);
  }
  const std::string fix = "look at fans and airflow, or cap the power: nvidia-smi -pl WATTS";
  const auto throttled = list_gpus(facts.gpu, [](const GpuDevice& d) { return d.throttled; });
  if (!throttled.empty()) {
    return judged(Verdict::kWarn, hottest.value_or(0), "C", throttled + ": slowed down by heat", fix);
  }
  if (!hottest) return skipped("the cards do not tell their temperature");
  return judged(below(*hottest, policy.thresholds.gpu_thermal), *hottest, "C", fmt::format("{:.0f} C", *hottest), fix);
}

CheckRow judge_gpu_xid(const NodeFacts& facts, const CheckPolicy&) {
  if (auto row = no_gpus(facts.gpu)) return *row;
  if (!facts.host.kernel_log_readable) return skipped("the kernel's log may not be read by this user");
  std::vector<std::uint32_t> codes;
  for (const XidEvent& xid : facts.host.xids) {
    if (xid.age_seconds <= kXidAgeThatCounts) codes.push_back(xid.code);
  }
  if (codes.empty()) return judged(Verdict::kPass, 0, "count", "no Xid in 24 h", "");
  // 48: a memory error of two bits; 79: the card fell off the bus.
  const bool grave = std::ranges::any_of(codes, [](std::uint32_t code) { return code == 48 || code == 79; });
  std::ranges::sort(codes);
  const auto count = static_cast<double>(codes.size());
  codes.erase(std::unique(codes.begin(), codes.end()), codes.end());
  return judged(grave ? Verdict::kFail : Verdict::kWarn, count, "count",
                fmt::format("Xid {} in the last 24 h", fmt::join(codes, ", ")),
                "see 'journalctl -k | grep Xid'; restart the machine, check power and seating of the card");
}

}  // namespace atl
