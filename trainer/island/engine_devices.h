// What an island computes on: the GPUs that its owner lets it have, once they have shown that they compute what the
// processor does; else its processor. On the island's thread.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "trainer/device/device_group.h"
#include "trainer/device/gpus.h"
#include "trainer/island/memory_plan.h"

namespace atl {

struct EngineDevices {
  MemoryPlan plan;
  std::unique_ptr<DeviceGroup> gpus;  // nullptr: the processor
  std::optional<double> peak_flops;   // of the GPUs together in dense bf16, where the cards are known
  std::string trouble;                // why GPUs that were asked for, or that are there, are left idle; else empty
};

// FLOP/s of them together in dense bf16. Of a card that is not known nothing is said, and so of none with it.
std::optional<double> peak_flops_of(std::span<const UsableGpu> gpus);

// May take seconds, where there are GPUs.
EngineDevices choose_devices(const ModelConfig& model, const RunConfig& run, const IslandChoice& choice,
                             DeviceChoice device);

}  // namespace atl
