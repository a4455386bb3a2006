// Parameters of outer step 0, in the canonical order, drawn from the run's seed on all processors. Pure; any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "net/model/config.h"

namespace atl {

std::vector<float> fresh_parameters(const ModelConfig& model, std::uint64_t seed);

}  // namespace atl
