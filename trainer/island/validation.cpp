#include "trainer/island/validation.h"

#include <algorithm>
#include <cmath>

namespace atl {
namespace {

constexpr double kWorstLoss = 1e6;  // nats

}  // namespace

Result<std::optional<double>> validation_loss(Engine& engine, BatchSource& batches, const AbortSignal& stop) {
  const std::optional<double> given_up;
  double loss_sum = 0;
  std::int64_t tokens = 0;
  for (std::uint32_t i = 0; i < batches.validation_batches() && !stop.raised(); ++i) {
    ATOLL_ASSIGN_OR_RETURN(const TokenBatch batch, batches.validation_batch(i));
    const Result<double> evaluated = engine.evaluate(batch);
    if (!evaluated.ok() && evaluated.error().code == ErrorCode::kAborted) return given_up;  // its owner ends it
    const bool is_no_number = !evaluated.ok() && evaluated.error().code == ErrorCode::kNonFinite;
    ATOLL_ASSIGN_OR_RETURN(const double loss, is_no_number ? Result<double>(kWorstLoss) : evaluated);
    loss_sum += loss * static_cast<double>(batch.predicted_count());
    tokens += batch.predicted_count();
  }
  if (tokens == 0 || stop.raised()) return given_up;
  // A state whose loss is no number is as bad as can be; the hub has to hear of it.
  const double mean = loss_sum / static_cast<double>(tokens);
  return std::optional<double>(std::isfinite(mean) ? std::min(mean, kWorstLoss) : kWorstLoss);
}

}  // namespace atl
