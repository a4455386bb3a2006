// What the cards that Atoll knows can do at best, from NVIDIA's data sheets: dense bf16, memory bandwidth, NVLink in
// one direction. A constant table; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace atl {

struct GpuCard {
  std::string_view name;  // part of NVML's name for it
  double bf16_flops;      // dense, tensor cores, accumulated in fp32
  double memory_bytes_per_second;
  double nvlink_bytes_per_second;  // of all links, one direction; 0: none
};

// The first entry whose name is part of `name`; null: not listed.
const GpuCard* find_gpu_card(std::string_view name);

// Of cards of several kinds those with the most memory together compute: a slower one would hold up the others in every
// step, and a screen's card might not compute at all. Their name; of no card an empty one.
struct CardMemory {
  std::string_view name;
  std::uint64_t bytes = 0;
};
std::string_view kind_that_computes(std::span<const CardMemory> cards);

// What a link carries of payload: the line rate, encoding and packet headers taken off. 0: not known.
double pcie_bytes_per_second(unsigned generation, unsigned lanes);

}  // namespace atl
