#include "net/check/run_needs.h"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/wire_format.h"
#include "net/check/thresholds.h"
#include "net/data/run_dataset.h"
#include "net/disk/checkpoint_directory.h"
#include "net/model/fragments.h"
#include "net/model/train_only.h"

namespace atl {
namespace {

constexpr double kMargin = 1.2;
constexpr double kRuntimeBytes = 2e9;  // of each GPU: CUDA's context and libraries
constexpr int kMostGpus = 8;           // of an island that is worked out
constexpr double kMostBytes = 1e18;    // that are told: what a hub says of its run is believed no further

}  // namespace

Result<RunNeeds> needs_of(const RunConfig& run, const IslandShape& island) {
  ATOLL_ASSIGN_OR_RETURN(const ModelConfig model, model_config_from_json(run.model_json));
  ATOLL_ASSIGN_OR_RETURN(const RunDataFacts data, facts_of_run_data(run.dataset_json));
  const ParameterLayout layout = layout_of_training(model, run.train_only);
  RunNeeds needs;
  needs.run_id = run.run_id;
  needs.run_name = run.name;
  needs.parameters = static_cast<std::uint64_t>(layout.numel);
  for (int gpus = 1; gpus <= kMostGpus; ++gpus) {
    const std::uint64_t bytes = gpu_memory_needs(model, run.sequence_length, gpus, run.train_only);
    needs.gpu_bytes.push_back(static_cast<double>(bytes));
  }
  const TrainingShape shape{.sequences_per_step = run.sequences_per_step,
                            .sequence_length = run.sequence_length,
                            .wire = run.wire,
                            .fragments = run.fragments,
                            .attention = run.attention,
                            .train_only = run.train_only,
                            .island = island};
  needs.micro_batches = micro_batches(model, shape);
  needs.micro_batch_is_chosen = island.micro_batch > 0;
  needs.sequence_length = run.sequence_length;
  needs.bytes_beside_gpus = memory_needs(model, shape).most_beside_gpus();
  const std::uint64_t all_data = (data.train_tokens + data.validation_tokens) * (data.vocab_size > 65536 ? 4 : 2);
  needs.data_bytes = data.sources.empty() ? data.held_bytes : std::min(all_data, island.data_cache_bytes);
  needs.keep_states = run.keep_states;
  // Parameters and two moments of what is trained, fp32; the next one is written beside it.
  if (island.keeps_work) needs.work_bytes = 2 * 3 * sizeof(float) * static_cast<std::uint64_t>(trained_numel(layout));
  needs.payload_bytes = static_cast<std::uint64_t>(encoded_bytes(run.wire, trained_numel(layout)));
  ATOLL_ASSIGN_OR_RETURN(const auto fragments, fragments_of(layout, run.fragments));
  const std::int64_t largest = std::ranges::max(fragments, {}, &Fragment::numel).numel;
  needs.round_payload_bytes = static_cast<std::uint64_t>(encoded_bytes(run.wire, largest));
  needs.min_islands = run.min_islands;
  return needs;
}

std::string describe_model(const RunConfig& run) {
  const Result<ModelConfig> model = model_config_from_json(run.model_json);
  if (!model.ok()) return {};
  return fmt::format("llama, {} layers of {}, {} tokens", model->num_hidden_layers, model->hidden_size,
                     model->vocab_size);
}

double checkpoint_bytes(const RunNeeds& run) { return 8.0 * static_cast<double>(run.parameters); }

double disk_bytes(const RunNeeds& run, double checkpoints) {
  const double older = std::max(1u, run.keep_states) - 1;
  const double averages = 3 * static_cast<double>(run.payload_bytes);
  const double states = checkpoints + older + static_cast<double>(kMostLoggedStates);
  return kMargin * (states * checkpoint_bytes(run) + averages + static_cast<double>(run.data_bytes + run.work_bytes));
}

double gpu_bytes(const RunNeeds& run, std::size_t gpus) {
  if (run.gpu_bytes.empty()) return 0;
  const std::size_t place = std::clamp<std::size_t>(gpus, 1, run.gpu_bytes.size()) - 1;
  return run.gpu_bytes[place] + kRuntimeBytes;
}

RunCosts costs_of(const RunNeeds& run) {
  const auto whole = [](double bytes) { return static_cast<std::uint64_t>(std::clamp(bytes, 0.0, kMostBytes)); };
  return {.round = whole(2 * static_cast<double>(run.round_payload_bytes)),
          .join = whole(checkpoint_bytes(run)),
          .disk = whole(disk_bytes(run, CheckThresholds{}.disk_free.pass)),
          .memory = run.micro_batches.empty() ? 0 : run.micro_batches.front().bytes,
          .memory_beside_gpus = run.bytes_beside_gpus,
          .gpu_memory = run.gpu_bytes.empty() ? 0 : whole(gpu_bytes(run, 1))};
}

double sync_fraction(const RunNeeds& run, std::uint32_t islands, double bytes_per_second) {
  const double n = islands;
  return 2 * (n - 1) / n * static_cast<double>(run.round_payload_bytes) / bytes_per_second / run.inner_seconds;
}

}  // namespace atl
