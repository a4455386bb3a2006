#include "tests/gpu/operation_cases.h"

#include <algorithm>
#include <utility>

#include "kernels/model/cached_attention.h"
#include "net/step/traits.h"

namespace atl::gpu {
namespace {

class Maker {
 public:
  Maker(const Sizes& sizes, DType dtype) : s_(sizes), t_(dtype), size_(static_cast<double>(size_of(dtype))) {}

  std::vector<OperationCase> all() {
    values();
    embedding();
    norm();
    rope();
    swiglu();
    attention("attention", "attention backward", /*documents=*/false);
    attention("attention within documents", "attention within documents backward", /*documents=*/true);
    cached_attention("cached attention, prompts", s_.length, s_.length / 3);
    cached_attention("cached attention, a token a text", 1, 2 * s_.length - 1);
    products();
    loss();
    log_probability();
    optimiser();
    return std::move(cases_);
  }

 private:
  OperationCase& begin(const char* name) {
    cases_.emplace_back();
    cases_.back().name = std::string(name) + (t_ == DType::kBfloat16 ? " bf16" : " fp32");
    return cases_.back();
  }
  Tensor add(DType dtype, std::int64_t rows, std::int64_t columns, Contents contents = Contents::kNormal) {
    OperationCase& now = cases_.back();
    now.buffers.push_back({now.kept.add("", dtype, rows, columns), contents});
    return now.buffers.back().tensor;
  }
  Tensor values_of(std::int64_t rows, std::int64_t columns) { return add(t_, rows, columns); }
  void finish(Operation operation, std::vector<Tensor> results, double bytes, double flops = 0) {
    OperationCase& now = cases_.back();
    now.operation = std::move(operation);
    now.results = std::move(results);
    now.bytes = bytes;
    now.flops = flops;
  }

  void values() {
    const std::int64_t n = s_.parameters;
    begin("fill");
    const Tensor x = add(DType::kFloat32, 1, n);
    finish(Fill{x, 0.5f}, {x}, 4.0 * static_cast<double>(n));
    if (t_ == DType::kFloat32) return;
    begin("convert");
    const Tensor from = add(DType::kFloat32, 1, n), to = add(DType::kBfloat16, 1, n);
    finish(Convert{from, to}, {to}, 6.0 * static_cast<double>(n));
  }

  void embedding() {
    const double elements = static_cast<double>(s_.rows() * s_.hidden);
    begin("embed");
    const Tensor table = values_of(s_.vocab, s_.hidden), tokens = add(DType::kInt32, 1, s_.rows(), Contents::kTokens);
    const Tensor x = values_of(s_.rows(), s_.hidden);
    finish(Embed{table, tokens, x}, {x}, 2 * size_ * elements);
    begin("embed backward");
    const Tensor dx = values_of(s_.rows(), s_.hidden), t = add(DType::kInt32, 1, s_.rows(), Contents::kTokens);
    const Tensor order = add(DType::kInt32, 1, s_.rows(), Contents::kOrder);
    const Tensor gradient = add(DType::kFloat32, s_.vocab, s_.hidden);
    finish(EmbedBackward{dx, t, order, gradient}, {gradient}, (size_ + 8) * elements);
  }

  void norm() {
    const double elements = static_cast<double>(s_.rows() * s_.hidden);
    begin("rms_norm");
    const Tensor x = values_of(s_.rows(), s_.hidden), weight = values_of(1, s_.hidden);
    const Tensor y = values_of(s_.rows(), s_.hidden), inverse = add(DType::kFloat32, 1, s_.rows());
    finish(RmsNorm{x, weight, y, inverse, 1e-5f}, {y, inverse}, 2 * size_ * elements);
    begin("rms_norm backward");
    const Tensor dy = values_of(s_.rows(), s_.hidden), of = values_of(s_.rows(), s_.hidden),
                 w = values_of(1, s_.hidden);
    const Tensor rms = add(DType::kFloat32, 1, s_.rows(), Contents::kPositive);
    const Tensor residual = values_of(s_.rows(), s_.hidden), dx = values_of(s_.rows(), s_.hidden);
    const Tensor dweight = add(DType::kFloat32, 1, s_.hidden);
    const Tensor partial = add(DType::kFloat32, norm_parts(s_.rows()), s_.hidden);
    finish(RmsNormBackward{dy, of, w, rms, residual, dx, dweight, partial, true}, {dx, dweight}, 4 * size_ * elements);
  }

