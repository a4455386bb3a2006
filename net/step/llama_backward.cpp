// What of a program goes backward: the head, whose forward pass is part of it, the blocks, the embedding.
#include "net/step/llama_program.h"

#include <algorithm>

namespace atl {

// --- The head ---

void LlamaProgram::head_slices(const Tensor& normed, const Tensor* dnormed, const Tensor& table, const Tensor* dtable,
                               bool add) {
  const std::int64_t vocab = step_.config_.vocab_size;
  const std::int64_t slice = std::clamp<std::int64_t>(step_.options_.traits.most_logits / vocab, 1, rows_);
  const Tensor logits = builder_.buffer("logits", step_.element(), slice, vocab);
  const Tensor row_sums = builder_.buffer("rows' losses", DType::kFloat32, 2, std::max<std::int64_t>(slice, 2));
  const KeptTensors& kept = step_.kept_;
  const Tensor scale = kept.scalars.column_range(static_cast<std::int64_t>(StepScalar::kLossScale), 1);
  const bool backward = dnormed != nullptr || dtable != nullptr;
  for (std::int64_t first = 0; first < rows_; first += slice) {
    const std::int64_t count = std::min(slice, rows_ - first);
    const Tensor rows = normed.row_range(first, count);
    const Tensor here = logits.row_range(0, count);
    builder_.compute(MatMul{.a = rows, .b = table, .out = here, .add = {}, .transpose_b = true});
    builder_.compute(CrossEntropy{here, labels_->column_range(first, count), scale, kept.sums.column_range(0, 2),
                                  row_sums, step_.options_.max_z_loss, backward});
    if (dtable != nullptr) {
      builder_.compute(
          MatMul{.a = here, .b = rows, .out = *dtable, .add = {}, .transpose_a = true, .accumulate = add || first > 0});
    }
    if (dnormed == nullptr) continue;
    builder_.compute(MatMul{.a = here, .b = table, .out = dnormed->row_range(first, count), .add = {}});
  }
}

// The head's forward and backward pass; the gradient of the last block's output.
Tensor LlamaProgram::head(const Tensor& x) {
  const std::size_t unit = head_unit();
  const bool tied = table_unit() == 0;
  const UnitValues values = gather(unit);
  const UnitValues table_values = gather(table_unit());
  const Tensor gradient = open_gradient(unit, !empty());
  const Tensor table_gradient = tied ? open_gradient(0, !empty()) : gradient;
  Tensor dx;
  if (empty()) {
    if (first_ && step_.options_.keep_gathered) {
      if (step_.trains(unit)) builder_.compute(Fill{gradient});
      if (tied && step_.trains(0)) builder_.compute(Fill{table_gradient});
    }
  } else {
    dx = head_pass(x, values, table_values, gradient, table_gradient);
  }
  release(unit);
  release(table_unit());
  close_gradient(unit, gradient);
  // A tied table gets its gradient in two parts, this one and the embedding's: kept until then, it would be alive
  // beside the blocks.
  if (tied) close_gradient(0, table_gradient);
  return dx;
}

Tensor LlamaProgram::head_pass(const Tensor& x, const UnitValues& values, const UnitValues& table_values,
                               const Tensor& gradient, const Tensor& table_gradient) {
  const std::size_t unit = head_unit();
  const std::size_t table_parameter = table_unit() == 0 ? 0 : 1;
  const std::int64_t hidden = step_.config_.hidden_size;
  const Tensor normed = activation("final normed", hidden);
  const Tensor inverse = row_values("final inverse rms");
  std::optional<Tensor> dnormed, dtable;
  if (needs_.head()) dnormed = activation("gradient of final normed", hidden);
  builder_.compute(RmsNorm{x, head_norm(values), normed, inverse, static_cast<float>(step_.config_.rms_norm_eps)});
  if (is_trained(table_unit(), table_parameter)) {
    dtable = gradient_part(table_gradient, table_unit(), table_parameter, step_.config_.vocab_size, hidden);
  }
  head_slices(normed, dnormed ? &*dnormed : nullptr, table(table_values), dtable ? &*dtable : nullptr, adds(unit));
  if (!dnormed) return {};
  const Tensor dx = activation("gradient of blocks", hidden);
  const Tensor partial = builder_.buffer("norm's partial sums", DType::kFloat32, norm_parts(rows_), hidden);
  builder_.compute(RmsNormBackward{.dy = *dnormed,
                                   .x = x,
                                   .weight = head_norm(values),
                                   .inverse_rms = inverse,
                                   .residual = {},
                                   .dx = dx,
                                   .dweight = norm_gradient(gradient, unit, 0),
                                   .partial = partial,
                                   .accumulate = norm_adds(unit, 0)});
  return dx;
}

// --- Backward ---

Tensor LlamaProgram::backward_block(std::size_t block, Kept& kept, const Tensor& dy) {
  const std::size_t unit = block + 1;
  const UnitValues values = gather(unit);
  if (step_.options_.traits.overlaps && block > 0 && needs_.trains_down_to(unit - 1)) prefetch(unit - 1);
  const Tensor gradient = open_gradient(unit, !empty());
  Tensor dx;
  if (empty()) {
    if (first_ && step_.options_.keep_gathered && step_.trains(unit)) builder_.compute(Fill{gradient});
  } else {
    forward_block(block, kept.x, &kept, /*to_the_end=*/false);
    const BlockWeights w = block_weights(values, unit);
    const Tensor dmiddle = backward_feed(block, w, kept, gradient, dy);
    if (needs_.block(block).middle) dx = backward_attention(block, w, kept, gradient, dmiddle);
  }
  release(unit);
  close_gradient(unit, gradient);
  return dx;
}

// The gradient of what the attention left, where it is needed.
Tensor LlamaProgram::backward_feed(std::size_t block, const BlockWeights& w, Kept& kept, const Tensor& gradient,
                                   const Tensor& dy) {
  const std::size_t unit = block + 1;
  const BlockNeeds needs = needs_.block(block);
  const std::int64_t hidden = step_.config_.hidden_size;
  if (!needs.gate_up) {
    project_backward(w.down, unit, gradient, dy, *kept.product);
    return {};
  }
  const Tensor partial = builder_.buffer("norms' partial sums", DType::kFloat32, norm_parts(rows_), hidden);
  const Tensor dproduct = activation("gradient of gated", step_.config_.intermediate_size);
  project_input(w.down, dy, dproduct);
  project_backward(w.down, unit, gradient, dy, *kept.product);
  const Tensor dgate_up = activation("gradient of gate and up", 2 * step_.config_.intermediate_size);
  builder_.compute(SwigluBackward{dproduct, *kept.gate_up, dgate_up});
  project_backward(w.gate_up, unit, gradient, dgate_up, *kept.feed_normed);
  if (!needs.feed_norm) return {};
  const Tensor dfeed = activation("gradient of feed-forward's normed", hidden);
  project_input(w.gate_up, dgate_up, dfeed);
  const Tensor dmiddle = activation("gradient of middle", hidden);
  builder_.compute(RmsNormBackward{dfeed, *kept.middle, w.feed_forward_norm, *kept.feed_inverse_rms, dy, dmiddle,
                                   norm_gradient(gradient, unit, BlockTensor::kFeedForwardNorm), partial,
                                   norm_adds(unit, BlockTensor::kFeedForwardNorm)});
  return dmiddle;
}

// The gradient of the block's input, where it is needed.
Tensor LlamaProgram::backward_attention(std::size_t block, const BlockWeights& w, Kept& kept, const Tensor& gradient,
                                        const Tensor& dmiddle) {
  const std::size_t unit = block + 1;
  const BlockNeeds needs = needs_.block(block);
  const std::int64_t hidden = step_.config_.hidden_size;
  if (!needs.qkv) {
    project_backward(w.output, unit, gradient, dmiddle, *kept.out);
    return {};
  }
  const Tensor dout = activation("gradient of attended", attention_.heads * attention_.head_dim);
  project_input(w.output, dmiddle, dout);
  project_backward(w.output, unit, gradient, dmiddle, *kept.out);
  const Tensor dqkv = activation("gradient of qkv", attention_.qkv_columns());
  const std::int64_t bytes =
      step_.options_.traits.attention_scratch(attention_, step_.element(), step_.options_.traits.threads);
  const Tensor scratch = builder_.buffer("attention's scratch", DType::kInt32, 1, (bytes + 3) / 4);
  builder_.compute(AttentionBackward{dout, *kept.qkv, *kept.out, *kept.logsumexp, dqkv, scratch, attention_, starts_});
  builder_.compute(Rope{dqkv, *cosines_, *sines_, attention_.heads + attention_.key_value_heads, attention_.head_dim,
                        length_, -1.0f, starts_});
  project_backward(w.qkv, unit, gradient, dqkv, *kept.normed);
  if (!needs.input) return {};
  const Tensor partial = builder_.buffer("norms' partial sums", DType::kFloat32, norm_parts(rows_), hidden);
  const Tensor dnormed = activation("gradient of normed", hidden);
  project_input(w.qkv, dqkv, dnormed);
  const Tensor dx = activation("gradient of blocks", hidden);
  builder_.compute(RmsNormBackward{dnormed, kept.x, w.attention_norm, *kept.inverse_rms, dmiddle, dx,
                                   norm_gradient(gradient, unit, BlockTensor::kAttentionNorm), partial,
                                   norm_adds(unit, BlockTensor::kAttentionNorm)});
  return dx;
}

void LlamaProgram::backward_embedding(const Tensor& dx) {
  const Tensor gradient = open_gradient(0, false);
  const bool kept_whole = step_.options_.ranks == 1 || step_.options_.keep_gathered;
  if (kept_whole && !adds(0)) builder_.compute(Fill{gradient});
  if (!empty()) {
    const std::int64_t hidden = step_.config_.hidden_size;
    builder_.compute(
        EmbedBackward{dx, *tokens_, *order_, gradient_part(gradient, 0, 0, step_.config_.vocab_size, hidden)});
  }
  close_gradient(0, gradient, /*again=*/table_unit() == 0);
}

}  // namespace atl
