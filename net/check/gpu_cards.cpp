#include "net/check/gpu_cards.h"

#include <algorithm>
#include <iterator>

namespace atl {
namespace {

// More particular names before those that are part of them.
constexpr GpuCard kCards[] = {
    {"B200", 2250e12, 7700e9, 900e9},
    {"H200 NVL", 835e12, 4800e9, 450e9},
    {"H200", 989e12, 4800e9, 450e9},
    {"H100 NVL", 835e12, 3900e9, 300e9},
    {"H100 PCIe", 756e12, 2000e9, 300e9},
    {"H100", 989e12, 3350e9, 450e9},  // "NVIDIA H100 80GB HBM3": SXM
    {"H800", 989e12, 3350e9, 200e9},
    {"GH200", 989e12, 4000e9, 450e9},
    {"A100-PCIE-40GB", 312e12, 1555e9, 300e9},
    {"A100-SXM4-40GB", 312e12, 1555e9, 300e9},
    {"A100 80GB PCIe", 312e12, 1935e9, 300e9},
    {"A100", 312e12, 2039e9, 300e9},
    {"A800", 312e12, 2039e9, 200e9},
    {"A30", 165e12, 933e9, 100e9},
    {"A40", 149.7e12, 696e9, 56.25e9},
    {"A10G", 70e12, 600e9, 0},
    {"A10", 125e12, 600e9, 0},
    {"L40S", 362e12, 864e9, 0},
    {"L40", 181e12, 864e9, 0},
    {"L4", 121e12, 300e9, 0},
    {"RTX 6000 Ada", 364e12, 960e9, 0},
    {"RTX A6000", 154.8e12, 768e9, 56.25e9},
    // GeForce cards accumulate bf16 products in fp32 at half of the rate that is usually advertised.
    {"RTX 5090", 209.5e12, 1792e9, 0},
    {"RTX 4090", 165.2e12, 1008e9, 0},
    {"RTX 4080", 97.5e12, 717e9, 0},
    {"RTX 3090 Ti", 80e12, 1008e9, 56.25e9},
    {"RTX 3090", 71e12, 936e9, 56.25e9},
};

}  // namespace

const GpuCard* find_gpu_card(std::string_view name) {
  for (const GpuCard& card : kCards) {
    const std::size_t at = name.find(card.name);
    if (at == std::string_view::npos) continue;
    // "L4" is not part of the word "L40S", nor "H100" of "GH100".
    const auto is_word = [&](std::size_t i) {
      return i < name.size() && ((name[i] >= '0' && name[i] <= '9') || (name[i] >= 'A' && name[i] <= 'Z'));
    };
    const bool starts_inside = at > 0 && is_word(at - 1);
    if (!starts_inside && !is_word(at + card.name.size())) return &card;
  }
  return nullptr;
}

std::string_view kind_that_computes(std::span<const CardMemory> cards) {
  std::string_view best;
  std::uint64_t most = 0;
  for (const CardMemory& one : cards) {
    std::uint64_t together = 0;
    for (const CardMemory& other : cards) together += other.name == one.name ? other.bytes : 0;
    if (best.empty() || together > most) best = one.name;
    most = std::max(most, together);
  }
  return best;
}

double pcie_bytes_per_second(unsigned generation, unsigned lanes) {
  constexpr double kGigatransfers[] = {0, 2.5, 5, 8, 16, 32, 64};
  // 256-byte packets carry some 27 bytes of header and framing.
  constexpr double kPayload = 0.905;
  if (generation == 0 || generation >= std::size(kGigatransfers) || lanes > 16) return 0;
  const double encoding = generation <= 2 ? 8.0 / 10 : generation <= 5 ? 128.0 / 130 : 242.0 / 256;
  return kGigatransfers[generation] * 1e9 / 8 * lanes * encoding * kPayload;
}

}  // namespace atl
