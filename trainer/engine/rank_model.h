// One local rank's share of the model: a shard of every unit's parameters, gradients and AdamW moments, and the forward
// and backward passes over its sequences. Every public function that says "collective" is called by all ranks' threads
// at once, each with its own sequences (perhaps none).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "net/model/fragments.h"
#include "net/model/layout.h"
#include "trainer/engine/engine.h"
#include "trainer/fsdp/flat_unit.h"
#include "trainer/model/block.h"
#include "trainer/model/head.h"

namespace atl {

// The sequences of one rank, rows of length + 1 tokens, and in how many micro-batches all ranks go through theirs.
struct RankBatch {
  std::span<const std::int32_t> tokens;
  SequenceShape shape;
  std::int64_t micro_sequences = 1;
  std::int64_t micro_batches = 0;  // the same on every rank
  // After each micro-batch, with how many are left. What it throws ends the call. May be empty.
  std::function<void(std::int64_t left)> after_micro_batch;
};

enum class ShardArray { kParameters, kGradients, kFirstMoment, kSecondMoment };

class RankModel {
 public:
  // config, layout and communicator outlive it.
  RankModel(const ModelConfig& config, const ParameterLayout& layout, Communicator& communicator);

  void initialise(std::uint64_t seed);

  // Copies this rank's part of the ranges: to their values, end to end, and from a canonical vector of the whole model.
  void read_shard(ShardArray array, std::span<const ParameterRange> ranges, std::span<float> values) const;
  void write_shard(ShardArray array, std::span<const ParameterRange> ranges, std::span<const float> canonical);

  void zero_gradients();
  // Collective. Gradients are added to the shard; returns this rank's sums.
  LossSums forward_backward(const RankBatch& batch, LossScale scale);
  // Collective.
  LossSums loss(const RankBatch& batch);
  // Collective; [rows, vocab] of the first micro-batch, or of its last row; an undefined tensor without sequences.
  at::Tensor logits(const RankBatch& batch, bool last_only = false);

  double gradient_sum_of_squares() const { return sum_of_squares(gradients_); }
  void adamw(const AdamWHyper& hyper, float learning_rate, std::int64_t step, float gradient_scale);

  // After a failed collective: frees what it left.
  void release_units();
  UnshardedAllocator& memory() { return allocator_; }

 private:
  struct Activation {
    at::Tensor input;   // a leaf of its own, cut from the block before
    at::Tensor output;  // what autograd starts from
  };
  struct MicroBatch;

  MicroBatch micro_batch_of(const RankBatch& batch, std::int64_t index);
  at::Tensor forward_embedding(const MicroBatch& micro_batch);
  at::Tensor forward_blocks(const MicroBatch& micro_batch, at::Tensor x, std::vector<Activation>* kept);
  at::Tensor backward_head(const MicroBatch& micro_batch, const at::Tensor& x, LossScale scale, LossSums& sums);
  at::Tensor backward_block(std::size_t block, Activation activation, const at::Tensor& dy);
  void backward_embedding(const MicroBatch& micro_batch, const at::Tensor& dx);
  void gather_head();
  void release_head();
  std::vector<float>& array_of(ShardArray array);
  // What this rank has of the ranges, piece by piece: copy(place in its arrays, place in the ranges' values, first
  // value in the canonical order, count).
  template <class Copy>
  void for_each_piece(std::span<const ParameterRange> ranges, Copy&& copy) const;

  const ModelConfig& config_;
  const ParameterLayout& layout_;
  Communicator& communicator_;
  UnshardedAllocator allocator_;
  // This rank's shards of all units, end to end, each padded to the same length on every rank.
  std::vector<float> parameters_;
  std::vector<float> gradients_;
  std::vector<float> first_moment_;
  std::vector<float> second_moment_;
  std::vector<std::int64_t> shard_offsets_;  // of each unit in these arrays
  std::vector<std::unique_ptr<FlatUnit>> units_;
  ParameterView embedding_;
  std::vector<TransformerBlock> blocks_;
  Head head_;
  RopeTable rope_;  // grows with the longest sequence seen
};

}  // namespace atl
