#include "net/step/memory_needs.h"

#include <algorithm>

#include "net/model/train_only.h"

namespace atl {
namespace {

constexpr std::uint64_t kFloat = sizeof(float);
constexpr std::uint64_t kProgram = 200'000'000;  // measured: the libraries' own pages, heaps, an idle run
constexpr std::int64_t kEnoughTokens = 4096;     // at once: more of them make no step faster
constexpr std::int64_t kEnoughTokensOfAGpu = 16384;
constexpr double kBeyondBounds = 1e18;  // bytes that nobody has

std::int64_t sequences_at_once(const TrainingShape& shape) {
  return shape.island.micro_batch == 0 ? shape.share() : std::min(shape.island.micro_batch, shape.share());
}

// Sizes from outside are bounded, their products hardly: an arena that could be had nowhere is not laid out. In
// floating point, from below: one activation a block, and the logits that are there in slices.
bool beyond_bounds(const ModelConfig& config, const TrainingShape& shape) {
  const double rows = static_cast<double>(sequences_at_once(shape)) * static_cast<double>(shape.sequence_length);
  const double blocks = rows * static_cast<double>(config.num_hidden_layers) *
                        static_cast<double>(config.hidden_size + config.intermediate_size);
  return blocks > 1e15 || rows * static_cast<double>(config.vocab_size) > 1e12;
}

// Of all ranks together.
struct Arenas {
  std::uint64_t kept = 0, step = 0;
};

Arenas arenas_of(const ModelConfig& config, const TrainingShape& shape) {
  const StepOptions options{.ranks = static_cast<int>(std::max<std::int64_t>(1, shape.island.local_ranks)),
                            .precision = shape.island.precision,
                            .recompute = shape.island.recompute,
                            .keep_gathered = shape.island.keep_gathered,
                            .attention = shape.attention,
                            .train_only = shape.train_only,
                            .traits = cpu_step_traits(1)};
  const LlamaStep step(config, options);
  const auto all = [&](std::int64_t bytes) { return static_cast<std::uint64_t>(bytes) * options.ranks; };
  if (beyond_bounds(config, shape)) return {all(step.kept_bytes()), static_cast<std::uint64_t>(kBeyondBounds)};
  const Program pass = step.micro_batch(sequences_at_once(shape), shape.sequence_length, /*first=*/true);
  return {all(step.kept_bytes()), all(std::max(pass.step_bytes(), step.reduce().step_bytes()))};
}

// Of one GPU.
std::uint64_t gpu_arenas(const ModelConfig& config, const TrainingShape& shape) {
  const IslandShape& island = shape.island;
  const StepOptions options{.ranks = static_cast<int>(island.local_ranks),
                            .precision = island.precision,
                            .recompute = island.recompute,
                            .keep_gathered = island.keep_gathered,
                            .attention = shape.attention,
                            .train_only = shape.train_only,
                            .traits = cuda_step_traits()};
  if (beyond_bounds(config, shape)) return static_cast<std::uint64_t>(kBeyondBounds);
  const LlamaStep step(config, options);
  const Program pass = step.micro_batch(sequences_at_once(shape), shape.sequence_length, /*first=*/false);
  return static_cast<std::uint64_t>(step.kept_bytes() + std::max(pass.step_bytes(), step.reduce().step_bytes()));
}

}  // namespace

MemoryNeeds memory_needs(const ModelConfig& config, const TrainingShape& shape) {
  const ParameterLayout layout = layout_of_training(config, shape.train_only);
  const std::uint64_t whole = kFloat * static_cast<std::uint64_t>(layout.numel);  // the model once, in fp32
  const std::uint64_t trained = kFloat * static_cast<std::uint64_t>(trained_numel(layout));
  const std::uint64_t feedback = feeds_errors_back(shape.wire) ? trained : 0;
  const Arenas arenas = arenas_of(config, shape);
  MemoryNeeds needs;
  needs.program = kProgram;
  needs.engine = arenas.kept;
  needs.outer = 2 * whole + trained + 2 * feedback;
  // Each fragment's attempt holds the pseudo-gradient and what is lost of its part alone; together they are the whole.
  if (shape.fragments > 1) {
    needs.averages = static_cast<std::uint64_t>(encoded_bytes(shape.wire, trained_numel(layout)));
  }
  needs.step = arenas.step;
  if (shape.island.keeps_work) needs.work = 3 * trained;
  // A pause copies parameters, moments and residual of what is trained; a validation puts the parameters aside; an
  // average is encoded.
  needs.between_steps = std::max(whole, 3 * trained) + feedback;
  needs.exported = whole;
  return needs;
}

std::uint64_t gpu_memory_needs(const ModelConfig& config, std::int64_t sequence_length, int gpus,
                               const std::vector<std::string>& train_only) {
  return gpu_arenas(
      config,
      {.sequences_per_step = gpus,
       .sequence_length = sequence_length,
       .train_only = train_only,
       .island = {.local_ranks = gpus, .micro_batch = 1, .precision = Precision::kBf16, .recompute = Recompute::kAll}});
}

namespace {

// bytes(shape): with its micro-batch and what is computed again.
template <class Bytes>
std::vector<MicroBatch> choices_of(const TrainingShape& shape, std::int64_t enough_tokens, const Bytes& bytes) {
  const std::int64_t enough = std::max<std::int64_t>(1, enough_tokens / shape.sequence_length);
  const bool open = shape.island.micro_batch == 0;
  std::vector<MicroBatch> choices;
  TrainingShape tried = shape;
  const auto choose = [&](Recompute recompute) {
    tried.island.recompute = recompute;
    choices.push_back({static_cast<std::uint32_t>(tried.island.micro_batch), recompute, bytes(tried)});
  };
  tried.island.micro_batch = open ? std::min(shape.share(), enough) : sequences_at_once(shape);
  choose(Recompute::kNone);
  for (; open && tried.island.micro_batch > 1; choose(Recompute::kNone)) tried.island.micro_batch /= 2;
  choose(Recompute::kCheap);
  choose(Recompute::kAll);
  std::ranges::reverse(choices);
  return choices;
}

}  // namespace

std::vector<MicroBatch> micro_batches(const ModelConfig& config, const TrainingShape& shape) {
  return choices_of(shape, kEnoughTokens,
                    [&](const TrainingShape& tried) { return memory_needs(config, tried).most(); });
}

std::vector<MicroBatch> gpu_micro_batches(const ModelConfig& config, const TrainingShape& shape) {
  return choices_of(shape, kEnoughTokensOfAGpu, [&](const TrainingShape& tried) { return gpu_arenas(config, tried); });
}

MicroBatch choose_micro_batch(std::span<const MicroBatch> choices, std::uint64_t bytes) {
  MicroBatch chosen = choices.front();
  for (const MicroBatch& choice : choices) {
    if (fits(choice.bytes, bytes)) chosen = choice;
  }
  return chosen;
}

}  // namespace atl
