// The rules by which an owner's machine pauses its training (docs/owners-rules.md), each by the setting that makes it.
// Plain values; any thread.
#pragma once

#include "net/control/words.h"

namespace atl {

enum class OwnersRule {
  kHours,
  kLoad,  // of other programs, on the processor
  kGpu,   // of other programs, on its GPUs
  kIdle,  // somebody is there
  kBattery,
  kMetered,
  kGpuTemperature,
  kCpuTemperature,
  kPower,
  kUnknown,
};

template <>
struct WordTable<OwnersRule> {
  static constexpr std::array<std::string_view, 10> kWords{"schedule.hours",
                                                           "rules.load",
                                                           "rules.gpu",
                                                           "rules.idle",
                                                           "rules.battery",
                                                           "rules.metered",
                                                           "limits.gpu_temperature",
                                                           "limits.cpu_temperature",
                                                           "limits.power",
                                                           "unknown"};
};

}  // namespace atl
