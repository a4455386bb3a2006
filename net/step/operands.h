// What each operation reads and writes: from which lifetimes, places and waits are derived (net/step/program.h). An
// operation that is not here does not compile.
#pragma once

#include <variant>

#include "net/step/operation.h"

namespace atl {

// visit(tensor, access), for every operand; Op is an operation or a const one, and so is the tensor.
template <class Visit>
struct OperandVisitor {
  Visit& visit;

  template <class T>
  void read(T&& t) const {
    visit(t, Access::kRead);
  }
  template <class T>
  void write(T&& t) const {
    visit(t, Access::kWrite);
  }
  template <class T>
  void update(T&& t) const {
    visit(t, Access::kReadWrite);
  }
  template <class T>
  void write_or_add(T&& t, bool add) const {
    visit(t, add ? Access::kReadWrite : Access::kWrite);
  }
};

namespace operands {

template <class O, class Op>
concept Is = std::same_as<std::remove_const_t<O>, Op>;

void each(Is<Fill> auto& o, const auto& v) { v.write(o.x); }
void each(Is<Convert> auto& o, const auto& v) {
  v.read(o.from);
  v.write(o.to);
}
void each(Is<Embed> auto& o, const auto& v) {
  v.read(o.table);
  v.read(o.tokens);
  v.write(o.x);
}
void each(Is<EmbedBackward> auto& o, const auto& v) {
  v.read(o.dx);
  v.read(o.tokens);
  v.read(o.order);
  v.update(o.gradient);
}
void each(Is<RmsNorm> auto& o, const auto& v) {
  v.read(o.x);
  v.read(o.weight);
  v.write(o.y);
  v.write(o.inverse_rms);
}
void each(Is<RmsNormBackward> auto& o, const auto& v) {
  v.read(o.dy);
  v.read(o.x);
  v.read(o.weight);
  v.read(o.inverse_rms);
  if (o.residual) v.read(*o.residual);
  v.write(o.dx);
  v.write_or_add(o.dweight, o.accumulate);
  v.write(o.partial);
}
void each(Is<MatMul> auto& o, const auto& v) {
  v.read(o.a);
  v.read(o.b);
  if (o.add) v.read(*o.add);
  v.write_or_add(o.out, o.accumulate);
}
void each(Is<Rope> auto& o, const auto& v) {
  v.update(o.x);
  v.read(o.cosines);
  v.read(o.sines);
  if (o.starts) v.read(*o.starts);
}
void each(Is<Attention> auto& o, const auto& v) {
  v.read(o.qkv);
  if (o.starts) v.read(*o.starts);
  v.write(o.out);
  v.write(o.logsumexp);
  v.write(o.scratch);
}
void each(Is<AttentionBackward> auto& o, const auto& v) {
  v.read(o.dout);
  v.read(o.qkv);
  v.read(o.out);
  v.read(o.logsumexp);
  if (o.starts) v.read(*o.starts);
  v.write(o.dqkv);
  v.write(o.scratch);
}
void each(Is<Swiglu> auto& o, const auto& v) {
  v.read(o.gate_up);
  v.write(o.out);
}
void each(Is<SwigluBackward> auto& o, const auto& v) {
  v.read(o.dout);
  v.read(o.gate_up);
  v.write(o.dgate_up);
}
void each(Is<CrossEntropy> auto& o, const auto& v) {
  o.gradient ? v.update(o.logits) : v.read(o.logits);
  v.read(o.labels);
  v.read(o.scale);
  v.update(o.sums);
  v.write(o.row_sums);
}
void each(Is<SquaredNorm> auto& o, const auto& v) {
  v.read(o.x);
  v.write(o.sum);
  v.write(o.scratch);
}
void each(Is<ClipScale> auto& o, const auto& v) {
  v.read(o.sums);
  v.update(o.scalars);
}
void each(Is<AdamW> auto& o, const auto& v) {
  v.read(o.gradients);
  v.read(o.scalars);
  v.update(o.parameters);
  v.update(o.first_moment);
  v.update(o.second_moment);
  if (o.rounded) v.update(*o.rounded);  // stays as it is where nothing is applied
}
void each(Is<AllGather> auto& o, const auto& v) {
  v.read(o.shard);
  v.write(o.full);
}
void each(Is<ReduceScatter> auto& o, const auto& v) {
  v.read(o.full);
  v.write_or_add(o.shard, o.accumulate);
  if (o.scratch) v.write(*o.scratch);
}
void each(Is<AllReduce> auto& o, const auto& v) { v.update(o.values); }
void each(Is<CachedAttention> auto& o, const auto& v) {
  v.read(o.qkv);
  v.read(o.slots);
  v.read(o.positions);
  v.update(o.keys);
  v.update(o.values);
  v.write(o.out);
  v.write(o.scratch);
}
void each(Is<LogProbability> auto& o, const auto& v) {
  v.read(o.logits);
  v.read(o.labels);
  v.write(o.log_probabilities);
  v.write(o.greedy);
}

}  // namespace operands

// visit(Tensor&, Access), const where the operation is.
template <class AnyOperation, class Visit>
void for_each_operand(AnyOperation& operation, Visit&& visit) {
  const OperandVisitor<Visit> visitor{visit};
  std::visit([&](auto& op) { operands::each(op, visitor); }, operation);
}

}  // namespace atl
