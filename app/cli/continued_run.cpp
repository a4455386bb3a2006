#include "app/cli/continued_run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "net/model/config.h"
#include "net/step/memory_needs.h"

namespace atl {
namespace {

constexpr std::uint32_t kShortest = 256;  // tokens of a sequence that is made shorter
constexpr std::uint64_t kLeastSequences = 8;
constexpr std::uint32_t kMostSequences = 64;  // of a step

bool has_data(std::uint32_t length, const std::vector<DatasetManifest>& data) {
  return std::ranges::all_of(data, [&](const DatasetManifest& one) {
    const std::uint64_t validation = one.tokens(Split::kValidation);
    return one.tokens(Split::kTrain) > kLeastSequences * length && (validation == 0 || validation > length);
  });
}

// Of the processor, computing one sequence at once.
std::uint64_t bytes_of(std::uint32_t length, const ModelConfig& model, const RunConfig& run) {
  return micro_batches(model, {.sequences_per_step = 1,
                               .sequence_length = length,
                               .wire = run.wire,
                               .fragments = run.fragments,
                               .attention = run.attention,
                               .train_only = run.train_only})
      .front()
      .bytes;
}

std::uint32_t length_for(const ModelConfig& model, const std::vector<DatasetManifest>& data, std::uint64_t memory_bytes,
                         const RunConfig& run) {
  auto length = static_cast<std::uint32_t>(std::min<std::int64_t>(model.max_position_embeddings, kLongestContinued));
  // A model that no sequence lets fit is for GPUs, or refused later.
  const bool memory_decides = memory_bytes > 0 && bytes_of(std::min(length, kShortest), model, run) <= memory_bytes;
  const auto has_room = [&] { return !memory_decides || bytes_of(length, model, run) <= memory_bytes; };
  while (length / 2 >= kShortest && !(has_data(length, data) && has_room())) length /= 2;
  return length;
}

}  // namespace

Result<std::string> continue_gently(const RunOverrides& said, const std::vector<DatasetManifest>& data,
                                    std::uint64_t memory_bytes, RunConfig& run) {
  ATOLL_ASSIGN_OR_RETURN(const ModelConfig model, model_config_from_json(run.model_json));
  std::vector<std::string> chosen;
  if (!said.learning_rate) {
    run.inner.learning_rate = kContinuedLearningRate;
    chosen.push_back(fmt::format("learning rate {}", run.inner.learning_rate));
  }
  if (!said.final_learning_rate) run.inner.final_learning_rate = run.inner.learning_rate / 10;
  if (!said.sequence_length) run.sequence_length = length_for(model, data, memory_bytes, run);
  if (!said.sequences_per_step) {
    run.sequences_per_step = std::clamp(kContinuedStepTokens / run.sequence_length, 1u, kMostSequences);
  }
  if (!said.sequence_length || !said.sequences_per_step) {
    chosen.push_back(fmt::format("{} x {} tokens a step", run.sequences_per_step, run.sequence_length));
  }
  if (!said.min_islands) run.min_islands = 2;
  const RunConfig usual;
  run.heartbeat = usual.heartbeat;
  run.dead_after = usual.dead_after;
  run.straggler_grace = usual.straggler_grace;
  return fmt::format("{}", fmt::join(chosen, ", "));
}

}  // namespace atl
