#include "trainer/island/run_data.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>

#include "net/base/file.h"
#include "net/base/sha256.h"
#include "net/data/hub_origin.h"
#include "net/data/mirror_origin.h"
#include "net/data/run_dataset.h"
#include "trainer/island/streamed_batches.h"

namespace atl {
namespace {

struct DataFile {
  std::string name;
  std::uint64_t bytes = 0;
  std::string sha256;
};

std::vector<DataFile> files_of(const DatasetManifest& manifest) {
  std::vector<DataFile> files;
  if (const auto& tokenizer = manifest.tokenizer_file) {
    files.push_back({tokenizer->file, tokenizer->bytes, tokenizer->sha256});
  }
  for (const auto* split : {&manifest.train, &manifest.validation}) {
    for (const ShardEntry& shard : *split) files.push_back({shard.file, shard.bytes, shard.sha256});
  }
  return files;
}

bool has_size(const std::filesystem::path& path, std::uint64_t bytes) {
  std::error_code missing;
  const std::uintmax_t size = std::filesystem::file_size(path, missing);
  return !missing && size == bytes;
}

void remove_damaged(const std::filesystem::path& directory, const std::vector<DataFile>& files) {
  for (const DataFile& wanted : files) {
    const Result<MappedFile> file = MappedFile::open(directory / wanted.name);
    if (file.ok() && sha256_hex(file->bytes()) == wanted.sha256) continue;
    spdlog::warn("data damaged={}", wanted.name);
    std::error_code ignored;
    std::filesystem::remove(directory / wanted.name, ignored);
  }
}

DatasetBatchShape shape_of(const RunConfig& run) {
  return {.seed = run.seed,
          .sequences_per_step = run.sequences_per_step,
          .sequence_length = run.sequence_length,
          .validation_sequences = run.validation_sequences,
          .attention = run.attention};
}

// Of a thread: mirrors before the hub, which serves everybody. One that may not be asked says so where data is missed.
Result<std::vector<DataOrigins>> origins_of(const std::vector<RunSource>& sources, const std::vector<TreeFile>& trees,
                                            const RunDataOptions& options) {
  ATOLL_ASSIGN_OR_RETURN(HttpsFetcher made,
                         HttpsFetcher::create(options.identity, DatasetFetchOptions{}.stall, options.download));
  const auto fetcher = std::make_shared<HttpsFetcher>(std::move(made));
  std::vector<DataOrigins> origins(trees.size());
  for (std::size_t i = 0; i < trees.size(); ++i) {
    const auto source = std::ranges::find(sources, trees[i].source, &RunSource::name);
    for (const std::string& mirror : source->mirrors) {
      auto origin = mirror_origin(mirror, options.store, {.policy = options.mirrors, .download = options.download});
      origins[i].push_back(origin.ok() ? std::move(*origin) : refused_origin(mirror, origin.error()));
    }
    origins[i].push_back(hub_origin(fetcher, options.hub, source->name));
  }
  return origins;
}

// Training needs none; who exports the model does.
Status fetch_tokenizer(const TokenizerEntry& file, const RunDataOptions& options, const AbortSignal& abort,
                       TransferNews& news) {
  const std::filesystem::path path = options.directory / file.file;
  const Result<MappedFile> there = MappedFile::open(path);
  if (there.ok() && sha256_hex(there->bytes()) == file.sha256) return ok_status();
  ATOLL_RETURN_IF_ERROR(make_directories(options.directory));
  return fetch_dataset_file(options.identity, options.hub, file.file, file.bytes, file.sha256, path, abort,
                            [&](std::uint64_t done, std::uint64_t all) { news.progress(done, all, Clock::now()); },
                            options.trouble, {.download = options.download});
}

Result<std::unique_ptr<BatchSource>> open_streamed(const RunConfig& run, const RunDataOptions& options,
                                                   const AbortSignal& abort, TransferNews& news,
                                                   const ChunkStoreOptions& fetch) {
  ATOLL_ASSIGN_OR_RETURN(const RunDataset dataset, RunDataset::from_json(run.dataset_json));
  if (dataset.tokenizer_file) ATOLL_RETURN_IF_ERROR(fetch_tokenizer(*dataset.tokenizer_file, options, abort, news));
  ChunkStoreParts parts;
  parts.trees = trees_of(dataset);
  ATOLL_ASSIGN_OR_RETURN(parts.cache, BlobCache::open(options.directory / "cache", options.cache_bytes));
  parts.make_origins = [sources = dataset.sources, trees = parts.trees, options] {
    return origins_of(sources, trees, options);
  };
  parts.trouble = options.trouble;
  parts.ends_wait = options.ends_wait;
  if (options.islands != nullptr) {
    parts.make_peers = [islands = options.islands] { return islands->on_this_thread(); };
  }
  const auto progress = [&](std::uint64_t done, std::uint64_t all) { news.progress(done, all, Clock::now()); };
  ATOLL_ASSIGN_OR_RETURN(auto opened, ChunkStore::open(std::move(parts), abort, progress, fetch));
  const std::shared_ptr<ChunkStore> store = std::move(opened);
  if (options.islands != nullptr) options.islands->serve(store);
  return StreamedBatches::create(dataset, store, shape_of(run));
}

}  // namespace

Result<std::unique_ptr<BatchSource>> open_run_data(const RunConfig& run, const RunDataOptions& options,
                                                   const AbortSignal& abort, TransferNews& news,
                                                   const ChunkStoreOptions& fetch) {
  if (has_sources(run.dataset_json)) return open_streamed(run, options, abort, news, fetch);
  const std::filesystem::path& directory = options.directory;
  ATOLL_ASSIGN_OR_RETURN(const DatasetManifest manifest, DatasetManifest::from_json(run.dataset_json));
  ATOLL_RETURN_IF_ERROR(make_directories(directory));
  const std::vector<DataFile> files = files_of(manifest);
  const auto fetch_missing = [&]() -> Status {
    const auto is_missing = [&](const DataFile& file) { return !has_size(directory / file.name, file.bytes); };
    std::uint64_t total = 0, before = 0;
    for (const DataFile& file : files) total += is_missing(file) ? file.bytes : 0;
    for (const DataFile& file : files) {
      if (!is_missing(file)) continue;
      spdlog::info("data fetch={} bytes={}", file.name, file.bytes);
      ATOLL_RETURN_IF_ERROR(fetch_dataset_file(
          options.identity, options.hub, file.name, file.bytes, file.sha256, directory / file.name, abort,
          [&](std::uint64_t done, std::uint64_t) { news.progress(before + done, total, Clock::now()); },
          options.trouble, {.download = options.download}));
      before += file.bytes;
    }
    return ok_status();
  };
  ATOLL_RETURN_IF_ERROR(fetch_missing());
  Result<Dataset> dataset = Dataset::open(directory, manifest);
  if (!dataset.ok() || !dataset->verify().ok()) {  // once more, without what was damaged on this disk
    remove_damaged(directory, files);
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
  return std::unique_ptr<BatchSource>(std::make_unique<DatasetBatches>(std::move(*dataset), shape_of(run)));
}

}  // namespace atl
