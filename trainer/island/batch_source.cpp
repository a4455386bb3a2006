#include "trainer/island/batch_source.h"

#include <fmt/format.h>

#include <algorithm>

#include "net/data/sequence_order.h"

namespace atl {

DatasetBatches::DatasetBatches(Dataset dataset, DatasetBatchShape shape)
    : dataset_(std::move(dataset)),
      shape_(shape),
      train_sequences_(dataset_.sequences(Split::kTrain, shape.sequence_length)),
      validation_total_(dataset_.sequences(Split::kValidation, shape.sequence_length)),
      rows_(shape.sequences_per_step, shape.sequence_length, shape.attention, dataset_.manifest().end_of_text) {}

Result<TokenBatch> DatasetBatches::train_batch(OuterStep round, std::uint32_t step, const Lease& lease) {
  const std::uint64_t offset = std::uint64_t{step} * shape_.sequences_per_step;
  if (train_sequences_ == 0 || offset + shape_.sequences_per_step > lease.sequences) {
    return Error{ErrorCode::kProtocol,
                 fmt::format("the lease of round {} has {} sequences, too few for inner step {} of {} each",
                             round.value, lease.sequences, step, shape_.sequences_per_step)};
  }
  for (std::uint32_t i = 0; i < shape_.sequences_per_step; ++i) {
    const std::uint64_t sequence = sequence_at(shape_.seed, lease.first_sequence + offset + i, train_sequences_);
    dataset_.read_sequence(Split::kTrain, sequence, shape_.sequence_length, rows_.row(i));
  }
  return rows_.batch(shape_.sequences_per_step);
}

std::uint32_t DatasetBatches::validation_batches() const {
  const auto sequences =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(shape_.validation_sequences, validation_total_));
  return (sequences + shape_.sequences_per_step - 1) / shape_.sequences_per_step;
}

Result<TokenBatch> DatasetBatches::validation_batch(std::uint32_t index) {
  const std::uint64_t total = std::min<std::uint64_t>(shape_.validation_sequences, validation_total_);
  const std::uint64_t first = std::uint64_t{index} * shape_.sequences_per_step;
  const auto count = static_cast<std::uint32_t>(std::min<std::uint64_t>(shape_.sequences_per_step, total - first));
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::uint64_t sequence = (first + i) * validation_total_ / total;
    dataset_.read_sequence(Split::kValidation, sequence, shape_.sequence_length, rows_.row(i));
  }
  return rows_.batch(count);
}

}  // namespace atl
