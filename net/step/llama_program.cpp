#include "net/step/llama_program.h"

#include <algorithm>
#include <utility>

namespace atl {

LlamaProgram::LlamaProgram(const LlamaStep& step, std::int64_t sequences, std::int64_t length)
    : step_(step),
      needs_(step.layout_),
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
  if (step.options_.attention == AttentionScope::kDocument) {
    starts_ = builder_.input("starts", DType::kInt32, 1, rows_);
  }
}

Tensor LlamaProgram::activation(std::string name, std::int64_t columns) {
  return builder_.buffer(std::move(name), step_.element(), rows_, columns);
}

Tensor LlamaProgram::row_values(std::string name) {
  return builder_.buffer(std::move(name), DType::kFloat32, 1, rows_);
}

// --- Units ---

const LlamaProgram::UnitValues& LlamaProgram::gather(std::size_t unit) {
  prefetch(unit);
  return *gathered_[unit];
}

void LlamaProgram::prefetch(std::size_t unit) {
  std::optional<UnitValues>& there = gathered_[unit];
  if (there) return;
  const KeptTensors& kept = step_.kept_;
  const int ranks = step_.options_.ranks;
  const auto gathered = [&](const FlatPart& part) -> Tensor {
    if (part.shard == 0) return {};
    const Tensor shard = kept.weights.view(part.offset, 1, part.shard);
    if (ranks == 1) return shard;
    if (step_.options_.keep_gathered) return kept.full_weights.view(part.offset * ranks, 1, part.shard * ranks);
    Tensor whole = builder_.buffer("gathered unit", step_.element(), 1, part.shard * ranks);
    builder_.collective(AllGather{shard, whole});
    return whole;
  };
  const Tensor frozen = gathered(step_.part(unit, false));
  there = UnitValues{frozen, gathered(step_.part(unit, true))};
}

void LlamaProgram::release(std::size_t unit) { gathered_[unit].reset(); }

bool LlamaProgram::adds(std::size_t unit) const {
  const bool whole_is_kept = step_.options_.ranks == 1 || step_.options_.keep_gathered;
  // A tied table has its gradient begun by the head, which comes first.
  return whole_is_kept && (!first_ || (unit == 0 && table_unit() == 0));
}

// Where a unit's whole gradient is added up. `computed_whole`: every trained parameter of it gets a product, or nothing
// is computed here at all and it is zero.
Tensor LlamaProgram::open_gradient(std::size_t unit, bool computed_whole) {
  const FlatPart& part = step_.part(unit, true);
  if (part.shard == 0) return {};
  const std::int64_t padded = part.shard * step_.options_.ranks;
  if (step_.options_.ranks == 1) return step_.kept_.gradients.view(part.offset, 1, part.shard);
  if (step_.options_.keep_gathered) {
    return step_.kept_.full_gradients.view(part.offset * step_.options_.ranks, 1, padded);
  }
  const Tensor whole = builder_.buffer("whole gradient", DType::kFloat32, 1, padded);
  const std::int64_t computed = computed_whole ? part.numel : 0;
  if (computed < padded) builder_.compute(Fill{whole.view(computed, 1, padded - computed)});
  return whole;
}

void LlamaProgram::close_gradient(std::size_t unit, const Tensor& gradient, bool again) {
  const FlatPart& part = step_.part(unit, true);
  if (part.shard == 0 || step_.options_.ranks == 1 || step_.options_.keep_gathered) return;
  ReduceScatter reduce{gradient, step_.kept_.gradients.view(part.offset, 1, part.shard), std::nullopt,
                       /*accumulate=*/again || !first_};
  if (reduce.accumulate && step_.options_.traits.reduce_scatter_scratch) {
    reduce.scratch = builder_.buffer("reduced part", DType::kFloat32, 1, part.shard);
  }
  builder_.collective(reduce);
  // It is reduced while the next unit is computed, whose buffers must not wait for its bytes.
  if (reducing_) builder_.keep(*reducing_);
  if (step_.options_.traits.overlaps) reducing_ = gradient;
}

Tensor LlamaProgram::part(const UnitValues& values, std::size_t unit, std::size_t first_parameter, std::int64_t rows,
                          std::int64_t columns) const {
  const std::size_t parameter = step_.layout_.units[unit].first_parameter + first_parameter;
  const Tensor& of = step_.layout_.parameters[parameter].trained ? values.trained : values.frozen;
  return of.view(step_.places_[parameter], rows, columns);
}

Tensor LlamaProgram::gradient_part(const Tensor& gradient, std::size_t unit, std::size_t first_parameter,
                                   std::int64_t rows, std::int64_t columns) const {
  return gradient.view(step_.places_[step_.layout_.units[unit].first_parameter + first_parameter], rows, columns);
}

LlamaProgram::Projections LlamaProgram::projections(const UnitValues& values, std::size_t unit,
                                                    std::size_t first_parameter, std::size_t parameters) const {
  const auto info = [&](std::size_t i) -> const ParameterInfo& {
    return step_.layout_.parameters[step_.layout_.units[unit].first_parameter + i];
  };
  Projections products;
  std::int64_t column = 0;
  for (std::size_t i = first_parameter; i < first_parameter + parameters;) {
    std::size_t end = i;
    std::int64_t rows = 0;
    for (; end < first_parameter + parameters && info(end).trained == info(i).trained; ++end) {
      rows += info(end).shape[0];
    }
    products.push_back({part(values, unit, i, rows, info(i).shape[1]), column, info(i).trained, i});
    column += rows;
    i = end;
  }
  return products;
}