  void rope() {
    begin("rope");
    const Tensor x = values_of(s_.rows(), (s_.heads + 2 * s_.key_value_heads) * s_.head_dim);
    const Tensor cosines = add(DType::kFloat32, s_.length, s_.head_dim / 2);
    const Tensor sines = add(DType::kFloat32, s_.length, s_.head_dim / 2);
    const std::int64_t heads = s_.heads + s_.key_value_heads;
    finish(Rope{x, cosines, sines, heads, s_.head_dim, s_.length, 1}, {x},
           2 * size_ * static_cast<double>(s_.rows() * heads * s_.head_dim));
  }

  void swiglu() {
    const double elements = static_cast<double>(s_.rows() * s_.inner);
    begin("swiglu");
    const Tensor gate_up = values_of(s_.rows(), 2 * s_.inner), out = values_of(s_.rows(), s_.inner);
    finish(Swiglu{gate_up, out}, {out}, 3 * size_ * elements);
    begin("swiglu backward");
    const Tensor dout = values_of(s_.rows(), s_.inner), of = values_of(s_.rows(), 2 * s_.inner);
    const Tensor dgate_up = values_of(s_.rows(), 2 * s_.inner);
    finish(SwigluBackward{dout, of, dgate_up}, {dgate_up}, 5 * size_ * elements);
  }

  // Half of the scores, which are all that a causal kernel needs; of three documents a third of that.
  void attention(const char* name, const char* backward_name, bool documents) {
    const AttentionShape shape{s_.sequences, s_.length, s_.heads, s_.key_value_heads, s_.head_dim};
    const double product =
        static_cast<double>(shape.rows() * s_.length * s_.heads * s_.head_dim) / (documents ? 3 : 1);  // 2 x a half
    const auto tensors = [&] {
      Attention attention{values_of(shape.rows(), shape.qkv_columns()), values_of(shape.rows(), s_.heads * s_.head_dim),
                          add(DType::kFloat32, s_.sequences * s_.heads, s_.length), scratch(shape), shape};
      if (documents) attention.starts = add(DType::kInt32, s_.sequences, s_.length, Contents::kStarts);
      return attention;
    };
    begin(name);
    const Attention forward = tensors();
    finish(forward, {forward.out, forward.logsumexp}, 0, 2 * product);
    begin(backward_name);
    const Attention of = tensors();
    cases_.back().before.push_back(of);
    cases_.back().roundings = 4;  // out, probabilities, the gradients of scores, the result
    const Tensor dout = values_of(shape.rows(), s_.heads * s_.head_dim),
                 dqkv = values_of(shape.rows(), shape.qkv_columns());
    finish(AttentionBackward{dout, of.qkv, of.out, of.logsumexp, dqkv, of.scratch, shape, of.starts}, {dqkv}, 0,
           5 * product);
  }
  // Enough for the processor that it is compared with, too.
  Tensor scratch(const AttentionShape& shape) {
    const std::int64_t here = cpu_step_traits(kThreads).attention_scratch(shape, t_, kThreads);
    const std::int64_t there = cuda_step_traits().attention_scratch(shape, t_, 1);
    return add(DType::kInt32, 1, (std::max(here, there) + 3) / 4);
  }

  // Each text has `rows` that follow `before`.
  void cached_attention(const char* name, std::int64_t rows, std::int64_t before) {
    begin(name);
    cases_.back().roundings = 2;  // the processor rounds the weights
    const CachedAttentionSizes sizes{s_.heads, s_.key_value_heads, s_.head_dim, before + rows};
    const std::int64_t all = s_.sequences * rows, cached = s_.sequences * sizes.key_value_heads * sizes.capacity;
    const Tensor qkv = values_of(all, sizes.qkv_columns());
    const Tensor slots = add(DType::kInt32, s_.sequences, rows, Contents::kSlots);
    const Tensor positions = add(DType::kInt32, s_.sequences, rows, Contents::kPositions);
    cases_.back().buffers.back().first = before;
    const Tensor keys = values_of(cached, s_.head_dim), values = values_of(cached, s_.head_dim);
    const Tensor out = values_of(all, s_.heads * s_.head_dim);
    const std::int64_t here = cpu_step_traits(kThreads).cached_attention_scratch(sizes, all, kThreads);
    const std::int64_t there = cuda_step_traits().cached_attention_scratch(sizes, all, 1);
    const Tensor scratch = add(DType::kInt32, 1, (std::max(here, there) + 3) / 4);
    const double seen = static_cast<double>(all) * (static_cast<double>(before) + static_cast<double>(rows + 1) / 2);
    finish(CachedAttention{qkv, slots, positions, keys, values, out, scratch, sizes.heads, sizes.key_value_heads,
                           sizes.head_dim, sizes.capacity},
           {out, keys, values}, 2 * size_ * static_cast<double>(cached * s_.head_dim),
           rows == 1 ? 0 : 4 * seen * static_cast<double>(s_.heads * s_.head_dim));
  }

