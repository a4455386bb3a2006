#include "net/model/memory_needs.h"

#include <algorithm>

#include "net/model/layout.h"

namespace atl {
namespace {

constexpr std::uint64_t kFloat = sizeof(float);
constexpr std::uint64_t kProgram = 200'000'000;  // measured: the libraries' own pages, heaps, an idle run
constexpr std::uint64_t kHeapPart = 8;           // measured: of what a step holds, at most this part comes on top
constexpr double kLogitsOfASlice = 1 << 24;      // the head's, at once (trainer/model/head.cpp)
constexpr std::int64_t kEnoughTokens = 4096;     // at once: more of them make no step faster

// Widths of one row (token) in fp32 values. In floating point: sizes from outside are bounded, their products hardly.
struct Widths {
  double hidden, query, key_value, inner, heads, layers;
};

Widths widths_of(const ModelConfig& config) {
  const auto width = [](std::int64_t value) { return static_cast<double>(value); };
  return {width(config.hidden_size),
          width(config.num_attention_heads * config.head_dim),
          width(config.num_key_value_heads * config.head_dim),
          width(config.intermediate_size),
          width(config.num_attention_heads),
          width(config.num_hidden_layers)};
}

std::uint64_t whole_bytes(double bytes) { return static_cast<std::uint64_t>(std::min(bytes, 1e18)); }

// Kept from a block's forward pass for its backward pass, a row (trainer/model/functions.cpp; the attention's scores
// are computed again, flash attention keeps their logarithmic sums alone):
//   input, its norm, middle, its norm: 4 hidden        rotated q, k, v: query + 2 key_value
//   attention's output: query; its sums: heads         gate and up, their product: 3 inner
//   the norms' inverse root mean squares: 2
double kept_of_a_block(const Widths& w) {
  return 4 * w.hidden + 2 * w.query + 2 * w.key_value + 3 * w.inner + w.heads + 2;
}

// Beside all of that, at the first block to go backward, a row: the gradients of its output, of the product and of gate
// and up; or, once these are gone with what was kept for them, those of the attention.
double backward_of_a_block(const Widths& w) {
  const double feed_forward = w.hidden + 2 * w.inner;
  const double gone = 3 * w.inner + 2 * w.hidden;
  return std::max(feed_forward, w.hidden + 3 * w.query + 4 * w.key_value - gone);
}

std::int64_t sequences_at_once(const TrainingShape& shape) {
  return shape.island.micro_batch == 0 ? shape.share() : std::min(shape.island.micro_batch, shape.share());
}

// A rank's, in fp32 values.
double step_values(const ModelConfig& config, const ParameterLayout& layout, const TrainingShape& shape) {
  const Widths w = widths_of(config);
  const double rows = static_cast<double>(sequences_at_once(shape)) * static_cast<double>(shape.sequence_length);
  const auto vocabulary = static_cast<double>(config.vocab_size);
  // The last block's output; then the norm, its gradient and either a slice of logits or the gradient of the output.
  const double kept = rows * (w.layers * kept_of_a_block(w) + w.hidden);
  const double slice = std::min(rows * vocabulary, std::max(vocabulary, kLogitsOfASlice));
  double head = rows * (2 * w.hidden + 1) + std::max(slice, rows * w.hidden);
  double block = rows * backward_of_a_block(w);
  if (shape.island.local_ranks > 1) {  // whole units are gathered, parameters and gradients
    head += 2 * (vocabulary + 1) * w.hidden;
    block += 2 * static_cast<double>(layout.units[1].numel);
  }
  return kept + std::max(head, block);
}

}  // namespace

MemoryNeeds memory_needs(const ModelConfig& config, const TrainingShape& shape) {
  const ParameterLayout layout = canonical_layout(config);
  const std::uint64_t whole = kFloat * static_cast<std::uint64_t>(layout.numel);  // the model once, in fp32
  const std::uint64_t feedback = feeds_errors_back(shape.wire) ? whole : 0;
  MemoryNeeds needs;
  needs.program = kProgram;
  needs.engine = 4 * whole;
  needs.outer = 3 * whole + 2 * feedback;
  // Each fragment's attempt holds the pseudo-gradient and what is lost of its part alone; together they are the whole.
  if (shape.fragments > 1) needs.averages = static_cast<std::uint64_t>(encoded_bytes(shape.wire, layout.numel));
  needs.step = whole_bytes(kFloat * static_cast<double>(shape.island.local_ranks) * step_values(config, layout, shape));
  needs.heap = needs.step / kHeapPart;
  // A pause copies parameters, moments and residual; a checkpoint parameters and momentum; an average is encoded.
  needs.between_steps = 3 * whole + feedback;
  needs.exported = whole;
  return needs;
}

std::vector<MicroBatch> micro_batches(const ModelConfig& config, const TrainingShape& shape) {
  const std::int64_t enough = std::max<std::int64_t>(1, kEnoughTokens / shape.sequence_length);
  const bool open = shape.island.micro_batch == 0;
  std::vector<MicroBatch> choices;
  TrainingShape tried = shape;
  tried.island.micro_batch = open ? std::min(shape.share(), enough) : sequences_at_once(shape);
  do {
    choices.push_back({static_cast<std::uint32_t>(tried.island.micro_batch), memory_needs(config, tried).most()});
    tried.island.micro_batch /= 2;
  } while (open && tried.island.micro_batch > 0);
  std::ranges::reverse(choices);
  return choices;
}

MicroBatch choose_micro_batch(std::span<const MicroBatch> choices, std::uint64_t bytes) {
  MicroBatch chosen = choices.front();
  for (const MicroBatch& choice : choices) {
    if (choice.bytes <= bytes - bytes / 10) chosen = choice;
  }
  return chosen;
}

}  // namespace atl
