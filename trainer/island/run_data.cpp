#include "trainer/island/run_data.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "net/base/file.h"
#include "net/base/sha256.h"

namespace atl {
namespace {

std::vector<ShardEntry> all_shards(const DatasetManifest& manifest) {
  std::vector<ShardEntry> shards = manifest.train;
  shards.insert(shards.end(), manifest.validation.begin(), manifest.validation.end());
  return shards;
}

bool has_size(const std::filesystem::path& path, std::uint64_t bytes) {
  std::error_code missing;
  const std::uintmax_t size = std::filesystem::file_size(path, missing);
  return !missing && size == bytes;
}

void remove_damaged(const std::filesystem::path& directory, const std::vector<ShardEntry>& shards) {
  for (const ShardEntry& shard : shards) {
    const Result<MappedFile> file = MappedFile::open(directory / shard.file);
    if (file.ok() && sha256_hex(file->bytes()) == shard.sha256) continue;
    spdlog::warn("data damaged={}", shard.file);
    std::error_code ignored;
    std::filesystem::remove(directory / shard.file, ignored);
  }
}

}  // namespace

Result<std::unique_ptr<BatchSource>> open_run_data(const RunConfig& run, const Identity& identity,
                                                   const std::vector<Address>& hub,
                                                   const std::filesystem::path& directory, const AbortSignal& abort,
                                                   TransferNews& news, const FetchTrouble& trouble) {
  ATOLL_ASSIGN_OR_RETURN(const DatasetManifest manifest, DatasetManifest::from_json(run.dataset_json));
  ATOLL_RETURN_IF_ERROR(make_directories(directory));
  const std::vector<ShardEntry> shards = all_shards(manifest);
  const auto fetch_missing = [&]() -> Status {
    const auto is_missing = [&](const ShardEntry& shard) { return !has_size(directory / shard.file, shard.bytes); };
    std::uint64_t total = 0, before = 0;
    for (const ShardEntry& shard : shards) total += is_missing(shard) ? shard.bytes : 0;
    for (const ShardEntry& shard : shards) {
      if (!is_missing(shard)) continue;
      spdlog::info("data fetch={} bytes={}", shard.file, shard.bytes);
      ATOLL_RETURN_IF_ERROR(fetch_dataset_file(
          identity, hub, shard.file, shard.bytes, shard.sha256, directory / shard.file, abort,
          [&](std::uint64_t done, std::uint64_t) { news.progress(before + done, total, Clock::now()); }, trouble));
      before += shard.bytes;
    }
    return ok_status();
  };
  ATOLL_RETURN_IF_ERROR(fetch_missing());
  Result<Dataset> dataset = Dataset::open(directory, manifest);
  if (!dataset.ok() || !dataset->verify().ok()) {  // once more, without what was damaged on this disk
    remove_damaged(directory, shards);
    ATOLL_RETURN_IF_ERROR(fetch_missing());
    dataset = Dataset::open(directory, manifest);
    if (!dataset.ok()) return dataset.error();
    ATOLL_RETURN_IF_ERROR(dataset->verify());
  }
  if (dataset->sequences(Split::kTrain, run.sequence_length) == 0) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("the run's training split has {} tokens, too few for one sequence of {}: its operator has "
                             "to prepare more text",
                             manifest.tokens(Split::kTrain), run.sequence_length)};
  }
  return std::unique_ptr<BatchSource>(std::make_unique<DatasetBatches>(
      std::move(*dataset), DatasetBatchShape{.seed = run.seed,
                                             .sequences_per_step = run.sequences_per_step,
                                             .sequence_length = run.sequence_length,
                                             .validation_sequences = run.validation_sequences}));
}

}  // namespace atl
