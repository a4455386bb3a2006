#include "app/gui/organise/preset_facts.h"

#include <limits>

#include "app/cli/run_preset.h"
#include "net/check/run_needs.h"
#include "net/data/dataset.h"
#include "net/data/token_shard.h"

namespace atl {
namespace {

// None is chosen yet, and what is asked of machines is told with one.
std::string any_dataset() {
  const ShardEntry shard{
      .file = "shard", .tokens = 1, .bytes = kTokenShardHeaderBytes + 2, .sha256 = std::string(64, '0')};
  DatasetManifest manifest;
  manifest.train = manifest.validation = {shard};
  return manifest.to_json();
}

}  // namespace

Result<PresetFacts> preset_facts(const std::string& name) {
  ATOLL_ASSIGN_OR_RETURN(RunConfig run, make_run(name, name, {}));
  run.dataset_json = any_dataset();
  ATOLL_ASSIGN_OR_RETURN(const RunNeeds needs, needs_of(run));
  return PresetFacts{.name = name,
                     .parameters = needs.parameters,
                     .payload_bytes = needs.round_payload_bytes,
                     .memory_bytes = static_cast<double>(needs.micro_batches.front().bytes),
                     .usual_memory_bytes = static_cast<double>(
                         choose_micro_batch(needs.micro_batches, std::numeric_limits<std::uint64_t>::max()).bytes),
                     .inner_steps = run.inner_steps,
                     .tokens_per_step = std::uint64_t{run.sequences_per_step} * run.sequence_length,
                     .min_islands = run.min_islands};
}

std::vector<std::string> run_preset_names() {
  std::vector<std::string> names;
  for (const std::string_view name : preset_names()) names.emplace_back(name);
  return names;
}

}  // namespace atl
