// The loss of an engine's parameters on a run's validation sequences. On the island's thread.
#pragma once

#include <optional>

#include "net/base/abort_signal.h"
#include "net/base/result.h"
#include "trainer/engine/engine.h"
#include "trainer/island/batch_source.h"

namespace atl {

// Nats a token, over all validation batches; bounded, also where it is no number. Nothing: there are none, or it was
// given up.
Result<std::optional<double>> validation_loss(Engine& engine, BatchSource& batches, const AbortSignal& stop);

}  // namespace atl
