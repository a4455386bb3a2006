// One local rank's share of the model: its device with a shard of every unit's parameters, gradients and AdamW moments,
// and the programs that it runs over its sequences. Used by the rank's thread alone. Every function that says
// "collective" is called by all ranks' threads at once, each with its own sequences (perhaps none). All may throw
// (trainer/device/device.h).
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "net/base/id.h"
#include "net/model/fragments.h"
#include "net/step/llama_step.h"
#include "net/step/rope.h"
#include "trainer/device/device.h"
#include "trainer/engine/program_runner.h"

namespace atl {

// The sequences of one rank, as a TokenBatch (engine.h) has them, and in how many micro-batches all ranks go through
// theirs.
struct RankBatch {
  std::span<const std::int32_t> tokens, starts;
  std::span<const std::uint8_t> counts;
  std::int64_t sequences = 0;
  std::int64_t length = 0;
  std::int64_t micro_sequences = 1;
  std::int64_t micro_batches = 0;  // the same on every rank
  // After each micro-batch, with how many are left. What it throws ends the call. May be empty.
  std::function<void(std::int64_t left)> after_micro_batch;
};

// Over all ranks.
struct StepSums {
  double cross_entropy = 0;
  double squared_max_logit = 0;
  double gradient_squares = 0;
};

struct StepResult {
  StepSums sums;
  bool taken = false;
};

// What the host says of a step (StepScalar).
struct StepNumbers {
  float loss_scale = 0;
  float learning_rate = 0;
  float weight_decay = 0;
  std::int64_t step = 1;  // t, from 1
  // Results of others are not read yet: should one of them not be finite, this one is not taken.
  bool others_under_way = true;
};

enum class ShardArray { kParameters, kGradients, kFirstMoment, kSecondMoment };

enum class ValuesOf {
  kRanges,  // end to end
  kModel    // all of it, in canonical order
};

class RankModel {
 public:
  // config and step outlive it.
  RankModel(const ModelConfig& config, const LlamaStep& step, LocalRank rank, std::unique_ptr<Device> device);

  // Copies this rank's part of the ranges, to their values, end to end, and from these or those of the whole model. Of
  // gradients and moments what is frozen has none: its values stay as they are.
  void read_shard(ShardArray array, std::span<const ParameterRange> ranges, std::span<float> values);
  void write_shard(ShardArray array, std::span<const ParameterRange> ranges, std::span<const float> values,
                   ValuesOf of);

  // Collective. Gradients, reduced, and sums stay on the device.
  void forward_backward(const RankBatch& batch, const StepNumbers& numbers);
  // Waits for them.
  StepSums sums();
  // Clips, and takes AdamW's step unless a sum is not finite. What comes of it goes to a slot
  // (trainer/device/device.h).
  void update(int slot);
  // Waits for it.
  StepResult result(int slot);
  // Around a step, if it is to be measured.
  void measure_seconds(int slot) { device_->measure_seconds(slot); }
  std::optional<StepSeconds> take_seconds(int slot) { return device_->take_seconds(slot); }
  // Collective; waits.
  StepSums evaluate(const RankBatch& batch);
  // Collective; [rows, vocab] of the first micro-batch in fp32, or of its last row; empty without sequences.
  std::vector<float> logits(const RankBatch& batch, bool last_only);

  // Collectives are done, and no step comes for a while.
  void rest();
  // After a failed call.
  void reset() noexcept;
  std::int64_t step_bytes() const { return step_bytes_; }

 private:
  enum class Kind : std::uint8_t {
    kBegin,
    kFirst,
    kNext,
    kReduce,
    kUpdate,
    kEvaluate,
    kReduceSums,
    kLogits,
    kLastLogits,
    kRound
  };
  struct Made {
    Kind kind;
    std::int64_t sequences, length;
    Program program;
  };

  const Program& program(Kind kind, std::int64_t sequences = 0, std::int64_t length = 0);
  void take_step_arena(std::int64_t bytes);
  Program make(Kind kind, std::int64_t sequences, std::int64_t length) const;
  // Those of its sequences, on the device; how many they are.
  std::int64_t micro_batch_size(const RankBatch& batch, std::int64_t index) const;
  // Inputs and labels of `count` sequences from the batch's `first` on.
  void take_sequences(const RankBatch& batch, std::int64_t first, std::int64_t count);
  void run_micro_batch(const RankBatch& batch, std::int64_t index, const Program& program);
  void begin_sums(const StepNumbers& numbers);
  const Tensor& tensor_of(ShardArray array) const;
  template <class Copy>
  void for_each_piece(ShardArray array, std::span<const ParameterRange> ranges, Copy&& copy) const;

  const ModelConfig& config_;
  const LlamaStep& step_;
  const LocalRank rank_;
  std::unique_ptr<Device> device_;
  ProgramRunner runner_;
  std::list<Made> made_;  // the newest first
  std::int64_t step_bytes_ = 0;
  // Of the micro-batch that is being uploaded.
  std::vector<std::int32_t> inputs_, labels_, order_, starts_;
  RopeTable rope_;  // of the longest sequence seen
};

}  // namespace atl
