// The loss of a model that is computed over a cache on a batch of a dataset: what Engine::evaluate (engine.h) comes to,
// with the weights once in memory and neither gradients nor moments beside them. One thread.
#pragma once

#include <cstdint>

#include "net/base/result.h"
#include "trainer/engine/engine.h"
#include "trainer/engine/inference_engine.h"

namespace atl {

struct LossSum {
  double nats = 0;          // cross-entropy, over the labels that count
  std::int64_t labels = 0;  // that count
};

// What the batch says is one document (TokenBatch::starts) is a slot's text, as many at once as the engine has slots,
// which hold batch.length tokens at least. What slots held before is forgotten. kNonFinite: the loss is no number.
Result<LossSum> batch_loss(InferenceEngine& engine, const TokenBatch& batch);

}  // namespace atl
