#include "app/cli/gpu_choice.h"

#include "app/agent/gpu_presence.h"
#include "app/cli/own_programs.h"
#include "app/config/gpu_list.h"
#include "net/check/gpu_probe.h"

namespace atl {

Status check_gpus_exist(const std::string& gpu_list, const AbortSignal& interrupt) {
  ATOLL_ASSIGN_OR_RETURN(const GpuList chosen, parse_gpu_list(gpu_list));
  if (!chosen.numbers || chosen.numbers->empty()) return ok_status();
  GpuProbe probe;
  ATOLL_ASSIGN_OR_RETURN(probe.program, locate_gpu_probe());
  const GpuFacts gpu = list_gpus(probe, interrupt);
  if (interrupt.raised()) return Error{ErrorCode::kAborted, "interrupted"};
  return check_gpus_exist(chosen, gpu);
}

}  // namespace atl
