#include "app/cli/train_memory.h"

#include <fmt/format.h>

#include <algorithm>

#include "app/cli/text.h"
#include "net/check/run_needs.h"
#include "net/step/memory_needs.h"

namespace atl {
namespace {

std::string bytes(double count) { return format_bytes(count); }

// Why they do not hold it either; empty: they do, as far as it can be told without them.
Result<std::string> why_not_on(const GpuFacts& gpu, const RunConfig& run, const TrainMachine& machine) {
  if (gpu.devices.empty()) return gpu.problem.empty() ? "there is no GPU" : "its GPUs cannot be asked: " + gpu.problem;
  if (!machine.gpu_kernels) return std::string("this build of atoll computes on CPUs alone");
  ATOLL_ASSIGN_OR_RETURN(const RunNeeds needs, needs_of(run));
  const auto smallest =
      static_cast<double>(std::ranges::min_element(gpu.devices, {}, &GpuDevice::memory_bytes)->memory_bytes);
  const double each = gpu_bytes(needs, gpu.devices.size());
  if (smallest < each) {
    return fmt::format("of its {} each has {}, and the run wants {}", format_number_of(gpu.devices.size(), "GPU"),
                       bytes(smallest), bytes(each));
  }
  if (machine.memory_bytes < needs.bytes_beside_gpus) {
    return fmt::format("beside GPUs the run wants {}", bytes(static_cast<double>(needs.bytes_beside_gpus)));
  }
  return std::string();
}

}  // namespace

Status check_train_memory(const RunConfig& run, std::optional<int> micro_batch, DeviceChoice device,
                          const TrainMachine& machine) {
  ATOLL_ASSIGN_OR_RETURN(const ModelConfig model, model_config_from_json(run.model_json));
  const MicroBatch least = micro_batches(model, {.sequences_per_step = run.sequences_per_step,
                                                 .sequence_length = run.sequence_length,
                                                 .wire = run.wire,
                                                 .attention = run.attention,
                                                 .island = {.micro_batch = micro_batch.value_or(0)}})
                               .front();
  if (machine.memory_bytes == 0 || least.bytes <= machine.memory_bytes) return ok_status();
  std::string gpus;
  if (device != DeviceChoice::kProcessor) {
    ATOLL_ASSIGN_OR_RETURN(gpus, why_not_on(machine.ask_gpus(), run, machine));
    if (gpus.empty()) return ok_status();  // the trainer says what of it holds
    gpus = fmt::format(" ({})", gpus);
  }
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("this machine has {} of memory, and this run wants {} with {} of {} tokens computed at once "
                           "on the processor{}; choose {}",
                           bytes(static_cast<double>(machine.memory_bytes)), bytes(static_cast<double>(least.bytes)),
                           format_number_of(least.sequences, "sequence"), run.sequence_length, gpus,
                           least.sequences > 1 ? "a smaller --micro-batch" : "a smaller --model")};
}

}  // namespace atl
