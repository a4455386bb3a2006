// One program of a Llama step while it is written: the operations of the embedding, the blocks and the head, forward
// and backward, and the gathering of their units around them. Used by llama_step.cpp alone.
#pragma once

#include <optional>
#include <string>
#include <vector>

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
  struct BlockWeights {
    Tensor qkv, output, gate_up, down, attention_norm, feed_forward_norm;
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
  Tensor activation(std::string name, std::int64_t columns);
  Tensor row_values(std::string name);  // fp32 [rows]

  // Units.
  const Tensor& gather(std::size_t unit);  // as it is there already, or gathered now
  void release(std::size_t unit);
  void prefetch(std::size_t unit);
  Tensor open_gradient(std::size_t unit, bool computed_whole);
  void close_gradient(std::size_t unit, const Tensor& gradient, bool again = false);
  bool adds(std::size_t unit) const;  // a gradient's first product is added to what is there
  Tensor part(const Tensor& unit_values, std::size_t unit, std::size_t first_parameter, std::int64_t rows,
              std::int64_t columns) const;
  BlockWeights block_weights(const Tensor& values, std::size_t unit) const;
  Tensor table(const Tensor& values) const;  // [vocab, hidden] of the unit that has the output projection
  Tensor head_norm(const Tensor& values) const;

  Tensor forward_embedding();
  Tensor forward_block(std::size_t block, const Tensor& x, Kept* kept, bool to_the_end = true);
  void forward_attention(const BlockWeights& w, Kept& kept);
  void forward_feed(const BlockWeights& w, Kept& kept);
  Tensor forward_blocks(std::vector<Kept>* kept);
  Tensor head(const Tensor& x);
  void head_slices(const Tensor& normed, const Tensor* dnormed, const Tensor& table, const Tensor* dtable, bool add);
  Tensor backward_block(std::size_t block, Kept& kept, const Tensor& dy);
  void backward_embedding(const Tensor& dx);
  void forget(Kept& kept) const;

  const LlamaStep& step_;
  const std::int64_t length_;
  const std::int64_t rows_;
  const AttentionShape attention_;
  ProgramBuilder builder_;
  std::optional<Tensor> tokens_, labels_, order_, cosines_, sines_;
  std::vector<std::optional<Tensor>> gathered_;  // by unit, what is there now
  std::optional<Tensor> reducing_;               // the gradient that is being reduced while the next is computed
  bool first_ = false;
};

}  // namespace atl
