// What a run asks of a machine: sizes from its configuration. Pure; any thread.
#pragma once

#include "net/check/facts.h"
#include "net/control/run_costs.h"
#include "net/wire/run_config.h"

namespace atl {

// kInvalidArgument when the configuration's dataset cannot be read, or its model is none that islands compute.
Result<RunNeeds> needs_of(const RunConfig& run, const IslandShape& island = {});

// For people, "llama, 4 layers of 128, 257 tokens"; empty when the configuration's model cannot be read.
std::string describe_model(const RunConfig& run);

// What one checkpoint takes: outer parameters and momentum in fp32.
double checkpoint_bytes(const RunNeeds& run);
// Of disk: so many checkpoints (the newest; another while it is written; the work of a pause), older ones that the run
// keeps, the rounds that are logged (kMostLoggedStates), the average and the next one, the data, and a fifth of it all.
double disk_bytes(const RunNeeds& run, double checkpoints);
// Of each of `gpus` cards that share the model: fp32 parameters, gradients and Adam's moments in shards, a gathered
// block and the next one in bf16, activations of one sequence.
double gpu_bytes(const RunNeeds& run, std::size_t gpus);
// What it all comes to, for whoever decides whether to join.
RunCosts costs_of(const RunNeeds& run);
// Of the all-reduce over `islands`, at this rate (bytes/s), as a part of the inner phase.
double sync_fraction(const RunNeeds& run, std::uint32_t islands, double bytes_per_second);

}  // namespace atl