  void products() {
    product("product, forward", s_.rows(), 2 * s_.inner, s_.hidden, false, true, t_, false, true);
    product("product, of an input", s_.rows(), s_.hidden, 2 * s_.inner, false, false, t_, false, false);
    product("product, of weights", 2 * s_.inner, s_.hidden, s_.rows(), true, false, DType::kFloat32, true, false);
    product("product, logits", s_.rows(), s_.vocab, s_.hidden, false, true, t_, false, false);
  }
  void product(const char* name, std::int64_t m, std::int64_t n, std::int64_t k, bool transpose_a, bool transpose_b,
               DType out_type, bool accumulate, bool adds) {
    begin(name);
    MatMul op;
    op.a = transpose_a ? values_of(k, m) : values_of(m, k);
    op.b = transpose_b ? values_of(n, k) : values_of(k, n);
    op.out = add(out_type, m, n);
    if (adds) op.add = add(out_type, m, n);
    op.transpose_a = transpose_a;
    op.transpose_b = transpose_b;
    op.accumulate = accumulate;
    finish(op, {op.out}, 0, 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k));
  }

  void loss() {
    begin("cross_entropy");
    const Tensor logits = values_of(s_.rows(), s_.vocab), labels = add(DType::kInt32, 1, s_.rows(), Contents::kTokens);
    const Tensor scale = add(DType::kFloat32, 1, 1, Contents::kOne), sums = add(DType::kFloat64, 1, 2, Contents::kZero);
    const Tensor row_sums = add(DType::kFloat32, 2, std::max<std::int64_t>(2, s_.rows()));
    finish(CrossEntropy{logits, labels, scale, sums, row_sums, 1e-4f, true}, {logits, sums},
           3 * size_ * static_cast<double>(s_.rows() * s_.vocab));
  }

  void log_probability() {
    begin("log_probability");
    const Tensor logits = values_of(s_.rows(), s_.vocab), labels = add(DType::kInt32, 1, s_.rows(), Contents::kTokens);
    const Tensor of = add(DType::kFloat32, 1, s_.rows()), greedy = add(DType::kInt32, 1, s_.rows(), Contents::kZero);
    finish(LogProbability{logits, labels, of, greedy}, {of, greedy}, size_ * static_cast<double>(s_.rows() * s_.vocab));
  }

  void optimiser() {
    if (t_ == DType::kFloat32) return;
    const std::int64_t n = s_.parameters;
    begin("squared_norm");
    const Tensor x = add(DType::kFloat32, 1, n), sum = add(DType::kFloat64, 1, 1);
    const Tensor parts = add(DType::kFloat64, 1, square_parts(n));
    finish(SquaredNorm{x, sum, parts}, {sum}, 4.0 * static_cast<double>(n));
    begin("clip_scale");
    const Tensor sums = add(DType::kFloat64, 1, kStepSums, Contents::kPositive);
    const Tensor scalars = add(DType::kFloat32, 1, kStepScalars, Contents::kScalars);
    finish(ClipScale{sums, scalars, 0.5f}, {scalars}, 0);
    begin("adamw");
    const auto floats = [&](Contents contents) { return add(DType::kFloat32, 1, n, contents); };
    const Tensor p = floats(Contents::kNormal), g = floats(Contents::kNormal), m = floats(Contents::kNormal);
    const Tensor v = floats(Contents::kPositive), rounded = add(DType::kBfloat16, 1, n);
    const Tensor at = add(DType::kFloat32, 1, kStepScalars, Contents::kScalars);
    finish(AdamW{p, g, m, v, rounded, at, 0.9f, 0.95f, 1e-8f}, {p, m, v}, 30.0 * static_cast<double>(n));
  }

  static constexpr int kThreads = 4;  // of the processor that it is compared with

  const Sizes s_;
  const DType t_;
  const double size_;
  std::vector<OperationCase> cases_;
};

}  // namespace

std::vector<OperationCase> operation_cases(const Sizes& sizes, DType dtype) { return Maker(sizes, dtype).all(); }

}  // namespace atl::gpu
