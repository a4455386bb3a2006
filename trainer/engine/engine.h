// One island's model: parameters, gradients and optimiser state sharded over local ranks (a thread each), and the inner
// step on them. Owned and driven by one thread, which each call blocks; the rank threads are the engine's own.
//
// Vectors that cross this interface are in the canonical flat order (net/model/layout.h), unpadded, whatever the
// number of local ranks. The header includes no torch.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "net/base/result.h"
#include "net/model/config.h"
#include "net/model/fragments.h"
#include "net/step/llama_step.h"
#include "net/step/step_part.h"
#include "trainer/optim/adamw.h"

namespace atl {

struct EngineOptions {
  int local_ranks = 1;
  // Of the initial parameters, which do not depend on local_ranks. None: they are 0 until they are written, for whoever
  // writes them before anything else.
  std::optional<std::uint64_t> seed = 0;
  AdamWHyper adamw = {};
  double clip_norm = 1.0;                  // of the global gradient; 0: never clipped
  double max_z_loss = 0.0;                 // coefficient of mean over tokens of (largest logit)^2
  std::int64_t micro_batch_sequences = 0;  // most sequences a rank computes at once; 0: all of its share
  int compute_threads = 1;                 // shared evenly by the local ranks, at least one each
  Precision precision = Precision::kFp32;  // of activations and gathered weights; the master parameters are fp32
  Recompute recompute = Recompute::kNone;
  bool keep_gathered = false;  // whole parameters and gradients, for a whole step (net/step/llama_step.h)
  AttentionScope attention = AttentionScope::kPacked;
  std::vector<std::string> train_only = {};  // patterns (net/model/train_only.h); empty: everything is trained
  // After each micro-batch, also of an evaluation, on a thread of the engine's. False: the call is given up,
  // if micro-batches are left of it: kAborted, and nothing has changed. May be empty; must not block.
  std::function<bool()> on_micro_batch = {};
  // A rank that waits longer for the others gives up the call.
  std::chrono::seconds collective_timeout{600};

  Status validate() const;
};

// Sequences of equal length, row-major [sequences, length + 1]: inputs are all tokens but the last of a row, labels all
// but the first. What the spans are of stays the caller's.
struct TokenBatch {
  std::span<const std::int32_t> tokens;
  std::int64_t sequences = 0;
  std::int64_t length = 0;  // inputs of each sequence
  // [sequences, length]: where in its sequence the document of each input begins, as Attention of net/step/operation.h
  // has it; for AttentionScope::kDocument. Empty: a sequence is one document.
  std::span<const std::int32_t> starts = {};
  // [sequences, length + 1]: 0 where a token, as a label, counts for nothing: neither in the loss, nor among the tokens
  // that the loss is a mean over. Empty: all count.
  std::span<const std::uint8_t> counts = {};

  std::int64_t token_count() const { return sequences * length; }
  std::int64_t predicted_count() const;  // of labels that count
};

struct StepReport {
  double loss_nats = 0;      // mean cross-entropy over the labels that count, without max-z-loss; of none: 0
  double max_z_loss = 0;     // coefficient times mean squared largest logit
  double gradient_norm = 0;  // before clipping
  std::int64_t tokens = 0;   // inputs
  double seconds = 0;        // of the whole step, or since the one before it was finished
  std::optional<StepSeconds> parts = {};  // of local rank 0, where its device tells
};

struct GradientReport {
  double loss_nats = 0;
  double max_z_loss = 0;
  std::vector<float> gradients;  // canonical, unclipped; 0 of what is not trained
};

// Of the fullest rank; taken once, when the first batch of a shape comes, and what net/step works out for it.
struct EngineMemory {
  std::int64_t kept_bytes = 0;  // parameters, gradients, moments
  std::int64_t step_bytes = 0;  // activations, gathered units, scratch
};

class Engine {
 public:
  // With fresh parameters (net/model/initialise.h), which lie in main memory meanwhile, 4 bytes each. On this
  // processor.
  static Result<std::unique_ptr<Engine>> create(const ModelConfig& config, const EngineOptions& options);
  virtual ~Engine() = default;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  virtual const ModelConfig& config() const = 0;
  virtual std::int64_t numel() const = 0;  // canonical, unpadded

  // Spans of numel() elements. Reading and writing, like evaluations, come after the steps that are under way.
  virtual void read_parameters(std::span<float> canonical) const = 0;
  virtual void write_parameters(std::span<const float> canonical) = 0;
  // Some of them. Read: the values of the ranges, end to end. write_parameters: from a span of numel() elements, of
  // which those of the ranges alone are looked at; write_range_values: from what was read.
  virtual void read_parameters(std::span<const ParameterRange> ranges, std::span<float> values) const = 0;
  virtual void write_parameters(std::span<const ParameterRange> ranges, std::span<const float> canonical) = 0;
  virtual void write_range_values(std::span<const ParameterRange> ranges, std::span<const float> values) = 0;

  // Forward, backward, clip, AdamW. A loss or gradient that is not finite is kNonFinite, and changes nothing. kAborted,
  // as from evaluate() and gradients(): on_micro_batch said so. While no other step is under way.
  virtual Result<StepReport> train_step(const TokenBatch& batch, float learning_rate) = 0;

  // The same in two halves, so that a device need not wait for the host between steps. begin_step() enqueues a step and
  // does not wait for it; the tokens are free when it returns. finish_step() waits for the oldest that was begun, and
  // says what came of it. Two are under way at most. A step that was begun after one which turns out not to be finite
  // changes nothing, and is kNonFinite, too. Where on_micro_batch gives up a step, those begun before it stay under
  // way. What fails otherwise while steps are under way ends them: nobody knows whether they were taken, so that this
  // call and every later one that can say so tells the cause.
  virtual Status begin_step(const TokenBatch& batch, float learning_rate) = 0;
  virtual Result<StepReport> finish_step() = 0;
  virtual int steps_under_way() const = 0;
  // How many should be when one is finished: 0 where a step is over when it was begun.
  virtual int steps_ahead() const = 0;

  // Mean cross-entropy in nats a token that counts; of none: 0.
  virtual Result<double> evaluate(const TokenBatch& batch) = 0;

  // Forward and backward without an optimiser step; parameters and moments stay as they are.
  virtual Result<GradientReport> gradients(const TokenBatch& batch) = 0;

  // [sequences, length, vocab_size] of the batch's inputs.
  virtual Result<std::vector<float>> logits(const TokenBatch& batch) = 0;

  // [vocab_size] after the last of `tokens` (at least one, at most max_position_embeddings).
  virtual Result<std::vector<float>> next_token_logits(std::span<const std::int32_t> tokens) = 0;

  // AdamW's state: moments of ranges that are trained, end to end, and the steps taken so far, as far as they are
  // finished.
  virtual std::int64_t optimizer_steps() const = 0;
  virtual void read_moments(std::span<const ParameterRange> ranges, std::span<float> first,
                            std::span<float> second) const = 0;
  virtual void write_moments(std::span<const ParameterRange> ranges, std::span<const float> first,
                             std::span<const float> second, std::int64_t steps) = 0;

  // Between steps that are far apart: what a step takes is given back until the next, where it is the machine's main
  // memory.
  virtual void rest() = 0;
  virtual EngineMemory memory() const = 0;

 protected:
  Engine() = default;
};

}  // namespace atl
