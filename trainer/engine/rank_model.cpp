#include "trainer/engine/rank_model.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>

#include "net/model/initialise.h"

namespace atl {
namespace {

std::span<float> part(std::vector<float>& values, std::int64_t offset, std::int64_t count) {
  return std::span(values).subspan(static_cast<std::size_t>(offset), static_cast<std::size_t>(count));
}

void add(LossSums& sums, const LossSums& more) {
  sums.cross_entropy += more.cross_entropy;
  sums.squared_max_logit += more.squared_max_logit;
}

}  // namespace

// Some sequences of a rank's batch; empty on a rank that has fewer than others.
struct RankModel::MicroBatch {
  SequenceShape shape;
  std::vector<std::int32_t> inputs;
  std::vector<std::int32_t> labels;
  bool empty() const { return shape.sequences == 0; }
};

RankModel::RankModel(const ModelConfig& config, const ParameterLayout& layout, Communicator& communicator)
    : config_(config), layout_(layout), communicator_(communicator) {
  std::int64_t total = 0;
  for (const ParameterUnit& unit : layout.units) {
    shard_offsets_.push_back(total);
    total += FlatUnit::shard_numel(unit.numel, communicator.world_size());
  }
  shard_offsets_.push_back(total);
  for (auto* array : {&parameters_, &gradients_, &first_moment_, &second_moment_}) {
    array->assign(static_cast<std::size_t>(total), 0.0f);
  }
  for (std::size_t i = 0; i < layout.units.size(); ++i) {
    const std::int64_t count = shard_offsets_[i + 1] - shard_offsets_[i];
    units_.push_back(std::make_unique<FlatUnit>(layout.units[i].numel, part(parameters_, shard_offsets_[i], count),
                                                part(gradients_, shard_offsets_[i], count), communicator, allocator_));
  }
  embedding_ = units_.front()->view(0, {config.vocab_size, config.hidden_size});
  for (std::size_t i = 1; i + 1 < units_.size(); ++i) blocks_.emplace_back(config, layout, layout.units[i], *units_[i]);
  head_.norm = units_.back()->view(0, {config.hidden_size});
  head_.output = config.tie_word_embeddings
                     ? embedding_
                     : units_.back()->view(config.hidden_size, {config.vocab_size, config.hidden_size});
  head_.epsilon = config.rms_norm_eps;
}

void RankModel::initialise(std::uint64_t seed) {
  std::vector<float> whole;
  for (std::size_t u = 0; u < layout_.units.size(); ++u) {
    const ParameterUnit& unit = layout_.units[u];
    const std::int64_t shard = shard_offsets_[u + 1] - shard_offsets_[u];
    const std::int64_t mine = unit.offset + shard * communicator_.rank().value;
    for (std::size_t p = unit.first_parameter; p < unit.first_parameter + unit.parameter_count; ++p) {
      const ParameterInfo& parameter = layout_.parameters[p];
      const std::int64_t begin = std::max(mine, parameter.offset);
      const std::int64_t end = std::min(mine + shard, parameter.offset + parameter.numel);
      if (begin >= end) continue;
      whole.resize(static_cast<std::size_t>(parameter.numel));
      initialise_parameter(config_, parameter, p, seed, whole);
      std::copy(whole.begin() + (begin - parameter.offset), whole.begin() + (end - parameter.offset),
                parameters_.begin() + shard_offsets_[u] + (begin - mine));
    }
  }
}

std::vector<float>& RankModel::array_of(ShardArray array) {
  switch (array) {
    case ShardArray::kParameters: return parameters_;
    case ShardArray::kGradients: return gradients_;
    case ShardArray::kFirstMoment: return first_moment_;
    case ShardArray::kSecondMoment: return second_moment_;
  }
  return parameters_;
}

template <class Copy>
void RankModel::for_each_piece(std::span<const ParameterRange> ranges, Copy&& copy) const {
  std::int64_t before = 0;  // values of the ranges before this one
  for (const ParameterRange& range : ranges) {
    for (std::size_t u = 0; u < layout_.units.size(); ++u) {
      const ParameterUnit& unit = layout_.units[u];
      const std::int64_t shard = shard_offsets_[u + 1] - shard_offsets_[u];
      const std::int64_t first = unit.offset + shard * communicator_.rank().value;  // canonical, of this rank's part
      const std::int64_t begin = std::max(range.offset, first);
      const std::int64_t end = std::min({range.offset + range.numel, first + shard, unit.offset + unit.numel});
      if (begin < end) copy(shard_offsets_[u] + begin - first, before + begin - range.offset, begin, end - begin);
    }
    before += range.numel;
  }
}

void RankModel::read_shard(ShardArray array, std::span<const ParameterRange> ranges, std::span<float> values) const {
  const std::vector<float>& own = const_cast<RankModel*>(this)->array_of(array);
  for_each_piece(ranges, [&](std::int64_t mine, std::int64_t place, std::int64_t, std::int64_t count) {
    std::copy_n(own.begin() + mine, count, values.begin() + place);
  });
}

void RankModel::write_shard(ShardArray array, std::span<const ParameterRange> ranges,
                            std::span<const float> canonical) {
  std::vector<float>& own = array_of(array);
  for_each_piece(ranges, [&](std::int64_t mine, std::int64_t, std::int64_t begin, std::int64_t count) {
    std::copy_n(canonical.begin() + begin, count, own.begin() + mine);
  });
}

void RankModel::zero_gradients() { std::fill(gradients_.begin(), gradients_.end(), 0.0f); }

RankModel::MicroBatch RankModel::micro_batch_of(const RankBatch& batch, std::int64_t index) {
  const std::int64_t first = std::min(index * batch.micro_sequences, batch.shape.sequences);
  const std::int64_t count = std::min(batch.micro_sequences, batch.shape.sequences - first);
  MicroBatch micro_batch{{count, batch.shape.length}, {}, {}};
  const std::int32_t* row = batch.tokens.data() + first * (batch.shape.length + 1);
  for (std::int64_t i = 0; i < count; ++i, row += batch.shape.length + 1) {
    micro_batch.inputs.insert(micro_batch.inputs.end(), row, row + batch.shape.length);
    micro_batch.labels.insert(micro_batch.labels.end(), row + 1, row + batch.shape.length + 1);
  }
  if (rope_.length < batch.shape.length) rope_ = rope_table(config_, batch.shape.length);
  return micro_batch;
}

at::Tensor RankModel::forward_embedding(const MicroBatch& micro_batch) {
  FlatUnit& unit = *units_.front();
  unit.gather();
  at::Tensor x;
  if (!micro_batch.empty()) x = embed(embedding_.value, micro_batch.inputs);
  unit.release_parameters();
  return x;
}

at::Tensor RankModel::forward_blocks(const MicroBatch& micro_batch, at::Tensor x, std::vector<Activation>* kept) {
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    FlatUnit& unit = *units_[i + 1];
    unit.gather();
    if (!micro_batch.empty()) {
      // Each block is a graph of its own: its input is a leaf.
      at::Tensor input = x.detach();
      input.set_requires_grad(kept != nullptr);
      x = blocks_[i].forward(input, micro_batch.shape, rope_);
      if (kept != nullptr) kept->push_back({input, x});
    }
    unit.release_parameters();
  }
  return x.defined() ? x.detach() : x;
}

