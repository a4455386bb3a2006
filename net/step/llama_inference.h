// The programs of Llama's forward pass over a cache of keys and values: what reads texts and writes on. Rows are tokens
// of any of the cache's slots, a text each, at whatever positions: prompts of different lengths lie end to end, without
// padding between them, and a row of each text that is being written is a batch as well. Pure, as
// net/step/llama_step.h. Any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "net/model/config.h"
#include "net/model/layout.h"
#include "net/step/llama_step.h"
#include "net/step/program.h"
#include "net/step/traits.h"

namespace atl {

struct InferenceShape {
  Precision precision = Precision::kFp32;
  std::int64_t slots = 1;     // texts that are there at once
  std::int64_t capacity = 1;  // tokens of each
  StepTraits traits;          // of the device that is to run the programs
};

class LlamaInference {
 public:
  // `config` is valid.
  LlamaInference(const ModelConfig& config, const InferenceShape& shape);

  const ParameterLayout& layout() const { return layout_; }
  DType element() const { return shape_.precision == Precision::kBf16 ? DType::kBfloat16 : DType::kFloat32; }
  // T [numel], in the canonical order.
  const Tensor& weights() const { return weights_; }
  std::int64_t weight_bytes() const { return weights_.extent_bytes(); }
  // Of the kept arena: the weights and the cache.
  std::int64_t kept_bytes() const { return buffers_.bytes(); }
  // Of the cache, a token of one slot.
  static std::int64_t cache_bytes_per_token(const ModelConfig& config, Precision precision);

  // Inputs of both: "tokens", "slots", "positions" int32 [rows], a slot of -1 being a row that is not there; "cosines",
  // "sines" fp32 [rows, head_dim / 2], of each row's position; "chosen" int32 [chosen], the rows whose logits are
  // wanted, unless there are none.

  // Output "logits": T [chosen, vocab].
  Program logits(std::int64_t rows, std::int64_t chosen) const;
  // Input "labels": int32 [chosen]. Outputs "log probabilities" fp32, "greedy" int32, both [chosen]. Logits are there a
  // slice of rows at once.
  Program scores(std::int64_t rows, std::int64_t chosen) const;

 private:
  struct Pass;

  // Of the layout's unit, parameter number `first` in it and those that follow, as rows of `columns`.
  Tensor part(std::size_t unit, std::size_t first, std::int64_t rows, std::int64_t columns) const;
  Tensor table() const;
  Tensor block(Pass& pass, std::size_t index, const Tensor& x) const;
  Tensor attended(Pass& pass, std::size_t index, const Tensor& qkv) const;
  // Of the chosen rows, after the final norm.
  Tensor body(Pass& pass) const;

  const ModelConfig config_;
  const InferenceShape shape_;
  const ParameterLayout layout_;
  KeptBuffers buffers_;
  Tensor weights_;
  std::vector<Tensor> keys_, values_;  // of each block
};

}  // namespace atl
