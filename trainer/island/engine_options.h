// The engine that a run asks of an island. Pure; any thread.
#pragma once

#include <cstdint>

#include "net/step/memory_needs.h"
#include "net/wire/run_config.h"
#include "trainer/engine/engine.h"

namespace atl {

// `threads`: of all local ranks together. `island`: as it was planned (memory_plan.h).
EngineOptions engine_options(const RunConfig& run, const IslandShape& island, int threads);

}  // namespace atl
