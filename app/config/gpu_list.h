// Which of a machine's GPUs: "all", "none", or numbers and ranges as nvidia-smi counts them, "0-3,6". Plain values; any
// thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "net/base/result.h"

namespace atl {

inline constexpr unsigned kMostGpus = 64;  // of a machine

struct GpuList {
  std::optional<std::vector<unsigned>> numbers = {};  // ascending, each once; empty: all

  bool contains(unsigned gpu) const;
  // Those that are not among `others`, which are ascending. Of all, that is every number that there could be: CUDA
  // stops at the first of CUDA_VISIBLE_DEVICES that the machine does not have.
  GpuList without(const std::vector<unsigned>& others) const;
  // The same text for the same GPUs.
  std::string text() const;
  // The value of CUDA_VISIBLE_DEVICES; empty when all may be used.
  std::optional<std::string> visible_devices() const;

  bool operator==(const GpuList&) const = default;
};

// kInvalidArgument says what is allowed.
Result<GpuList> parse_gpu_list(std::string_view text);

}  // namespace atl
