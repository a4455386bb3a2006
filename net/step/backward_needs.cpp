#include "net/step/backward_needs.h"

#include <algorithm>
#include <initializer_list>

namespace atl {

BackwardNeeds::BackwardNeeds(const ParameterLayout& layout) : layout_(layout) {
  const auto trains = [&](std::size_t unit) {
    for (std::size_t p = 0; p < layout.units[unit].parameter_count; ++p) {
      if (is_trained(unit, p)) return true;
    }
    return false;
  };
  while (lowest_trained_ + 1 < layout.units.size() && !trains(lowest_trained_)) ++lowest_trained_;
}

bool BackwardNeeds::is_trained(std::size_t unit, std::size_t parameter) const {
  return layout_.parameters[layout_.units[unit].first_parameter + parameter].trained;
}

bool BackwardNeeds::head() const {
  const std::size_t unit = layout_.units.size() - 1;
  return lowest_trained_ < unit || is_trained(unit, 0);
}

BlockNeeds BackwardNeeds::block(std::size_t block) const {
  using T = BlockTensor;
  const std::size_t unit = block + 1;
  const auto any = [&](std::initializer_list<std::size_t> parameters) {
    return std::ranges::any_of(parameters, [&](std::size_t each) { return is_trained(unit, each); });
  };
  BlockNeeds needs;
  needs.input = lowest_trained_ < unit || any({T::kAttentionNorm});
  needs.qkv = needs.input || any({T::kQuery, T::kKey, T::kValue});
  needs.middle = needs.qkv || any({T::kOutput});
  needs.feed_norm = needs.middle || any({T::kFeedForwardNorm});
  needs.gate_up = needs.feed_norm || any({T::kGate, T::kUp});
  return needs;
}

}  // namespace atl
