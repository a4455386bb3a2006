#include "trainer/island/memory_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "kernels/model/gemm.h"
#include "net/base/memory.h"

namespace atl {
namespace {

std::string gigabytes(std::uint64_t bytes) { return fmt::format("{:.1f} GB", static_cast<double>(bytes) / 1e9); }

TrainingShape shape_of(const RunConfig& run, const IslandChoice& choice) {
  return {.sequences_per_step = run.sequences_per_step,
          .sequence_length = run.sequence_length,
          .wire = run.wire,
          .fragments = run.fragments,
          .attention = run.attention,
          .train_only = run.train_only,
          .island = {.micro_batch = choice.micro_batch, .keeps_work = choice.keeps_work}};
}

constexpr std::int64_t kMostRanks = 64;  // of an engine

}  // namespace

std::string MemoryPlan::log_line() const {
  return fmt::format(
      "local_ranks={} precision={} micro_batch={} of={} chosen_by={} recompute={} engine_bytes={} outer_bytes={} "
      "step_bytes={} between_steps_bytes={} most_bytes={} available_bytes={} gpu_bytes={} gpu_available_bytes={}",
      island.local_ranks, precision_name(island.precision), island.micro_batch, share,
      chosen_by_owner ? "owner" : "memory", recompute_name(island.recompute), needs.engine, needs.outer, needs.step,
      needs.between_steps, needs.most(), available, gpu_bytes, gpu_available);
}

std::string MemoryPlan::gpu_trouble() const {
  if (gpu_bytes <= gpu_available) return {};
  return fmt::format(
      "this run wants {} of each GPU, and {} are free: use more GPUs, end what else uses them, or join a "
      "run with a smaller model",
      gigabytes(gpu_bytes), gigabytes(gpu_available));
}

std::string MemoryPlan::trouble() const {
  if (needs.most() > available) {
    const char* what_to_do = island.micro_batch > 1
                                 ? "set island.micro_batch to 0, which leaves the choice to the trainer"
                                 : "end other programs, or join a run with a smaller model";
    return fmt::format("this run wants {} of memory with {} computed at once, and {} are free: {}",
                       gigabytes(needs.most()),
                       island.micro_batch == 1 ? "one sequence" : fmt::format("{} sequences", island.micro_batch),
                       gigabytes(available), what_to_do);
  }
  if (!lacks_bf16) return {};
  return "this processor has no bf16 arithmetic, so the model is computed in fp32: set island.precision to auto";
}

MemoryPlan plan_memory(const ModelConfig& model, const RunConfig& run, const IslandChoice& choice,
                       std::uint64_t available) {
  TrainingShape shape = shape_of(run, choice);
  const bool bf16 = choice.precision == PrecisionChoice::kBf16;
  const bool has_bf16 = chosen_gemm_kernel() == GemmKernel::kAvx512Bf16;
  shape.island.precision = bf16 && has_bf16 ? Precision::kBf16 : Precision::kFp32;
  const std::int64_t most_ranks = std::clamp<std::int64_t>(choice.threads, 1, run.sequences_per_step);
  shape.island.local_ranks =
      choice.local_ranks > 0 ? choice.local_ranks : std::min<std::int64_t>(most_ranks, kMostRanks);
  MicroBatch chosen = choose_micro_batch(micro_batches(model, shape), available);
  while (choice.local_ranks == 0 && shape.island.local_ranks > 1 &&
         (chosen.recompute != Recompute::kNone || !fits(chosen.bytes, available))) {
    shape.island.local_ranks /= 2;
    chosen = choose_micro_batch(micro_batches(model, shape), available);
  }
  shape.island.micro_batch = chosen.sequences;
  shape.island.recompute = chosen.recompute;
  return {.island = shape.island,
          .share = static_cast<std::uint32_t>(shape.share()),
          .chosen_by_owner = choice.micro_batch > 0,
          .lacks_bf16 = bf16 && !has_bf16,
          .needs = memory_needs(model, shape),
          .available = available};
}

MemoryPlan plan_gpu_memory(const ModelConfig& model, const RunConfig& run, const IslandChoice& choice, int gpus,
                           std::uint64_t gpu_available, std::uint64_t available) {
  TrainingShape shape = shape_of(run, choice);
  shape.island.local_ranks = choice.local_ranks > 0 ? std::min(choice.local_ranks, gpus) : gpus;
  shape.island.precision = choice.precision == PrecisionChoice::kFp32 ? Precision::kFp32 : Precision::kBf16;
  MicroBatch chosen = choose_micro_batch(gpu_micro_batches(model, shape), gpu_available);
  // Several micro-batches a step: what fits is gathered, and reduced, once for all of them.
  if (shape.island.local_ranks > 1 && chosen.sequences < shape.share()) {
    TrainingShape whole = shape;
    whole.island.keep_gathered = true;
    const MicroBatch kept = choose_micro_batch(gpu_micro_batches(model, whole), gpu_available);
    if (fits(kept.bytes, gpu_available) && kept.sequences == chosen.sequences && kept.recompute == chosen.recompute) {
      shape.island.keep_gathered = true;
      chosen = kept;
    }
  }
  shape.island.micro_batch = chosen.sequences;
  shape.island.recompute = chosen.recompute;
  MemoryPlan plan{.island = shape.island,
                  .share = static_cast<std::uint32_t>(shape.share()),
                  .chosen_by_owner = choice.micro_batch > 0,
                  .gpu_bytes = chosen.bytes,
                  .gpu_available = gpu_available,
                  .needs = memory_needs(model, shape),
                  .available = available};
  plan.needs.engine = plan.needs.step = 0;  // they are the GPUs'
  return plan;
}

HostMemory memory_there_is() {
  const UsableMemory memory = usable_memory();
  if (memory.total == 0) {
    return {std::numeric_limits<std::uint64_t>::max(), std::numeric_limits<std::uint64_t>::max()};
  }
  return {memory.total, std::min(memory.total, memory.available + own_memory())};
}

}  // namespace atl
