// What `eval` and `sample` compute with: a model over a cache, and its tokenizer.
#pragma once

#include <memory>

#include "trainer/engine/inference_engine.h"
#include "trainer/evaluate/model_text.h"
#include "trainer/program/model_source.h"
#include "trainer/program/program.h"

namespace atl {

// Vocabularies are rounded up to a multiple that suits the processor; the ids in between are never trained on.
inline constexpr std::int64_t kMostVocabPadding = 255;

// The tokenizer of `choice`, of the directory, or bytes where the model's vocabulary is of them.
Result<ModelText> load_model_text(const OpenedModel& model, const InferenceChoice& choice);

// `slots` texts at once, at most choice.batch, of `capacity` tokens. On the first GPU that this process may use, once
// a small model comes out on it as on the processor; where that fails, on the processor, unless a GPU was asked for.
Result<std::unique_ptr<InferenceEngine>> load_inference(const OpenedModel& model, const InferenceChoice& choice,
                                                        std::int64_t slots, std::int64_t capacity);

}  // namespace atl
