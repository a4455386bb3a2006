#include "net/step/flops.h"

#include "net/model/layout.h"

namespace atl {
namespace {

// Of attention of `width` values a row, all heads together.
double attention_flops(const ModelConfig& config, std::int64_t width, std::int64_t length) {
  return 12.0 * static_cast<double>(config.num_hidden_layers) * static_cast<double>(width) *
         static_cast<double>(length);
}

}  // namespace

double flops_per_token(const ModelConfig& config, std::int64_t length) {
  return 6.0 * static_cast<double>(canonical_layout(config).numel) +
         attention_flops(config, config.hidden_size, length);
}

double torchtitan_flops_per_token(const ModelConfig& config, std::int64_t length) {
  const std::int64_t looked_up = config.tie_word_embeddings ? 0 : config.vocab_size * config.hidden_size;
  return 6.0 * static_cast<double>(canonical_layout(config).numel - looked_up) +
         attention_flops(config, config.num_attention_heads * config.head_dim, length);
}

}  // namespace atl
