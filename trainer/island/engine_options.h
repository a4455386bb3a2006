// The engine that a run asks of an island. Pure; any thread.
#pragma once

#include <cstdint>

#include "net/wire/run_config.h"
#include "trainer/engine/engine.h"

namespace atl {

// `threads`: of all local ranks together. `micro_batch`: sequences that a rank computes at once (memory_plan.h).
EngineOptions engine_options(const RunConfig& run, int local_ranks, int threads, std::uint32_t micro_batch);

}  // namespace atl
