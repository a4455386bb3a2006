// What is made of the answers of a machine's GPUs, without CUDA. Pure but for what they say that they read; any thread.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "trainer/device/gpus.h"

namespace atl {

// One that was asked: usable, or why not.
struct AskedGpu {
  UsableGpu gpu;
  std::string trouble;  // empty: usable
};

// Of those that can be used, the ones of the kind that computes (net/check/gpu_cards.h).
GpuLook choose_alike(const std::vector<AskedGpu>& asked);

// CUDA_VISIBLE_DEVICES, by which an owner says which GPUs may be used (app/config/gpu_list.h); reads the environment.
enum class VisibleGpus { kAll, kNone, kSome };
VisibleGpus visible_gpus();

// Whether the kernel has a driver of NVIDIA's, or that of Windows beneath this Linux: a machine with GPUs, whatever
// CUDA says of them. `root`: where dev and proc are looked for.
bool kernel_has_driver(const std::filesystem::path& root = "/");

// There is nothing to look for: their owner lets this process have none.
GpuLook none_allowed();

}  // namespace atl