void RankModel::gather_head() {
  if (config_.tie_word_embeddings) units_.front()->gather();
  units_.back()->gather();
}

void RankModel::release_head() {
  units_.back()->release_parameters();
  if (config_.tie_word_embeddings) units_.front()->release_parameters();
}

at::Tensor RankModel::backward_head(const MicroBatch& micro_batch, const at::Tensor& x, LossScale scale,
                                    LossSums& sums) {
  const at::NoGradGuard no_grad;
  gather_head();
  if (config_.tie_word_embeddings) units_.front()->open_gradients();
  units_.back()->open_gradients();
  at::Tensor dx;
  if (!micro_batch.empty()) dx = head_.backward(x, micro_batch.labels, scale, sums);
  release_head();
  units_.back()->reduce_gradients();
  // A tied table gets its gradient in two parts, this one and the embedding's: kept until then, it would be alive
  // beside two blocks.
  if (config_.tie_word_embeddings) units_.front()->reduce_gradients();
  return dx;
}

at::Tensor RankModel::backward_block(std::size_t block, Activation activation, const at::Tensor& dy) {
  FlatUnit& unit = *units_[block + 1];
  unit.gather();
  unit.open_gradients();
  at::Tensor dx;
  if (activation.output.defined()) {
    dx = torch::autograd::grad({activation.output}, {activation.input}, {dy})[0];
  }
  activation = {};
  unit.release_parameters();
  unit.reduce_gradients();
  return dx;
}

