#include "trainer/island/engine_options.h"

namespace atl {

EngineOptions engine_options(const RunConfig& run, const IslandShape& island, int threads) {
  EngineOptions engine;
  engine.local_ranks = static_cast<int>(island.local_ranks);
  engine.seed.reset();  // an outer state is written to it before it trains
  engine.adamw = {.beta1 = static_cast<float>(run.inner.beta1),
                  .beta2 = static_cast<float>(run.inner.beta2),
                  .epsilon = static_cast<float>(run.inner.epsilon),
                  .weight_decay = static_cast<float>(run.inner.weight_decay)};
  engine.train_only = run.train_only;
  engine.clip_norm = run.inner.clip_grad_norm;
  engine.max_z_loss = run.inner.max_z_loss;
  engine.compute_threads = threads;
  engine.micro_batch_sequences = island.micro_batch;
  engine.precision = island.precision;
  engine.recompute = island.recompute;
  engine.keep_gathered = island.keep_gathered;
  engine.attention = run.attention;
  return engine;
}

}  // namespace atl
