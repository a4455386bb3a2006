// The engine on devices of any kind.
#pragma once

#include <memory>

#include "trainer/device/device_group.h"
#include "trainer/engine/engine.h"

namespace atl {

// `group`: of options.local_ranks devices.
Result<std::unique_ptr<Engine>> create_engine(const ModelConfig& config, const EngineOptions& options,
                                              std::unique_ptr<DeviceGroup> group);

}  // namespace atl
