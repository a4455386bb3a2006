// The operations that a training step is made of, as plain values: what a device (trainer/device) computes, and on
// what. No torch, no CUDA. Any thread.
//
// T is the type in which a model is computed, fp32 or bf16: activations, gathered weights, the gradients of
// activations. Every kernel reads T, computes in fp32 and rounds once, to nearest even, where it writes T; matrix
// products add in fp32. Weight gradients, moments and master parameters are fp32 throughout. Rows are tokens: sequences
// one after the other.
#pragma once

#include <optional>
#include <utility>
#include <variant>

#include "net/step/tensor.h"

namespace atl {

// x = value. Contiguous, fp32; of another type only when value is 0.
struct Fill {
  Tensor x;
  float value = 0;
};

// to = from, rounded: fp32 -> bf16. Contiguous, same numel.
struct Convert {
  Tensor from, to;
};

// x[r] = table[tokens[r]]. table: T [vocab, hidden], tokens: int32 [rows], x: T [rows, hidden].
struct Embed {
  Tensor table, tokens, x;
};

// gradient[tokens[r]] += dx[r], each token's rows added in ascending order of r. dx: T [rows, hidden]; order: int32
// [rows], the rows sorted by token, ascending within one; gradient: fp32 [vocab, hidden].
struct EmbedBackward {
  Tensor dx, tokens, order, gradient;
};

// y = weight * x / rms(x), rms over columns, epsilon under the root (arXiv:1910.07467). x, y: T [rows, hidden];
// weight: T [hidden]; inverse_rms: fp32 [rows], kept for the backward pass.
struct RmsNorm {
  Tensor x, weight, y, inverse_rms;
  float epsilon = 0;
};

// dx = d(RmsNorm)/dx of dy, plus `residual` where there is one (dx may be residual, not dy); dweight += (or =) its sum
// over rows. dy, x, dx, residual: T [rows, hidden]; dweight: fp32 [hidden]; partial: fp32 [norm_parts(rows), hidden],
// scratch: row i is the sum over rows [i kNormPartRows, (i + 1) kNormPartRows), so that the sum does not depend on
// threads.
struct RmsNormBackward {
  Tensor dy, x, weight, inverse_rms;
  std::optional<Tensor> residual;
  Tensor dx, dweight, partial;
  bool accumulate = true;  // dweight +=
};
inline constexpr std::int64_t kNormPartRows = 64;
constexpr std::int64_t norm_parts(std::int64_t rows) { return (rows + kNormPartRows - 1) / kNormPartRows; }

// out = a b, each transposed or not as it says, plus `add`, plus what out held when `accumulate` (not both). a, b: T,
// of one type; out: T or fp32; add: of out's type and shape. Sums in fp32, rounded once.
struct MatMul {
  Tensor a, b, out;
  std::optional<Tensor> add;
  bool transpose_a = false;  // a is [k, m] in place of [m, k]
  bool transpose_b = false;  // b is [n, k] in place of [k, n]
  bool accumulate = false;
};

// Turns, in place, the pairs (i, i + head_dim / 2) of the first `heads` heads of each row by its position's angles, as
// HuggingFace's Llama does; row r's position is r % length, less starts[r]. direction +1 is the embedding, -1 its
// transpose. x: T [rows, >= heads * head_dim]; cosines, sines: fp32 [length, head_dim / 2]; starts: as of Attention.
struct Rope {
  Tensor x, cosines, sines;
  std::int64_t heads = 0, head_dim = 0, length = 0;
  float direction = 1;
  std::optional<Tensor> starts = std::nullopt;
};

// What attention is over: `sequences` sequences of `length` rows each; a row of qkv is heads queries, key_value_heads
// keys, key_value_heads values, of head_dim each. heads / key_value_heads neighbouring queries share a key.
struct AttentionShape {
  std::int64_t sequences = 0, length = 0, heads = 0, key_value_heads = 0, head_dim = 0;
  std::int64_t rows() const { return sequences * length; }
  std::int64_t qkv_columns() const { return (heads + 2 * key_value_heads) * head_dim; }
};

// Causal softmax(q k^T / sqrt(head_dim)) v (FlashAttention-2, arXiv:2307.08691). qkv: T [rows, qkv_columns], out: T
// [rows, heads * head_dim]; logsumexp: fp32 [sequences * heads, length], of the scaled scores, natural logarithm.
// scratch: whatever the device asked for (StepTraits). A row sees what its sequence holds from starts[row] up to it;
// starts: int32 [rows], where in its sequence each row's document begins: at 0 for the first row, and for each other
// where the row before it says, or at itself. Without: 0.
struct Attention {
  Tensor qkv, out, logsumexp, scratch;
  AttentionShape shape;
  std::optional<Tensor> starts = std::nullopt;
};
struct AttentionBackward {
  Tensor dout, qkv, out, logsumexp, dqkv, scratch;
  AttentionShape shape;
  std::optional<Tensor> starts = std::nullopt;
};

// Attention of rows of any sequences over a cache: each row's key and value are written to its slot at its position,
// and its queries see that slot's positions up to its own. qkv, out: as in Attention, without its order of rows; slots,
// positions: int32 [rows], a slot of -1 being a row that is not there, whose `out` is 0; keys, values: T [slots *
// key_value_heads * capacity, head_dim], a head of a slot a block of `capacity` rows. Rows that follow each other in a
// sequence also do here. scratch: whatever the device asked for (StepTraits). Inference alone.
struct CachedAttention {
  Tensor qkv, slots, positions, keys, values, out, scratch;
  std::int64_t heads = 0, key_value_heads = 0, head_dim = 0, capacity = 0;
};

// Of rows of logits: the natural logarithm of the label's probability, and whether the label is the first of the
// largest (1, else 0). logits: T [rows, vocab]; labels, greedy: int32 [rows]; log_probabilities: fp32 [rows]. Inference
// alone.
struct LogProbability {
  Tensor logits, labels, log_probabilities, greedy;
};

// out = silu(gate) * up. gate_up: T [rows, 2 inner], a row is gate then up; out: T [rows, inner].
struct Swiglu {
  Tensor gate_up, out;
};
struct SwigluBackward {
  Tensor dout, gate_up, dgate_up;
};

// sums[0] += sum over rows of the cross-entropy in nats, sums[1] += of (largest logit)^2. With `gradient`, logits
// become, in place, the gradient of scale * sum(cross_entropy + max_z_loss * largest^2), whose second part goes to the
// first of the largest logits. A row whose label is negative (kNoLabel) adds nothing, and its gradient is 0. logits: T
// [rows, vocab]; labels: int32 [rows]; scale: fp32 [1]; sums: fp64 [2]; row_sums: fp32 [2, at least rows and 2],
// scratch.
inline constexpr std::int32_t kNoLabel = -1;
struct CrossEntropy {
  Tensor logits, labels, scale, sums, row_sums;
  float max_z_loss = 0;
  bool gradient = true;
};

// sum[0] = sum of x^2, in fp64, in an order that depends on numel alone. x: fp32, contiguous; scratch: fp64
// [square_parts(numel)].
struct SquaredNorm {
  Tensor x, sum, scratch;
};
inline constexpr std::int64_t kSquarePart = 65536;
constexpr std::int64_t square_parts(std::int64_t numel) { return (numel + kSquarePart - 1) / kSquarePart; }

// What a step's scalars are, each a float of one kept buffer. The host writes the first kHostScalars before a step.
enum class StepScalar : std::uint8_t {
  kLossScale,           // 1 / tokens that count of the island's whole batch; 0 where none does
  kDecay,               // 1 - learning_rate * weight_decay
  kStepSize,            // learning_rate / (1 - beta1^t)
  kInverseCorrection2,  // 1 / sqrt(1 - beta2^t)
  kGradientScale,       // by ClipScale: what brings the gradient to the clip norm; at most 1
  kApply,               // by ClipScale: 1 when the step is to be taken, else 0
  kStopped,             // by ClipScale: 1 from a step that was not finite on, until the host makes it 0
  kCount
};
inline constexpr std::int64_t kStepScalars = static_cast<std::int64_t>(StepScalar::kCount);
inline constexpr std::int64_t kHostScalars = static_cast<std::int64_t>(StepScalar::kGradientScale);

// What a step's sums are, each a double of one kept buffer, over all ranks once they are reduced.
enum class StepSum : std::uint8_t { kCrossEntropy, kSquaredLargestLogit, kGradientSquares, kCount };
inline constexpr std::int64_t kStepSums = static_cast<std::int64_t>(StepSum::kCount);

// Of sums (fp64 [kStepSums]) and scalars (fp32 [kStepScalars]): kGradientScale as torch.nn.utils.clip_grad_norm_ has
// it: min(1, clip_norm / (norm + 1e-6)); 1 when clip_norm <= 0. kApply: 1 where loss and gradient are finite and
// kStopped is 0. Where they are not finite, kStopped becomes 1: the host reads results a step later, and what it has
// enqueued by then is not taken either.
struct ClipScale {
  Tensor sums, scalars;
  float clip_norm = 0;
};

// torch.optim.AdamW (arXiv:1711.05101), decoupled decay on every parameter, nothing at all when kApply is 0:
//   g <- kGradientScale * gradient;  m <- m + (1 - b1)(g - m);  v <- b2 v + (1 - b2) g^2
//   p <- p kDecay - kStepSize * m / (sqrt(v) * kInverseCorrection2 + eps);  rounded <- bf16(p)
// All fp32 and contiguous, of one numel, but `rounded`: bf16.
struct AdamW {
  Tensor parameters, gradients, first_moment, second_moment;
  std::optional<Tensor> rounded;
  Tensor scalars;
  float beta1 = 0, beta2 = 0, epsilon = 0;
};

// Collectives among the local ranks; all ranks issue the same ones in the same order, on one stream.
// full: the shards of all ranks in rank order.
struct AllGather {
  Tensor shard, full;  // T
};
// shard = (or +=) this rank's part of the sum of all ranks' `full`, added in rank order where ranks are threads. fp32.
// scratch: as many bytes as the shard has, where the communicator cannot add (StepTraits).
struct ReduceScatter {
  Tensor full, shard;
  std::optional<Tensor> scratch;
  bool accumulate = true;
};
// values: fp64, each its sum over ranks.
struct AllReduce {
  Tensor values;
};

using Operation = std::variant<Fill, Convert, Embed, EmbedBackward, RmsNorm, RmsNormBackward, MatMul, Rope, Attention,
                               AttentionBackward, Swiglu, SwigluBackward, CrossEntropy, SquaredNorm, ClipScale, AdamW,
                               AllGather, ReduceScatter, AllReduce, CachedAttention, LogProbability>;

// How an operation touches an operand. kWrite: all of it, whatever it held.
enum class Access : std::uint8_t { kRead, kWrite, kReadWrite };

}  // namespace atl
