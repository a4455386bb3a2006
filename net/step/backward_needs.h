// Which gradients a training step's backward pass makes, so that all that is trained gets its own: with everything
// trained all of them, else it ends at the lowest parameter that is trained (net/model/train_only.h). What is computed
// (llama_backward.cpp) and what is counted (flops.h) follow from it. Pure; any thread.
#pragma once

#include <cstddef>

#include "net/model/layout.h"

namespace atl {

// Of a block, from its output down: of the input of silu(gate) * up, of that of gate and up, of the attention's output
// with its residual, of queries, keys and values, of the block's input.
struct BlockNeeds {
  bool gate_up = false, feed_norm = false, middle = false, qkv = false, input = false;
};

class BackwardNeeds {
 public:
  // `layout` outlives it.
  explicit BackwardNeeds(const ParameterLayout& layout);

  // Of the unit's parameters, by their number in it.
  bool is_trained(std::size_t unit, std::size_t parameter) const;
  // Whether anything is trained in this unit, or in one below it.
  bool trains_down_to(std::size_t unit) const { return lowest_trained_ <= unit; }
  // The gradient of the final norm's output.
  bool head() const;
  BlockNeeds block(std::size_t block) const;

 private:
  const ParameterLayout& layout_;
  std::size_t lowest_trained_ = 0;  // unit
};

}  // namespace atl
