// Batches of a run whose dataset has sources with weights: a position of the lease is a sequence of one of them
// (net/data/mixture.h, sequence_map.h), which lies in a chunk, which is fetched when the lease needs it, ahead of time
// (net/data/chunk_store.h). Nothing is kept from lease to lease but what the cache keeps. The island's thread.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "net/data/chunk_store.h"
#include "net/data/mixture.h"
#include "net/data/run_dataset.h"
#include "net/data/sequence_map.h"
#include "trainer/island/batch_source.h"

namespace atl {

// The trees of a run's dataset, as its ChunkStore numbers them: of each source the training split's, by the source's
// number, then those of the validation splits, of the sources that have one.
std::vector<TreeFile> trees_of(const RunDataset& dataset);

class StreamedBatches final : public BatchSource {
 public:
  // kInvalidArgument when the run's sequences do not fit its data.
  static Result<std::unique_ptr<BatchSource>> create(const RunDataset& dataset, std::shared_ptr<ChunkStore> store,
                                                     const DatasetBatchShape& shape);

  Result<TokenBatch> train_batch(OuterStep round, std::uint32_t step, const Lease& lease) override;
  std::uint32_t validation_batches() const override;
  Result<TokenBatch> validation_batch(std::uint32_t index) override;

 private:
  struct Place {
    ChunkId chunk;
    std::uint32_t sequence = 0;
  };
  struct Planned {  // what the store was told to fetch
    std::uint64_t first = 0, sequences = 0;
    std::vector<MixtureEra> eras;
  };

  StreamedBatches(const RunDataset& dataset, std::shared_ptr<ChunkStore> store, const DatasetBatchShape& shape);
  void hold_out(const RunDataset& dataset);
  Status plan(const Lease& lease);
  Place place_of(std::uint64_t position) const;
  Status read(const Place& place, std::uint32_t row);

  const std::shared_ptr<ChunkStore> store_;  // shared with requests that read from it
  const DatasetBatchShape shape_;
  MixtureEra begin_;               // as the run's configuration says
  std::vector<SequenceMap> maps_;  // by source
  std::vector<Place> held_out_;    // over which the validation loss is taken
  std::optional<Mixture> mixture_;
  std::optional<Planned> planned_;
  TokenRows rows_;
};

}  // namespace atl
