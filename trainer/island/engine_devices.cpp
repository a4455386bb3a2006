#include "trainer/island/engine_devices.h"

#include <spdlog/spdlog.h>

#include <algorithm>

#include "net/check/gpu_cards.h"
#include "trainer/engine/device_check.h"
#include "trainer/engine/engine.h"

namespace atl {
namespace {

// The check uses devices of its own and gives them back: those that train begin with nothing on them.
Result<EngineDevices> on_gpus(std::span<const UsableGpu> gpus, const ModelConfig& model, const RunConfig& run,
                              const IslandChoice& choice) {
  const UsableGpu& fullest = *std::ranges::min_element(gpus, {}, &UsableGpu::free_bytes);
  EngineDevices chosen;
  chosen.plan =
      plan_gpu_memory(model, run, choice, static_cast<int>(gpus.size()), fullest.free_bytes, memory_there_is());
  const int ranks = static_cast<int>(chosen.plan.island.local_ranks);
  const auto timeout = EngineOptions{}.collective_timeout;
  ATOLL_ASSIGN_OR_RETURN(auto tried, make_gpu_devices(ranks, timeout));
  ATOLL_RETURN_IF_ERROR(check_devices(model, chosen.plan.island.precision, run.attention, std::move(tried)));
  ATOLL_ASSIGN_OR_RETURN(chosen.gpus, make_gpu_devices(ranks, timeout));
  chosen.peak_flops = peak_flops_of(gpus.first(static_cast<std::size_t>(ranks)));
  spdlog::info("computes on gpus={} first=\"{}\"", ranks, gpus.front().name);
  return chosen;
}

}  // namespace

std::optional<double> peak_flops_of(std::span<const UsableGpu> gpus) {
  double sum = 0;
  for (const UsableGpu& gpu : gpus) {
    const GpuCard* card = find_gpu_card(gpu.name);
    if (card == nullptr) return std::nullopt;
    sum += card->bf16_flops;
  }
  return sum;
}

EngineDevices choose_devices(const ModelConfig& model, const RunConfig& run, const IslandChoice& choice,
                             DeviceChoice device) {
  std::string trouble;
  if (device != DeviceChoice::kProcessor) {
    const bool asked = device == DeviceChoice::kGpu;
    const auto gpus = usable_gpus();
    auto chosen = gpus.ok() ? on_gpus(*gpus, model, run, choice) : gpus.error();
    std::string why = chosen.ok() ? chosen.value().plan.trouble() : chosen.error().message;
    if (chosen.ok() && (asked || why.empty())) return std::move(chosen).value();
    if (asked || gpus.ok()) trouble = "the GPUs are left idle, and the processor computes: " + std::move(why);
  }
  return {plan_memory(model, run, choice, memory_there_is()), nullptr, std::nullopt, std::move(trouble)};
}

}  // namespace atl
