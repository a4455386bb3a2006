#include "trainer/island/island_engine.h"

#include <fmt/format.h>

#include <algorithm>

#include "net/check/gpu_cards.h"
#include "trainer/engine/device_check.h"
#include "trainer/engine/fsdp_engine.h"

namespace atl {
namespace {

struct Wanted {
  const ModelConfig& model;
  const RunConfig& run;
  const IslandChoice& choice;
  const IslandMachine& machine;
  const std::function<EngineOptions(const IslandShape&)>& options_of;
};

// The check uses devices of its own and gives them back: those that train begin with nothing on them.
Result<IslandEngine> on_gpus(std::span<const UsableGpu> gpus, const Wanted& wanted) {
  const UsableGpu& fullest = *std::ranges::min_element(gpus, {}, &UsableGpu::free_bytes);
  IslandEngine made;
  made.on_gpus = true;
  made.plan = plan_gpu_memory(wanted.model, wanted.run, wanted.choice, static_cast<int>(gpus.size()),
                              fullest.free_bytes, wanted.machine.memory.available);
  if (const std::string why = made.plan.gpu_trouble(); !why.empty()) return Error{ErrorCode::kInvalidArgument, why};
  const auto used = gpus.first(static_cast<std::size_t>(made.plan.island.local_ranks));
  const EngineOptions options = wanted.options_of(made.plan.island);
  const std::chrono::seconds timeout = options.collective_timeout;
  ATOLL_ASSIGN_OR_RETURN(auto tried, wanted.machine.gpus.devices(used, timeout));
  ATOLL_RETURN_IF_ERROR(
      check_devices(wanted.model, made.plan.island.precision, wanted.run.attention, std::move(tried)));
  ATOLL_ASSIGN_OR_RETURN(auto devices, wanted.machine.gpus.devices(used, timeout));
  ATOLL_ASSIGN_OR_RETURN(made.engine, create_engine(wanted.model, options, std::move(devices)));
  made.peak_flops = peak_flops_of(used);
  return made;
}

Result<IslandEngine> on_processor(const Wanted& wanted, std::string trouble) {
  IslandEngine made;
  const HostMemory& memory = wanted.machine.memory;
  made.plan = plan_memory(wanted.model, wanted.run, wanted.choice, memory.available);
  if (!trouble.empty() && made.plan.needs.most() > memory.total) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{}. But this machine has {:.1f} GB of memory, and the processor would want {:.1f} GB for "
                             "this run: see to the GPUs (atoll check), or join a run with a smaller model",
                             trouble, static_cast<double>(memory.total) / 1e9,
                             static_cast<double>(made.plan.needs.most()) / 1e9)};
  }
  ATOLL_ASSIGN_OR_RETURN(made.engine, Engine::create(wanted.model, wanted.options_of(made.plan.island)));
  made.trouble = std::move(trouble);
  return made;
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

Result<IslandEngine> make_island_engine(const ModelConfig& model, const RunConfig& run, const IslandChoice& choice,
                                        DeviceChoice device, const IslandMachine& machine,
                                        const std::function<EngineOptions(const IslandShape&)>& options_of) {
  const Wanted wanted{model, run, choice, machine, options_of};
  IslandEngine made;
  ATOLL_ASSIGN_OR_RETURN(DeviceOutcome outcome, choose_device(
                                                    device, machine.gpus,
                                                    [&](std::span<const UsableGpu> gpus) -> Status {
                                                      ATOLL_ASSIGN_OR_RETURN(made, on_gpus(gpus, wanted));
                                                      return ok_status();
                                                    },
                                                    machine.slow));
  if (!outcome.on_gpus) return on_processor(wanted, std::move(outcome.trouble));
  made.trouble = std::move(outcome.trouble);
  return made;
}

}  // namespace atl
