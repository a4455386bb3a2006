// Rotary position embeddings: the tables of cosines and sines. No torch.
#pragma once

#include <cstdint>
#include <vector>

#include "net/model/config.h"

namespace atl {

// [head_dim / 2] frequencies in radians a position, with the llama3 scaling where the configuration has it.
std::vector<float> rope_frequencies(const ModelConfig& config);

// Row-major [length, head_dim / 2]; position p turns pair (i, i + head_dim / 2) by p * frequency[i].
struct RopeTable {
  std::int64_t length = 0;
  std::vector<float> cosines;
  std::vector<float> sines;
};
RopeTable rope_table(const ModelConfig& config, std::int64_t length);

}  // namespace atl