LlamaProgram::BlockWeights LlamaProgram::block_weights(const UnitValues& values, std::size_t unit) const {
  using T = BlockTensor;
  const std::int64_t hidden = step_.config_.hidden_size;
  return {.qkv = projections(values, unit, T::kQuery, 3),
          .output = projections(values, unit, T::kOutput, 1),
          .gate_up = projections(values, unit, T::kGate, 2),
          .down = projections(values, unit, T::kDown, 1),
          .attention_norm = part(values, unit, T::kAttentionNorm, 1, hidden),
          .feed_forward_norm = part(values, unit, T::kFeedForwardNorm, 1, hidden)};
}

Tensor LlamaProgram::table(const UnitValues& values) const {
  const std::size_t parameter = table_unit() == 0 ? 0 : 1;
  return part(values, table_unit(), parameter, step_.config_.vocab_size, step_.config_.hidden_size);
}

Tensor LlamaProgram::head_norm(const UnitValues& values) const {
  return part(values, head_unit(), 0, 1, step_.config_.hidden_size);
}

Tensor LlamaProgram::norm_gradient(const Tensor& gradient, std::size_t unit, std::size_t parameter) {
  const std::int64_t hidden = step_.config_.hidden_size;
  if (is_trained(unit, parameter)) return gradient_part(gradient, unit, parameter, 1, hidden);
  return builder_.buffer("frozen norm's gradient", DType::kFloat32, 1, hidden);
}

void LlamaProgram::project(const Projections& weights, const Tensor& x, const Tensor& out,
                           const std::optional<Tensor>& add) {
  for (const Projection& each : weights) {
    const auto mine = [&](const Tensor& all) { return all.column_range(each.first_column, each.weight.rows); };
    builder_.compute(MatMul{.a = x,
                            .b = each.weight,
                            .out = mine(out),
                            .add = add ? std::optional(mine(*add)) : std::nullopt,
                            .transpose_b = true});
  }
}

void LlamaProgram::project_backward(const Projections& weights, std::size_t unit, const Tensor& gradient,
                                    const Tensor& dout, const Tensor& x) {
  for (const Projection& each : weights) {
    if (!each.trained) continue;
    builder_.compute(MatMul{.a = dout.column_range(each.first_column, each.weight.rows),
                            .b = x,
                            .out = gradient_part(gradient, unit, each.parameter, each.weight.rows, each.weight.columns),
                            .add = {},
                            .transpose_a = true,
                            .accumulate = adds(unit)});
  }
}

void LlamaProgram::project_input(const Projections& weights, const Tensor& dout, const Tensor& dx) {
  bool again = false;
  for (const Projection& each : weights) {
    builder_.compute(MatMul{.a = dout.column_range(each.first_column, each.weight.rows),
                            .b = each.weight,
                            .out = dx,
                            .add = {},
                            .accumulate = std::exchange(again, true)});
  }
}

// --- Forward ---

Tensor LlamaProgram::forward_embedding() {
  const UnitValues values = gather(0);
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
  project(w.qkv, *kept.normed, *kept.qkv, std::nullopt);
  builder_.compute(Rope{*kept.qkv, *cosines_, *sines_, attention_.heads + attention_.key_value_heads,
                        attention_.head_dim, length_, 1.0f, starts_});
  kept.out = activation("attended", attention_.heads * attention_.head_dim);
  kept.logsumexp =
      builder_.buffer("logsumexp", DType::kFloat32, attention_.sequences * attention_.heads, attention_.length);
  const std::int64_t bytes =
      step_.options_.traits.attention_scratch(attention_, step_.element(), step_.options_.traits.threads);
  const Tensor scratch = builder_.buffer("attention's scratch", DType::kInt32, 1, (bytes + 3) / 4);
  builder_.compute(Attention{*kept.qkv, *kept.out, *kept.logsumexp, scratch, attention_, starts_});
  kept.middle = activation("middle", c.hidden_size);
  project(w.output, *kept.out, *kept.middle, kept.x);
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
    project(w.gate_up, *kept.feed_normed, *kept.gate_up, std::nullopt);
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
  project(w.down, *now.product, y, now.middle);
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
      if (kept != nullptr && needs_.trains_down_to(block + 1)) {
        forget(now);
        (*kept)[block] = now;
      }
    }
    // The last block goes backward next.
    const bool goes_backward = kept != nullptr && block + 1 == blocks && needs_.trains_down_to(block + 1);
    if (!goes_backward) release(block + 1);
  }
  return x;
}

// --- Programs ---

void LlamaProgram::train(bool first) {
  first_ = first;
  const std::size_t blocks = step_.layout_.units.size() - 2;
  std::vector<Kept> kept(blocks);
  const Tensor x = forward_blocks(&kept);
  Tensor dx = head(x);
  for (std::size_t block = blocks; block-- > 0 && needs_.trains_down_to(block + 1);) {
    dx = backward_block(block, kept[block], dx);
  }
  if (step_.trains(0)) backward_embedding(dx);
}

void LlamaProgram::evaluate() {
  const Tensor x = forward_blocks(nullptr);
  const UnitValues values = gather(head_unit());
  const UnitValues table_values = gather(table_unit());
  if (!empty()) {
    const Tensor normed = activation("final normed", step_.config_.hidden_size);
    const Tensor inverse = row_values("final inverse rms");
    builder_.compute(RmsNorm{x, head_norm(values), normed, inverse, static_cast<float>(step_.config_.rms_norm_eps)});
    head_slices(normed, nullptr, table(table_values), nullptr, false);
  }
}

void LlamaProgram::logits(bool last_only) {
  const Tensor x = forward_blocks(nullptr);
  const UnitValues values = gather(head_unit());
  const UnitValues table_values = gather(table_unit());
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
