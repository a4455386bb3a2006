// What a run has that goes on from a trained model, where its organiser says nothing: a preset's learning rate is for
// fresh parameters and would undo what the model learned, and its shape is another model's. Pure; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "app/cli/run_preset.h"
#include "net/data/dataset.h"
#include "net/wire/run_config.h"

namespace atl {

inline constexpr double kContinuedLearningRate = 5e-5;       // the default of transformers' Trainer
inline constexpr std::uint32_t kLongestContinued = 2048;     // tokens of a sequence
inline constexpr std::uint32_t kContinuedStepTokens = 8192;  // of a step and island

// Sets in `run`, whose model is the one with which it begins, what `said` leaves open: the learning rate, and a tenth
// of it behind a decay; sequences as long as the model takes, unless the data or `memory_bytes` (0: not known) have no
// room for these; as many of them as make a step; and times of islands that are not all on one machine. For a person:
// what was chosen, empty where all was said.
Result<std::string> continue_gently(const RunOverrides& said, const std::vector<DatasetManifest>& data,
                                    std::uint64_t memory_bytes, RunConfig& run);

}  // namespace atl
