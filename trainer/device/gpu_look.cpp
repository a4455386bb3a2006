#include "trainer/device/gpu_look.h"

#include <fmt/format.h>

#include <cstdlib>
#include <string_view>

#include "net/check/gpu_cards.h"

namespace atl {

GpuLook choose_alike(const std::vector<AskedGpu>& asked) {
  std::vector<CardMemory> cards;
  for (const AskedGpu& one : asked) {
    if (one.trouble.empty()) cards.push_back({one.gpu.name, one.gpu.total_bytes});
  }
  const std::string_view kind = kind_that_computes(cards);
  GpuLook look;
  for (const AskedGpu& one : asked) {
    std::string why = one.trouble;
    if (why.empty() && one.gpu.name == kind) {
      look.usable.push_back(one.gpu);
      continue;
    }
    look.amiss = look.amiss || !why.empty();
    if (why.empty()) why = fmt::format("it is no {}, and only GPUs that are alike compute together", kind);
    const std::string name = one.gpu.name.empty() ? std::string() : fmt::format(" ({})", one.gpu.name);
    look.why += fmt::format("{}GPU {}{}: {}", look.why.empty() ? "" : "; ", one.gpu.ordinal, name, why);
  }
  return look;
}

VisibleGpus visible_gpus() {
  const char* visible = std::getenv("CUDA_VISIBLE_DEVICES");
  if (visible == nullptr) return VisibleGpus::kAll;
  const std::string_view text = visible;
  return text.empty() || text.starts_with('-') ? VisibleGpus::kNone : VisibleGpus::kSome;
}

bool kernel_has_driver(const std::filesystem::path& root) {
  std::error_code ignored;
  return std::filesystem::exists(root / "proc/driver/nvidia/version", ignored) ||
         std::filesystem::exists(root / "dev/dxg", ignored);
}

GpuLook none_allowed() { return {.usable = {}, .amiss = false, .why = "no GPU may be used here (island.gpus)"}; }

}  // namespace atl
