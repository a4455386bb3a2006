// The main memory of an island that computes on its CPU: what the trainer holds, by the model and by how it is trained.
// The one place where that is worked out: the trainer's choice of a micro-batch, the node check and `hub init` ask
// here. Pure; any thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kernels/wire_format.h"
#include "net/model/config.h"
#include "net/step/llama_step.h"

namespace atl {

inline constexpr std::uint64_t kDefaultDataCacheBytes = 10'000'000'000;

// How an island computes, by its owner's choice; and what it may keep.
struct IslandShape {
  std::int64_t local_ranks = 1;
  std::int64_t micro_batch = 0;  // most sequences that a rank computes at once; 0: not chosen
  Precision precision = Precision::kFp32;
  Recompute recompute = Recompute::kNone;
  bool keep_gathered = false;
  bool keeps_work = false;  // of an open round, now and then, on the disk: copied while it trains on
  std::uint64_t data_cache_bytes = kDefaultDataCacheBytes;  // of the run's data, on the disk
};

struct TrainingShape {
  std::int64_t sequences_per_step = 1;  // of the whole island
  std::int64_t sequence_length = 1;     // tokens
  WireFormat wire = WireFormat::kInt8Block;
  std::int64_t fragments = 1;  // that are averaged in turn, while the model is trained on where there are several
  AttentionScope attention = AttentionScope::kPacked;
  std::vector<std::string> train_only = {};  // patterns (net/model/train_only.h); empty: everything is trained
  IslandShape island = {};

  // Sequences of the fullest rank.
  std::int64_t share() const {
    const std::int64_t ranks = std::max<std::int64_t>(1, island.local_ranks);
    return (sequences_per_step + ranks - 1) / ranks;
  }
};

// A step's arenas up to so many bytes, all ranks', stay where they are between the phases of a round: to take them anew
// each time would cost a small model more than it saves.
inline constexpr std::uint64_t kStepBytesThatStay = 128 << 20;

// Bytes.
struct MemoryNeeds {
  std::uint64_t program = 0;   // code, libraries, stacks, connections
  std::uint64_t engine = 0;    // parameters, gradients, Adam's two moments
  std::uint64_t outer = 0;     // outer parameters, momentum, pseudo-gradient; what error feedback keeps
  std::uint64_t step = 0;      // while a step is computed, all ranks: activations, logits, gathered parameters
  std::uint64_t work = 0;      // a copy of parameters and moments on its way to the disk, at any time
  std::uint64_t averages = 0;  // of fragments, encoded, that are made while a step is computed; of one: between steps
  // Most of what is held in place of a step: an average, the work of a paused round.
  std::uint64_t between_steps = 0;
  std::uint64_t exported = 0;  // a copy of the parameters, while somebody exports the model; at any time

  std::uint64_t while_training() const { return program + engine + outer + averages + work + step; }
  // What there must be room for.
  std::uint64_t most() const {
    const std::uint64_t stays = std::min(step, kStepBytesThatStay);
    return program + engine + outer + averages + std::max(step + work, between_steps + stays) + exported;
  }
  // Where GPUs compute: they hold what the engine and its steps need.
  std::uint64_t most_beside_gpus() const { return program + outer + averages + between_steps + exported; }
};

// Engine and step are what the step's programs take (net/step/llama_step.h), to the byte: their arenas. Without a
// micro-batch: with all of a rank's share at once.
MemoryNeeds memory_needs(const ModelConfig& config, const TrainingShape& shape);

// What each of so many GPUs has to hold at least: in bf16, one sequence at once, everything computed again. Its arenas;
// the context of the driver and the libraries' own come on top. `train_only`: as of TrainingShape.
std::uint64_t gpu_memory_needs(const ModelConfig& config, std::int64_t sequence_length, int gpus,
                               const std::vector<std::string>& train_only);

// What memory_needs() grows by with one more parameter, at least.
inline constexpr std::uint64_t kBytesPerParameter = 44;

// How many sequences a rank may compute at once, what it computes again in the backward pass, and what the island then
// holds.
struct MicroBatch {
  std::uint32_t sequences = 1;
  Recompute recompute = Recompute::kNone;
  std::uint64_t bytes = 0;  // MemoryNeeds::most()
};

// What there is to choose from, ascending in memory and speed: one sequence at once with everything computed again,
// with what is cheap, with nothing; then more sequences, each half of the next, none more than a rank's share, nor than
// makes a step faster. Of as many sequences as the owner chose, where he did.
std::vector<MicroBatch> micro_batches(const ModelConfig& config, const TrainingShape& shape);

// What there is to choose from on GPUs, as micro_batches() has it, but `bytes` are each GPU's arenas.
std::vector<MicroBatch> gpu_micro_batches(const ModelConfig& config, const TrainingShape& shape);

// Leaves a tenth of them.
constexpr bool fits(std::uint64_t bytes, std::uint64_t available) { return bytes <= available - available / 10; }

// The largest that fits into so many bytes; the smallest where none does. `choices` is not
// empty.
MicroBatch choose_micro_batch(std::span<const MicroBatch> choices, std::uint64_t bytes);

}  // namespace atl
