// The canonical flat order of a model's parameters: embed_tokens, each block's tensors, the final norm, lm_head unless
// tied. It depends on the model alone, never on local ranks, so that islands of any size exchange flat vectors. No
// torch.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "net/model/config.h"

namespace atl {

// What a parameter is at the beginning of a run (initialise.h).
enum class Beginning { kNormal, kOne };

struct ParameterInfo {
  std::string name;                 // HuggingFace's
  std::vector<std::int64_t> shape;  // rows are outputs, as in torch.nn.Linear
  std::int64_t offset = 0;          // first element in the canonical order
  std::int64_t numel = 0;
  Beginning beginning = Beginning::kNormal;
  bool trained = true;  // by the run; what is not stays as it began (net/model/train_only.h)
};

// What a transformer block is made of, in the canonical order.
struct BlockTensor {
  enum Place { kQuery, kKey, kValue, kOutput, kGate, kUp, kDown, kAttentionNorm, kFeedForwardNorm, kCount };
};

// What is gathered and freed as one: the embedding, one transformer block, or the final norm with an untied head.
struct ParameterUnit {
  std::size_t first_parameter = 0;
  std::size_t parameter_count = 0;
  std::int64_t offset = 0;
  std::int64_t numel = 0;
};

struct ParameterLayout {
  std::vector<ParameterInfo> parameters;
  std::vector<ParameterUnit> units;  // embedding, blocks in order, head
  std::int64_t numel = 0;            // of the whole model, unpadded
};

ParameterLayout canonical_layout(const ModelConfig& config);
std::int64_t trained_numel(const ParameterLayout& layout);

}  // namespace atl