void RankModel::backward_embedding(const MicroBatch& micro_batch, const at::Tensor& dx) {
  FlatUnit& unit = *units_.front();
  unit.open_gradients();
  if (!micro_batch.empty()) embed_backward(dx.contiguous(), micro_batch.inputs, embedding_.gradient);
  unit.reduce_gradients();
}

LossSums RankModel::forward_backward(const RankBatch& batch, LossScale scale) {
  LossSums sums;
  for (std::int64_t index = 0; index < batch.micro_batches; ++index) {
    const MicroBatch micro_batch = micro_batch_of(batch, index);
    std::vector<Activation> kept;
    at::Tensor x = forward_embedding(micro_batch);
    x = forward_blocks(micro_batch, x, &kept);
    at::Tensor dx = backward_head(micro_batch, x, scale, sums);
    x.reset();
    for (std::size_t block = blocks_.size(); block-- > 0;) {
      Activation activation;
      if (!kept.empty()) {
        activation = std::move(kept.back());
        kept.pop_back();
      }
      dx = backward_block(block, std::move(activation), dx);
    }
    backward_embedding(micro_batch, dx);
    if (batch.after_micro_batch) batch.after_micro_batch(batch.micro_batches - index - 1);
  }
  return sums;
}

LossSums RankModel::loss(const RankBatch& batch) {
  const at::NoGradGuard no_grad;
  LossSums sums;
  for (std::int64_t index = 0; index < batch.micro_batches; ++index) {
    const MicroBatch micro_batch = micro_batch_of(batch, index);
    const at::Tensor x = forward_blocks(micro_batch, forward_embedding(micro_batch), nullptr);
    gather_head();
    if (!micro_batch.empty()) add(sums, head_.loss(x, micro_batch.labels));
    release_head();
    if (batch.after_micro_batch) batch.after_micro_batch(batch.micro_batches - index - 1);
  }
  return sums;
}

at::Tensor RankModel::logits(const RankBatch& batch, bool last_only) {
  const at::NoGradGuard no_grad;
  const MicroBatch micro_batch = micro_batch_of(batch, 0);
  const at::Tensor x = forward_blocks(micro_batch, forward_embedding(micro_batch), nullptr);
  gather_head();
  at::Tensor result;
  if (!micro_batch.empty()) result = head_.logits(last_only ? x.narrow(0, x.size(0) - 1, 1) : x);
  release_head();
  return result;
}

void RankModel::adamw(const AdamWHyper& hyper, float learning_rate, std::int64_t step, float gradient_scale) {
  adamw_step({parameters_, gradients_, first_moment_, second_moment_}, hyper, learning_rate, step, gradient_scale);
}

void RankModel::release_units() {
  for (const auto& unit : units_) unit->release();
}

}  // namespace atl
