// Where inner steps get their tokens from: the hub's lease of the run's training sequences, or what a test says.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "net/base/id.h"
#include "net/base/result.h"
#include "net/data/dataset.h"
#include "net/wire/mixture.h"
#include "trainer/engine/engine.h"
#include "trainer/island/token_rows.h"

namespace atl {

struct Lease {  // positions in the run's order of sequences
  std::uint64_t first_sequence = 0;
  std::uint64_t sequences = 0;
  std::span<const MixtureEra> mixture = {};  // as the hub told it with the round
  // Where the next lease may begin: its data is fetched when that of this one is there.
  std::optional<std::uint64_t> expected_sequence = {};
};

// Called by the island's thread.
class BatchSource {
 public:
  virtual ~BatchSource() = default;
  // The batch of inner step `step` (from 0) of `round`; valid until the next call. kUnreachable: the lease's data
  // cannot be had.
  virtual Result<TokenBatch> train_batch(OuterStep round, std::uint32_t step, const Lease& lease) = 0;
  // The fixed batches over which the run's validation loss is taken; none if there is no validation split.
  virtual std::uint32_t validation_batches() const = 0;
  virtual Result<TokenBatch> validation_batch(std::uint32_t index) = 0;
};

// As the run says it: without a default, as none would be right for every run.
struct DatasetBatchShape {
  std::uint64_t seed;
  std::uint32_t sequences_per_step;
  std::uint32_t sequence_length;
  std::uint32_t validation_sequences;  // evenly spaced over the validation split
  AttentionScope attention = AttentionScope::kPacked;
};

// Of a dataset that lies whole on this disk: a tool's, or of a run that was made before data had sources.
class DatasetBatches final : public BatchSource {
 public:
  // A split that is too small for a single sequence has no batches.
  DatasetBatches(Dataset dataset, DatasetBatchShape shape);

  Result<TokenBatch> train_batch(OuterStep round, std::uint32_t step, const Lease& lease) override;
  std::uint32_t validation_batches() const override;
  Result<TokenBatch> validation_batch(std::uint32_t index) override;

 private:
  Dataset dataset_;
  const DatasetBatchShape shape_;
  const std::uint64_t train_sequences_;
  const std::uint64_t validation_total_;  // sequences of the split
  TokenRows rows_;
};

}  // namespace atl
