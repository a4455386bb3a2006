#include "net/step/flops.h"

#include "net/step/backward_needs.h"

namespace atl {
namespace {

class Counter {
 public:
  Counter(const ModelConfig& config, const ParameterLayout& layout)
      : config_(config), layout_(layout), needs_(layout) {}

  // Of all parameters from `first_unit` on.
  double products(std::size_t first_unit) const {
    double flops = 0;
    for (std::size_t unit = first_unit; unit < layout_.units.size(); ++unit) {
      for (std::size_t p = 0; p < layout_.units[unit].parameter_count; ++p) {
        const auto numel = static_cast<double>(layout_.parameters[layout_.units[unit].first_parameter + p].numel);
        flops += 2 * numel * (1 + (needs_.is_trained(unit, p) ? 1 : 0) + (makes_input_gradient(unit, p) ? 1 : 0));
      }
    }
    return flops;
  }

  // Of attention of `width` values a row, all heads together.
  double attention(std::int64_t width, std::int64_t length) const {
    double flops = 0;
    for (std::size_t block = 0; block + 2 < layout_.units.size(); ++block) {
      flops += 4.0 * static_cast<double>(width) * static_cast<double>(length) * (needs_.block(block).qkv ? 3 : 1);
    }
    return flops;
  }

 private:
  bool makes_input_gradient(std::size_t unit, std::size_t parameter) const {
    if (unit + 1 == layout_.units.size()) return needs_.head();
    // A table that is looked up has no input's gradient; by the paper's formula it counts as if it had.
    if (unit == 0) return config_.tie_word_embeddings ? needs_.head() : needs_.is_trained(unit, parameter);
    const BlockNeeds needs = needs_.block(unit - 1);
    switch (parameter) {
      case BlockTensor::kDown: return needs.gate_up;
      case BlockTensor::kGate:
      case BlockTensor::kUp:
      case BlockTensor::kFeedForwardNorm: return needs.feed_norm;
      case BlockTensor::kOutput: return needs.qkv;
      default: return needs.input;
    }
  }

  const ModelConfig& config_;
  const ParameterLayout& layout_;
  const BackwardNeeds needs_;
};

}  // namespace

double flops_per_token(const ModelConfig& config, const ParameterLayout& layout, std::int64_t length) {
  const Counter counter(config, layout);
  return counter.products(0) + counter.attention(config.hidden_size, length);
}

double torchtitan_flops_per_token(const ModelConfig& config, const ParameterLayout& layout, std::int64_t length) {
  const Counter counter(config, layout);
  return counter.products(config.tie_word_embeddings ? 0 : 1) +
         counter.attention(config.num_attention_heads * config.head_dim, length);
}

}  // namespace atl
