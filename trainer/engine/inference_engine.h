// A model that reads texts and says how it goes on, on this processor or on a GPU, with a cache of keys and values:
// each token is computed once, whatever follows it. A slot of the cache holds one text from its beginning. Owned and
// used by one thread, which each call blocks.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "net/base/result.h"
#include "net/model/config.h"
#include "net/step/llama_step.h"

namespace atl {

class DeviceGroup;

struct InferenceOptions {
  Precision precision = Precision::kFp32;  // of weights, cache and activations
  std::int64_t slots = 1;
  std::int64_t capacity = 1;     // tokens of a slot; at most max_position_embeddings
  std::int64_t most_rows = 512;  // computed at once: longer prompts take several passes
  int compute_threads = 1;       // of a processor
  // What may be taken of the device's memory; none: as much as is wanted.
  std::optional<std::uint64_t> available_bytes = {};
};

// Tokens that follow what their slot holds already.
struct SlotTokens {
  std::int64_t slot = 0;
  std::span<const std::int32_t> tokens;  // at least one
  // What really comes after each of the last `labels.size()` tokens; for scores() alone.
  std::span<const std::int32_t> labels;
};

struct TokenScore {
  float log_probability = 0;  // natural logarithm
  bool greedy = false;        // the label is the likeliest token, the first of those that are
};

// Gives the parameters from number `first` on, in the canonical order (net/model/layout.h).
using ReadParameters = std::function<void(std::int64_t first, std::span<float> values)>;

class InferenceEngine {
 public:
  // Parameters are read in pieces, within the call. kInvalidArgument says how many texts of how many tokens fit where
  // these do not. On this processor.
  static Result<std::unique_ptr<InferenceEngine>> create(const ModelConfig& config, const InferenceOptions& options,
                                                         const ReadParameters& parameters);
  // On the one device of the group.
  static Result<std::unique_ptr<InferenceEngine>> create(const ModelConfig& config, const InferenceOptions& options,
                                                         const ReadParameters& parameters,
                                                         std::unique_ptr<DeviceGroup> devices);
  virtual ~InferenceEngine() = default;
  InferenceEngine(const InferenceEngine&) = delete;
  InferenceEngine& operator=(const InferenceEngine&) = delete;

  virtual const ModelConfig& config() const = 0;
  virtual const InferenceOptions& options() const = 0;
  virtual std::int64_t kept_bytes() const = 0;  // weights and cache
  virtual DeviceKind device_kind() const = 0;   // what computes

  // Tokens that the slot holds.
  virtual std::int64_t length(std::int64_t slot) const = 0;
  // Forgets all but the first `length`.
  virtual void keep(std::int64_t slot, std::int64_t length) = 0;

  // Adds tokens, of any slots, each named once. Where they fail, the slots that are named are empty.
  // [texts.size(), vocab_size]: of what follows each one's last token.
  virtual Result<std::vector<float>> logits(std::span<const SlotTokens> texts) = 0;
  // Of all labels, text by text.
  virtual Result<std::vector<TokenScore>> scores(std::span<const SlotTokens> texts) = 0;

 protected:
  InferenceEngine() = default;
};

}  // namespace atl
