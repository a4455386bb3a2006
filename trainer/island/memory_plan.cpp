#include "trainer/island/memory_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "net/base/memory.h"

namespace atl {
namespace {

std::string gigabytes(std::uint64_t bytes) { return fmt::format("{:.1f} GB", static_cast<double>(bytes) / 1e9); }

}  // namespace

std::string MemoryPlan::log_line() const {
  return fmt::format(
      "micro_batch={} of={} chosen_by={} engine_bytes={} outer_bytes={} step_bytes={} between_steps_bytes={} "
      "most_bytes={} available_bytes={}",
      micro_batch, share, chosen_by_owner ? "owner" : "memory", needs.engine, needs.outer, needs.step,
      needs.between_steps, needs.most(), available);
}

std::string MemoryPlan::trouble() const {
  if (needs.most() <= available) return {};
  const char* what_to_do = micro_batch > 1 ? "set island.micro_batch to 0, which leaves the choice to the trainer"
                                           : "end other programs, or join a run with a smaller model";
  return fmt::format(
      "this run wants {} of memory with {} computed at once, and {} are free: {}", gigabytes(needs.most()),
      micro_batch == 1 ? "one sequence" : fmt::format("{} sequences", micro_batch), gigabytes(available), what_to_do);
}

MemoryPlan plan_memory(const ModelConfig& model, const RunConfig& run, IslandShape island, std::uint64_t available) {
  TrainingShape shape{.sequences_per_step = run.sequences_per_step,
                      .sequence_length = run.sequence_length,
                      .wire = run.wire,
                      .fragments = run.fragments,
                      .island = island};
  const MicroBatch chosen = choose_micro_batch(micro_batches(model, shape), available);
  shape.island.micro_batch = chosen.sequences;
  return {.micro_batch = chosen.sequences,
          .share = static_cast<std::uint32_t>(shape.share()),
          .chosen_by_owner = island.micro_batch > 0,
          .needs = memory_needs(model, shape),
          .available = available};
}

std::uint64_t memory_there_is() {
  const UsableMemory memory = usable_memory();
  if (memory.total == 0) return std::numeric_limits<std::uint64_t>::max();  // the kernel does not say
  return std::min(memory.total, memory.available + own_memory());
}

}  // namespace atl
