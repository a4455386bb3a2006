// One program of a Llama step while it is written: the operations of the embedding, the blocks and the head, forward
// and backward, and the gathering of their units around them. llama_program.cpp has what units are made of and goes
// forward, llama_backward.cpp the rest. Used by llama_step.cpp alone.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "net/step/backward_needs.h"
#include "net/step/llama_step.h"

namespace atl {

class LlamaProgram {
 public:
  LlamaProgram(const LlamaStep& step, std::int64_t sequences, std::int64_t length);

  // `first`: gradients are begun, not added to.
  void train(bool first);
  void evaluate();
  void logits(bool last_only);

  Program finish() { return builder_.finish(); }

 private:
  // What is there of a unit: its flat parameters, gathered.
  struct UnitValues {
    Tensor frozen, trained;
  };
  // A product's weight, and of which columns of its output it is. What lies side by side is one product: queries, keys
  // and values, gate and up, unless some of them are trained and others are not.
  struct Projection {
    Tensor weight;
    std::int64_t first_column = 0;
    bool trained = true;
    std::size_t parameter = 0;  // its first
  };
  using Projections = std::vector<Projection>;
  struct BlockWeights {
    Projections qkv, output, gate_up, down;
    Tensor attention_norm, feed_forward_norm;
  };
  // What the forward pass of a block leaves; what is computed again is empty until then.
  struct Kept {
    Tensor x;
    std::optional<Tensor> normed, inverse_rms, qkv, out, logsumexp, middle, feed_normed, feed_inverse_rms, gate_up,
        product;
  };

  bool empty() const { return rows_ == 0; }
  std::size_t head_unit() const { return step_.layout_.units.size() - 1; }
  std::size_t table_unit() const { return step_.config_.tie_word_embeddings ? 0 : head_unit(); }
  bool is_trained(std::size_t unit, std::size_t parameter) const { return needs_.is_trained(unit, parameter); }
  Tensor activation(std::string name, std::int64_t columns);
  Tensor row_values(std::string name);  // fp32 [rows]

  // Units.
  const UnitValues& gather(std::size_t unit);  // as it is there already, or gathered now
  void release(std::size_t unit);
  void prefetch(std::size_t unit);
  // Of what is trained of it.
  Tensor open_gradient(std::size_t unit, bool computed_whole);
  void close_gradient(std::size_t unit, const Tensor& gradient, bool again = false);
  bool adds(std::size_t unit) const;  // a gradient's first product is added to what is there
  // Parameters that lie side by side, of the unit's values, or of the gradient of what is trained of it.
  Tensor part(const UnitValues& values, std::size_t unit, std::size_t first_parameter, std::int64_t rows,
              std::int64_t columns) const;
  Tensor gradient_part(const Tensor& gradient, std::size_t unit, std::size_t first_parameter, std::int64_t rows,
                       std::int64_t columns) const;
  Projections projections(const UnitValues& values, std::size_t unit, std::size_t first_parameter,
                          std::size_t parameters) const;
  BlockWeights block_weights(const UnitValues& values, std::size_t unit) const;
  Tensor table(const UnitValues& values) const;  // [vocab, hidden] of the unit that has the output projection
  Tensor head_norm(const UnitValues& values) const;
  // Where a norm's gradient goes: what is frozen has one all the same, as long as its operation lasts.
  Tensor norm_gradient(const Tensor& gradient, std::size_t unit, std::size_t parameter);
  bool norm_adds(std::size_t unit, std::size_t parameter) const { return is_trained(unit, parameter) && adds(unit); }

  void project(const Projections& weights, const Tensor& x, const Tensor& out, const std::optional<Tensor>& add);
  // The gradients of the weights that are trained; and of x.
  void project_backward(const Projections& weights, std::size_t unit, const Tensor& gradient, const Tensor& dout,
                        const Tensor& x);
  void project_input(const Projections& weights, const Tensor& dout, const Tensor& dx);

  Tensor forward_embedding();
  Tensor forward_block(std::size_t block, const Tensor& x, Kept* kept, bool to_the_end = true);
  void forward_attention(const BlockWeights& w, Kept& kept);
  void forward_feed(const BlockWeights& w, Kept& kept);
  // `kept`, by block: of those whose backward pass follows.
  Tensor forward_blocks(std::vector<Kept>* kept);
  Tensor head(const Tensor& x);
  Tensor head_pass(const Tensor& x, const UnitValues& values, const UnitValues& table_values, const Tensor& gradient,
                   const Tensor& table_gradient);
  void head_slices(const Tensor& normed, const Tensor* dnormed, const Tensor& table, const Tensor* dtable, bool add);
  Tensor backward_block(std::size_t block, Kept& kept, const Tensor& dy);
  Tensor backward_feed(std::size_t block, const BlockWeights& w, Kept& kept, const Tensor& gradient, const Tensor& dy);
  Tensor backward_attention(std::size_t block, const BlockWeights& w, Kept& kept, const Tensor& gradient,
                            const Tensor& dmiddle);
  void backward_embedding(const Tensor& dx);
  void forget(Kept& kept) const;

  const LlamaStep& step_;
  const BackwardNeeds needs_;
  const std::int64_t length_;
  const std::int64_t rows_;
  const AttentionShape attention_;
  ProgramBuilder builder_;
  std::optional<Tensor> tokens_, labels_, order_, cosines_, sines_;
  std::optional<Tensor> starts_;                     // where attention is kept within documents
  std::vector<std::optional<UnitValues>> gathered_;  // by unit, what is there now
  std::optional<Tensor> reducing_;                   // the gradient that is being reduced while the next is computed
  bool first_ = false;
};

}  // namespace atl
