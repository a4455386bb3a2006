// An island's engine on what it computes: the GPUs that its owner lets it have, once they have shown that they compute
// what the processor does; else its processor. On the island's thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "net/base/result.h"
#include "trainer/device/device_choice.h"
#include "trainer/engine/engine.h"
#include "trainer/island/memory_plan.h"

namespace atl {

// What there is to compute with.
struct IslandMachine {
  Gpus& gpus;
  HostMemory memory;
  SlowGpus slow;
};

struct IslandEngine {
  std::unique_ptr<Engine> engine;
  MemoryPlan plan;
  bool on_gpus = false;
  std::optional<double> peak_flops;  // of the GPUs together in dense bf16, where the cards are known
  std::string trouble;               // why GPUs that may be used are left idle, all or some; else empty
};

// FLOP/s of them together in dense bf16. Of a card that is not known nothing is said, and so of none with it.
std::optional<double> peak_flops_of(std::span<const UsableGpu> gpus);

// `options_of`: the engine's, of a plan. May take seconds, where there are GPUs. Where they cannot compute it is the
// processor's turn (device_choice.h); a model for which GPUs were there and that this machine's memory can never hold
// is an error.
Result<IslandEngine> make_island_engine(const ModelConfig& model, const RunConfig& run, const IslandChoice& choice,
                                        DeviceChoice device, const IslandMachine& machine,
                                        const std::function<EngineOptions(const IslandShape&)>& options_of);

}  // namespace atl
