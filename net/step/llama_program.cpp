#include "net/step/llama_program.h"

#include <algorithm>
#include <utility>

namespace atl {

LlamaProgram::LlamaProgram(const LlamaStep& step, std::int64_t sequences, std::int64_t length)
    : step_(step),
      length_(length),
      rows_(sequences * length),
      attention_{sequences, length, step.config_.num_attention_heads, step.config_.num_key_value_heads,
                 step.config_.head_dim},
      gathered_(step.layout_.units.size()) {
  if (empty()) return;
  tokens_ = builder_.input("tokens", DType::kInt32, 1, rows_);
  labels_ = builder_.input("labels", DType::kInt32, 1, rows_);
  order_ = builder_.input("order", DType::kInt32, 1, rows_);
  cosines_ = builder_.input("cosines", DType::kFloat32, length_, attention_.head_dim / 2);
  sines_ = builder_.input("sines", DType::kFloat32, length_, attention_.head_dim / 2);
}

Tensor LlamaProgram::activation(std::string name, std::int64_t columns) {
  return builder_.buffer(std::move(name), step_.element(), rows_, columns);
}

Tensor LlamaProgram::row_values(std::string name) {
  return builder_.buffer(std::move(name), DType::kFloat32, 1, rows_);
}

// --- Units ---

const Tensor& LlamaProgram::gather(std::size_t unit) {
  prefetch(unit);
  return *gathered_[unit];
}

void LlamaProgram::prefetch(std::size_t unit) {
  std::optional<Tensor>& there = gathered_[unit];
  if (there) return;
  const KeptTensors& kept = step_.kept_;
  const std::int64_t offset = step_.shard_offsets_[unit];
  const std::int64_t shard = step_.shard_offsets_[unit + 1] - offset;
  if (step_.options_.ranks == 1) {
    there = kept.weights.view(offset, 1, shard);
  } else if (step_.options_.keep_gathered) {
    there = kept.full_weights.view(offset * step_.options_.ranks, 1, step_.padded_numel(unit));
  } else {
    there = builder_.buffer("gathered unit", step_.element(), 1, step_.padded_numel(unit));
    builder_.collective(AllGather{kept.weights.view(offset, 1, shard), *there});
  }
}

void LlamaProgram::release(std::size_t unit) { gathered_[unit].reset(); }

bool LlamaProgram::adds(std::size_t unit) const {
  const bool whole_is_kept = step_.options_.ranks == 1 || step_.options_.keep_gathered;
  // A tied table has its gradient begun by the head, which comes first.
  return whole_is_kept && (!first_ || (unit == 0 && table_unit() == 0));
}

// Where a unit's whole gradient is added up. `computed_whole`: its every parameter gets a product, or nothing is
// computed here at all and it is zero.
Tensor LlamaProgram::open_gradient(std::size_t unit, bool computed_whole) {
  const std::int64_t offset = step_.shard_offsets_[unit];
  const std::int64_t shard = step_.shard_offsets_[unit + 1] - offset;
  const std::int64_t padded = step_.padded_numel(unit);
  if (step_.options_.ranks == 1) return step_.kept_.gradients.view(offset, 1, shard);
  if (step_.options_.keep_gathered) return step_.kept_.full_gradients.view(offset * step_.options_.ranks, 1, padded);
  const Tensor whole = builder_.buffer("whole gradient", DType::kFloat32, 1, padded);
  const std::int64_t computed = computed_whole ? step_.layout_.units[unit].numel : 0;
  if (computed < padded) builder_.compute(Fill{whole.view(computed, 1, padded - computed)});
  return whole;
}

void LlamaProgram::close_gradient(std::size_t unit, const Tensor& gradient, bool again) {
  if (step_.options_.ranks == 1 || step_.options_.keep_gathered) return;
  const std::int64_t offset = step_.shard_offsets_[unit];
  const std::int64_t shard = step_.shard_offsets_[unit + 1] - offset;
  ReduceScatter reduce{gradient, step_.kept_.gradients.view(offset, 1, shard), std::nullopt,
                       /*accumulate=*/again || !first_};
  if (reduce.accumulate && step_.options_.traits.reduce_scatter_scratch) {
    reduce.scratch = builder_.buffer("reduced part", DType::kFloat32, 1, shard);
  }
  builder_.collective(reduce);
  // It is reduced while the next unit is computed, whose buffers must not wait for its bytes.
  if (reducing_) builder_.keep(*reducing_);
  if (step_.options_.traits.overlaps) reducing_ = gradient;
}

Tensor LlamaProgram::part(const Tensor& unit_values, std::size_t unit, std::size_t first_parameter, std::int64_t rows,
                          std::int64_t columns) const {
  const ParameterUnit& of = step_.layout_.units[unit];
  const ParameterInfo& info = step_.layout_.parameters[of.first_parameter + first_parameter];
  return unit_values.view(info.offset - of.offset, rows, columns);
}

LlamaProgram::BlockWeights LlamaProgram::block_weights(const Tensor& values, std::size_t unit) const {
  using T = BlockTensor;
  const ModelConfig& c = step_.config_;
  const std::int64_t query = c.num_attention_heads * c.head_dim;
  return {.qkv = part(values, unit, T::kQuery, attention_.qkv_columns(), c.hidden_size),
          .output = part(values, unit, T::kOutput, c.hidden_size, query),
          .gate_up = part(values, unit, T::kGate, 2 * c.intermediate_size, c.hidden_size),
          .down = part(values, unit, T::kDown, c.hidden_size, c.intermediate_size),
          .attention_norm = part(values, unit, T::kAttentionNorm, 1, c.hidden_size),
          .feed_forward_norm = part(values, unit, T::kFeedForwardNorm, 1, c.hidden_size)};
}

Tensor LlamaProgram::table(const Tensor& values) const {
  const std::size_t parameter = table_unit() == 0 ? 0 : 1;
  return part(values, table_unit(), parameter, step_.config_.vocab_size, step_.config_.hidden_size);
}

Tensor LlamaProgram::head_norm(const Tensor& values) const {
  return part(values, head_unit(), 0, 1, step_.config_.hidden_size);
}

// --- Forward ---

Tensor LlamaProgram::forward_embedding() {
  const Tensor values = gather(0);
  if (step_.options_.traits.overlaps) prefetch(1);
  Tensor x;
  if (!empty()) {
    x = activation("embedded", step_.config_.hidden_size);
    builder_.compute(Embed{part(values, 0, 0, step_.config_.vocab_size, step_.config_.hidden_size), *tokens_, x});
  }
  release(0);
  return x;
}

void LlamaProgram::forward_attention(const BlockWeights& w, Kept& kept) {
  const ModelConfig& c = step_.config_;
  const auto epsilon = static_cast<float>(c.rms_norm_eps);
  if (!kept.normed) {
    kept.normed = activation("normed", c.hidden_size);
    const Tensor inverse = row_values("inverse rms");
    builder_.compute(RmsNorm{kept.x, w.attention_norm, *kept.normed, inverse, epsilon});
    kept.inverse_rms = inverse;
  }
  if (kept.middle) return;
  kept.qkv = activation("qkv", attention_.qkv_columns());
  builder_.compute(MatMul{.a = *kept.normed, .b = w.qkv, .out = *kept.qkv, .add = {}, .transpose_b = true});
  builder_.compute(Rope{*kept.qkv, *cosines_, *sines_, attention_.heads + attention_.key_value_heads,
                        attention_.head_dim, length_, 1.0f});
  kept.out = activation("attended", attention_.heads * attention_.head_dim);
  kept.logsumexp =
      builder_.buffer("logsumexp", DType::kFloat32, attention_.sequences * attention_.heads, attention_.length);
  const std::int64_t bytes =
      step_.options_.traits.attention_scratch(attention_, step_.element(), step_.options_.traits.threads);
  const Tensor scratch = builder_.buffer("attention's scratch", DType::kInt32, 1, (bytes + 3) / 4);
  builder_.compute(Attention{*kept.qkv, *kept.out, *kept.logsumexp, scratch, attention_});
  kept.middle = activation("middle", c.hidden_size);
  builder_.compute(MatMul{.a = *kept.out, .b = w.output, .out = *kept.middle, .add = kept.x, .transpose_b = true});
}

void LlamaProgram::forward_feed(const BlockWeights& w, Kept& kept) {
  const ModelConfig& c = step_.config_;
  if (!kept.feed_normed) {
    kept.feed_normed = activation("feed-forward's normed", c.hidden_size);
    const Tensor inverse = row_values("feed-forward's inverse rms");
    builder_.compute(
        RmsNorm{*kept.middle, w.feed_forward_norm, *kept.feed_normed, inverse, static_cast<float>(c.rms_norm_eps)});
    kept.feed_inverse_rms = inverse;
  }
  if (!kept.gate_up) {
    kept.gate_up = activation("gate and up", 2 * c.intermediate_size);
    builder_.compute(
        MatMul{.a = *kept.feed_normed, .b = w.gate_up, .out = *kept.gate_up, .add = {}, .transpose_b = true});
  }
  if (!kept.product) {
    kept.product = activation("gated", c.intermediate_size);
    builder_.compute(Swiglu{*kept.gate_up, *kept.product});
  }
}

Tensor LlamaProgram::forward_block(std::size_t block, const Tensor& x, Kept* kept, bool to_the_end) {
  const std::size_t unit = block + 1;
  const BlockWeights w = block_weights(*gathered_[unit], unit);
  Kept own;
  Kept& now = kept != nullptr ? *kept : own;
  now.x = x;
  forward_attention(w, now);
  forward_feed(w, now);
  if (!to_the_end) return {};
  const Tensor y = activation("block's output", step_.config_.hidden_size);
  builder_.compute(MatMul{.a = *now.product, .b = w.down, .out = y, .add = now.middle, .transpose_b = true});
  return y;
}

// What is to be computed again.
void LlamaProgram::forget(Kept& kept) const {
  switch (step_.options_.recompute) {
    case Recompute::kNone: return;
    case Recompute::kCheap:
      kept.normed.reset();
      kept.feed_normed.reset();
      kept.product.reset();
      return;
    case Recompute::kAll: {
      Kept input;
      input.x = kept.x;
      kept = input;
      return;
    }
  }
}

Tensor LlamaProgram::forward_blocks(std::vector<Kept>* kept) {
  Tensor x = forward_embedding();
  const std::size_t blocks = step_.layout_.units.size() - 2;
  for (std::size_t block = 0; block < blocks; ++block) {
    gather(block + 1);
    if (step_.options_.traits.overlaps) {
      prefetch(block + 2);
      if (block + 1 == blocks) prefetch(table_unit());
    }
    if (!empty()) {
      Kept now;
      x = forward_block(block, x, &now);
      if (kept != nullptr) {
        forget(now);
        kept->push_back(now);
      }
    }
    // The last block goes backward next.
    if (kept == nullptr || block + 1 < blocks) release(block + 1);
  }
  return x;
}

// --- The head ---

void LlamaProgram::head_slices(const Tensor& normed, const Tensor* dnormed, const Tensor& table, const Tensor* dtable,
                               bool add) {
  const std::int64_t vocab = step_.config_.vocab_size;
  const std::int64_t slice = std::clamp<std::int64_t>(step_.options_.traits.most_logits / vocab, 1, rows_);
  const Tensor logits = builder_.buffer("logits", step_.element(), slice, vocab);
  const Tensor row_sums = builder_.buffer("rows' losses", DType::kFloat32, 2, std::max<std::int64_t>(slice, 2));
  const KeptTensors& kept = step_.kept_;
  const Tensor scale = kept.scalars.column_range(static_cast<std::int64_t>(StepScalar::kLossScale), 1);
  for (std::int64_t first = 0; first < rows_; first += slice) {
    const std::int64_t count = std::min(slice, rows_ - first);
    const Tensor rows = normed.row_range(first, count);
    const Tensor here = logits.row_range(0, count);
    builder_.compute(MatMul{.a = rows, .b = table, .out = here, .add = {}, .transpose_b = true});
    builder_.compute(CrossEntropy{here, labels_->column_range(first, count), scale, kept.sums.column_range(0, 2),
                                  row_sums, step_.options_.max_z_loss, dnormed != nullptr});
    if (dnormed == nullptr) continue;
    builder_.compute(
        MatMul{.a = here, .b = rows, .out = *dtable, .add = {}, .transpose_a = true, .accumulate = add || first > 0});
    builder_.compute(MatMul{.a = here, .b = table, .out = dnormed->row_range(first, count), .add = {}});
  }
}

// The head's forward and backward pass; the gradient of the last block's output.
Tensor LlamaProgram::head(const Tensor& x) {
  const std::size_t unit = head_unit();
  const bool tied = table_unit() == 0;
  const Tensor values = gather(unit);
  const Tensor table_values = gather(table_unit());
  const Tensor gradient = open_gradient(unit, !empty());
  const Tensor table_gradient = tied ? open_gradient(0, !empty()) : gradient;
  Tensor dx;
  if (empty()) {
    if (first_ && step_.options_.keep_gathered) {
      builder_.compute(Fill{gradient});
      if (tied) builder_.compute(Fill{table_gradient});
    }
  } else {
    const std::int64_t hidden = step_.config_.hidden_size;
    const bool adds = this->adds(unit);
    const Tensor normed = activation("final normed", hidden);
    const Tensor inverse = row_values("final inverse rms");
    const Tensor dnormed = activation("gradient of final normed", hidden);
    builder_.compute(RmsNorm{x, head_norm(values), normed, inverse, static_cast<float>(step_.config_.rms_norm_eps)});
    const Tensor dtable = table(table_gradient);
    head_slices(normed, &dnormed, table(table_values), &dtable, adds);
    dx = activation("gradient of blocks", hidden);
    const Tensor partial = builder_.buffer("norm's partial sums", DType::kFloat32, norm_parts(rows_), hidden);
    builder_.compute(RmsNormBackward{.dy = dnormed,
                                     .x = x,
                                     .weight = head_norm(values),
                                     .inverse_rms = inverse,
                                     .residual = {},
                                     .dx = dx,
                                     .dweight = head_norm(gradient),
                                     .partial = partial,
                                     .accumulate = adds});
  }
  release(unit);
  release(table_unit());
  close_gradient(unit, gradient);
  // A tied table gets its gradient in two parts, this one and the embedding's: kept until then, it would be alive
  // beside the blocks.
  if (tied) close_gradient(0, table_gradient);
  return dx;
}

// --- Backward ---

Tensor LlamaProgram::backward_block(std::size_t block, Kept& kept, const Tensor& dy) {
  const std::size_t unit = block + 1;
  const Tensor values = gather(unit);
  if (step_.options_.traits.overlaps && block > 0) prefetch(unit - 1);
  const Tensor gradient = open_gradient(unit, !empty());
  Tensor dx;
  if (empty()) {
    if (first_ && step_.options_.keep_gathered) builder_.compute(Fill{gradient});
  } else {
    forward_block(block, kept.x, &kept, /*to_the_end=*/false);
    const BlockWeights w = block_weights(values, unit);
    const BlockWeights d = block_weights(gradient, unit);
    const bool adds = this->adds(unit);
    const std::int64_t hidden = step_.config_.hidden_size;
    const auto weight_gradient = [&](const Tensor& out, const Tensor& dout, const Tensor& in) {
      builder_.compute(MatMul{.a = dout, .b = in, .out = out, .add = {}, .transpose_a = true, .accumulate = adds});
    };
    const Tensor partial = builder_.buffer("norms' partial sums", DType::kFloat32, norm_parts(rows_), hidden);
    const auto norm = [&](const Tensor& from, const Tensor& x, const Tensor& weight, const Tensor& inverse,
                          const Tensor& residual, const Tensor& to, const Tensor& dweight) {
      builder_.compute(RmsNormBackward{from, x, weight, inverse, residual, to, dweight, partial, adds});
    };

    const Tensor dproduct = activation("gradient of gated", step_.config_.intermediate_size);
    builder_.compute(MatMul{.a = dy, .b = w.down, .out = dproduct, .add = {}});
    weight_gradient(d.down, dy, *kept.product);
    const Tensor dgate_up = activation("gradient of gate and up", 2 * step_.config_.intermediate_size);
    builder_.compute(SwigluBackward{dproduct, *kept.gate_up, dgate_up});
    weight_gradient(d.gate_up, dgate_up, *kept.feed_normed);
    const Tensor dfeed = activation("gradient of feed-forward's normed", hidden);
    builder_.compute(MatMul{.a = dgate_up, .b = w.gate_up, .out = dfeed, .add = {}});
    const Tensor dmiddle = activation("gradient of middle", hidden);
    norm(dfeed, *kept.middle, w.feed_forward_norm, *kept.feed_inverse_rms, dy, dmiddle, d.feed_forward_norm);

    const Tensor dout = activation("gradient of attended", attention_.heads * attention_.head_dim);
    builder_.compute(MatMul{.a = dmiddle, .b = w.output, .out = dout, .add = {}});
    weight_gradient(d.output, dmiddle, *kept.out);
    const Tensor dqkv = activation("gradient of qkv", attention_.qkv_columns());
    const std::int64_t bytes =
        step_.options_.traits.attention_scratch(attention_, step_.element(), step_.options_.traits.threads);
    const Tensor scratch = builder_.buffer("attention's scratch", DType::kInt32, 1, (bytes + 3) / 4);
    builder_.compute(AttentionBackward{dout, *kept.qkv, *kept.out, *kept.logsumexp, dqkv, scratch, attention_});
    builder_.compute(Rope{dqkv, *cosines_, *sines_, attention_.heads + attention_.key_value_heads, attention_.head_dim,
                          length_, -1.0f});
    weight_gradient(d.qkv, dqkv, *kept.normed);
    const Tensor dnormed = activation("gradient of normed", hidden);
    builder_.compute(MatMul{.a = dqkv, .b = w.qkv, .out = dnormed, .add = {}});
    dx = activation("gradient of blocks", hidden);
    norm(dnormed, kept.x, w.attention_norm, *kept.inverse_rms, dmiddle, dx, d.attention_norm);
  }
  release(unit);
  close_gradient(unit, gradient);
  return dx;
}

void LlamaProgram::backward_embedding(const Tensor& dx) {
  const Tensor gradient = open_gradient(0, false);
  const bool kept_whole = step_.options_.ranks == 1 || step_.options_.keep_gathered;
  if (kept_whole && !adds(0)) builder_.compute(Fill{gradient});
  if (!empty()) {
    const std::int64_t hidden = step_.config_.hidden_size;
    builder_.compute(EmbedBackward{dx, *tokens_, *order_, part(gradient, 0, 0, step_.config_.vocab_size, hidden)});
  }
  close_gradient(0, gradient, /*again=*/table_unit() == 0);
}

// --- Programs ---

void LlamaProgram::train(bool first) {
  first_ = first;
  std::vector<Kept> kept;
  const Tensor x = forward_blocks(&kept);
  Tensor dx = head(x);
  for (std::size_t block = step_.layout_.units.size() - 2; block-- > 0;) {
    Kept nothing;
    dx = backward_block(block, empty() ? nothing : kept[block], dx);
  }
  backward_embedding(dx);
}

void LlamaProgram::evaluate() {
  const Tensor x = forward_blocks(nullptr);
  const Tensor values = gather(head_unit());
  const Tensor table_values = gather(table_unit());
  if (!empty()) {
    const Tensor normed = activation("final normed", step_.config_.hidden_size);
    const Tensor inverse = row_values("final inverse rms");
    builder_.compute(RmsNorm{x, head_norm(values), normed, inverse, static_cast<float>(step_.config_.rms_norm_eps)});
    head_slices(normed, nullptr, table(table_values), nullptr, false);
  }
}

void LlamaProgram::logits(bool last_only) {
  const Tensor x = forward_blocks(nullptr);
  const Tensor values = gather(head_unit());
  const Tensor table_values = gather(table_unit());
  if (empty()) return;
  const std::int64_t count = last_only ? 1 : rows_;
  const Tensor normed = builder_.buffer("final normed", step_.element(), count, step_.config_.hidden_size);
  const Tensor inverse = builder_.buffer("final inverse rms", DType::kFloat32, 1, count);
  const Tensor logits = builder_.buffer("logits", step_.element(), count, step_.config_.vocab_size);
  builder_.compute(RmsNorm{x.row_range(rows_ - count, count), head_norm(values), normed, inverse,
                           static_cast<float>(step_.config_.rms_norm_eps)});
  builder_.compute(MatMul{.a = normed, .b = table(table_values), .out = logits, .add = {}, .transpose_b = true});
  builder_.output("logits", logits);
}

}  // namespace atl
