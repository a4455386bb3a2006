// The programs of Llama 3's training step on one local rank: what is kept from step to step, and the forward and
// backward pass, the optimiser's step, the evaluation as operations (net/step/operation.h). The backward pass is
// written out; there is no autograd. Pure; it takes memory for its lists alone, whatever the model's size, so that a
// machine can be asked what a run would need of it. Any thread.
//
// FSDP: each unit of the layout (embedding, a block, the head) is one flat parameter, of which each rank keeps a shard:
// fp32 master parameters, gradients and AdamW's moments. Units are gathered just before they are used and freed after;
// their gradients are whole from a block's backward pass until they are reduced. With one rank nothing is gathered.
//
// Of a unit that is not trained whole (net/model/train_only.h) what is trained and what is frozen are flat parameters
// apart from each other: the frozen one has neither gradient nor moments, and the backward pass ends where nothing
// below is trained.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "net/model/attention_scope.h"
#include "net/model/config.h"
#include "net/model/layout.h"
#include "net/step/program.h"
#include "net/step/traits.h"

namespace atl {

enum class Precision : std::uint8_t { kFp32, kBf16 };

constexpr std::string_view precision_name(Precision precision) {
  return precision == Precision::kBf16 ? "bf16" : "fp32";
}

// What a block's forward pass leaves for its backward pass.
enum class Recompute : std::uint8_t {
  kNone,   // everything
  kCheap,  // not what takes a single pass to compute again: norms' outputs, silu(gate) * up
  kAll,    // the block's input alone
};

constexpr std::string_view recompute_name(Recompute recompute) {
  return recompute == Recompute::kNone ? "none" : recompute == Recompute::kCheap ? "cheap" : "all";
}

struct StepOptions {
  int ranks = 1;
  Precision precision = Precision::kFp32;
  Recompute recompute = Recompute::kNone;
  // Units stay gathered, and gradients whole, from the first to the last micro-batch of a step: for models that fit.
  bool keep_gathered = false;
  AttentionScope attention = AttentionScope::kPacked;
  float max_z_loss = 0;  // coefficient of mean over tokens of (largest logit)^2
  float clip_norm = 0;   // 0: never clipped
  float beta1 = 0.9f, beta2 = 0.95f, epsilon = 1e-8f;
  std::vector<std::string> train_only = {};  // patterns (net/model/train_only.h); empty: everything
  StepTraits traits;
};

// A flat parameter: what is trained of a unit, or what is not.
struct FlatPart {
  std::int64_t numel = 0;   // unpadded
  std::int64_t offset = 0;  // of its shard in a rank's arrays
  std::int64_t shard = 0;   // elements on each rank; 0: there is nothing
};

// Parameters that lie side by side both in the canonical order and in a flat parameter.
struct FlatRun {
  std::size_t unit = 0;
  bool trained = true;
  std::int64_t canonical = 0;  // of its first element
  std::int64_t place = 0;      // of the same in the flat parameter
  std::int64_t numel = 0;
};

// The kept arena of a rank. Shards of all units lie end to end, those of what is trained first, each padded to the same
// length on every rank.
struct KeptTensors {
  Tensor parameters;                              // fp32 [shard_numel]
  Tensor gradients, first_moment, second_moment;  // fp32 [trained_shard_numel]
  Tensor weights;                                 // bf16 [shard_numel], of parameters; in fp32 the same as these
  Tensor scalars;                                 // StepScalar
  Tensor sums;                                    // StepSum
  Tensor full_weights, full_gradients;  // keep_gathered alone: T of all units, fp32 of what is trained, padded
};

class LlamaStep {
 public:
  // `config` is valid.
  LlamaStep(const ModelConfig& config, const StepOptions& options);

  const ParameterLayout& layout() const { return layout_; }
  const StepOptions& options() const { return options_; }
  DType element() const { return options_.precision == Precision::kBf16 ? DType::kBfloat16 : DType::kFloat32; }
  const KeptTensors& kept() const { return kept_; }
  std::int64_t kept_bytes() const { return buffers_.bytes(); }
  const KeptBuffers& buffers() const { return buffers_; }
  // The same on every rank.
  const FlatPart& part(std::size_t unit, bool trained) const { return parts_[unit][trained ? 1 : 0]; }
  std::span<const FlatRun> runs() const { return runs_; }  // ascending in the canonical order
  std::int64_t shard_numel() const { return kept_.parameters.numel(); }
  std::int64_t trained_shard_numel() const { return kept_.gradients.numel(); }
  // Elements of unit u with padding.
  std::int64_t padded_numel(std::size_t u) const {
    return (part(u, true).shard + part(u, false).shard) * options_.ranks;
  }

  // Inputs of the programs that see tokens: "tokens", "labels", "order" int32 [rows], "cosines", "sines" fp32 [length,
  // head_dim / 2], with AttentionScope::kDocument "starts" int32 [rows] (Attention); none of them where there are no
  // sequences.

  // Before the first micro-batch. Empty where nothing is kept gathered.
  Program begin() const;
  // Forward and backward; sums and gradients are added up, or begun by the `first` one. Every rank runs as many, some
  // perhaps without sequences.
  Program micro_batch(std::int64_t sequences, std::int64_t length, bool first) const;
  // After the last: gradients reduced, sums of all ranks.
  Program reduce() const;
  // And then: clipped, AdamW.
  Program update() const;
  // Forward alone; adds to sums.
  Program evaluate(std::int64_t sequences, std::int64_t length) const;
  // Output "logits": T [rows, vocab]; with last_only [1, vocab].
  Program logits(std::int64_t sequences, std::int64_t length, bool last_only) const;
  // Sums of all ranks.
  Program reduce_sums() const;
  // weights = parameters, rounded. Empty in fp32.
  Program round_parameters() const;

 private:
  friend class LlamaProgram;

  void place_parts();
  bool trains(std::size_t unit) const { return part(unit, true).numel > 0; }

  const ModelConfig config_;
  const StepOptions options_;
  const ParameterLayout layout_;
  std::vector<std::array<FlatPart, 2>> parts_;  // by unit; frozen, trained
  std::vector<FlatRun> runs_;
  std::vector<std::int64_t> places_;  // by parameter, of its first element in its flat parameter
  KeptBuffers buffers_;
  KeptTensors kept_;
};

}  // namespace atl
