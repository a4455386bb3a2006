#include "trainer/island/run_data.h"

#include <spdlog/spdlog.h>

#include "net/base/file.h"
#include "net/recovery/state_fetch.h"

namespace atl {

Result<std::unique_ptr<BatchSource>> open_run_data(const RunConfig& run, const Identity& identity,
                                                   const std::vector<Address>& hub,
                                                   const std::filesystem::path& directory, const AbortSignal& abort) {
  ATOLL_ASSIGN_OR_RETURN(DatasetManifest manifest, DatasetManifest::from_json(run.dataset_json));
  ATOLL_RETURN_IF_ERROR(make_directories(directory));
  for (const auto* split : {&manifest.train, &manifest.validation}) {
    for (const ShardEntry& shard : *split) {
      std::error_code missing;
      const std::filesystem::path path = directory / shard.file;
      if (std::filesystem::file_size(path, missing) == shard.bytes && !missing) continue;
      spdlog::info("data fetch={} bytes={}", shard.file, shard.bytes);
      ATOLL_RETURN_IF_ERROR(fetch_dataset_file(identity, hub, shard.file, shard.bytes, shard.sha256, path, abort,
                                               [](std::uint64_t, std::uint64_t) {}));
    }
  }
  ATOLL_ASSIGN_OR_RETURN(Dataset dataset, Dataset::open(directory, std::move(manifest)));
  ATOLL_RETURN_IF_ERROR(dataset.verify());
  ATOLL_ASSIGN_OR_RETURN(
      auto batches, DatasetBatches::create(std::move(dataset), {.seed = run.seed,
                                                                .sequences_per_step = run.sequences_per_step,
                                                                .sequence_length = run.sequence_length,
                                                                .validation_sequences = run.validation_sequences}));
  return std::unique_ptr<BatchSource>(std::move(batches));
}

}  // namespace atl
