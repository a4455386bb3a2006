// Where `eval` and `sample` get a model from.
#pragma once

#include <memory>

#include "net/base/id.h"
#include "trainer/engine/engine.h"
#include "trainer/program/program.h"

namespace atl {

// An engine with the parameters of `source`, for evaluation.
Result<std::unique_ptr<Engine>> load_engine(const ModelSource& source, int threads);

// The outer parameters of the island at `home`, written to `output`: asked of its trainer when that runs, else from its
// checkpoint. Its outer step.
Result<OuterStep> export_from_home(const std::filesystem::path& home, const std::filesystem::path& output);

}  // namespace atl
