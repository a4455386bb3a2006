// The CUDA half of torch, which the wheel carries apart: opened at run time, so that one program trains where there are
// GPUs and where there are none. Once, by the thread that starts the trainer, before torch is first asked for CUDA:
// torch takes its hooks then, for good. Where this fails, torch keeps those that say "no CUDA".
#pragma once

#include <filesystem>
#include <string>

#include "net/base/result.h"

namespace atl {

struct TorchCuda {
  std::string driver = "libcuda.so.1";  // what must load first: without a driver there is nothing to compute on
  std::filesystem::path libtorch = {};  // the directory with torch/ and nvidia/; empty: libtorch_directory()
};

// libtorch_cuda, with NVIDIA's libraries that it names, for as long as the process lives. The error says what is
// missing and what brings it.
Result<void> load_torch_cuda(const TorchCuda& where = {});

}  // namespace atl
