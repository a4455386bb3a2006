#include "net/hub/hub_data.h"

#include <fmt/format.h>

#include <algorithm>

#include "net/base/file.h"
#include "net/base/json_reader.h"
#include "net/base/new_file.h"
#include "net/base/sha256.h"
#include "net/data/chat_template.h"
#include "net/data/sequence_map.h"
#include "net/data/source_name.h"
#include "net/data/token_shard.h"
#include "net/data/tree_builder.h"
#include "net/hub/evaluation_files.h"

namespace atl {
namespace {

constexpr std::uint64_t kSequencesOfChunk = 8;  // at least, of chunks that are made for the run

std::filesystem::path tree_in_home(const HubHome& home, const std::string& source, Split split) {
  return home.trees() / fmt::format("{}.{}", source, tree_file(split));
}

// Larger ones for sequences of which few would fit.
std::uint32_t chunk_bytes_for(std::uint32_t sequence_length, std::uint32_t token_bytes) {
  std::uint64_t bytes = kDefaultChunkBytes;
  while (bytes < kSequencesOfChunk * sequence_length * token_bytes && bytes < kMaxChunkBytes) bytes *= 2;
  return static_cast<std::uint32_t>(bytes);
}

// A tree that was made of another state of the directory would have islands refuse what they are given.
Status check_same_shards(const ChunkTreeIndex& index, const std::vector<ShardEntry>& entries) {
  const auto same = [](const TreeShard& shard, const ShardEntry& entry) {
    return shard.file == entry.file && shard.tokens == entry.tokens;
  };
  if (std::ranges::equal(index.shards, entries, same)) return ok_status();
  return Error{ErrorCode::kInvalidArgument,
               "its hash tree is of other shards than its dataset.json; make it again: atoll data index"};
}

class SourceMaker {
 public:
  SourceMaker(const HubDataSource& source, const DatasetManifest& manifest, std::uint32_t sequence_length,
              const HubHome& home, const OnIndexing& on_indexing)
      : source_(source), manifest_(manifest), length_(sequence_length), home_(home), on_indexing_(on_indexing) {}

  Result<TreeRoot> tree(Split split) {
    const std::filesystem::path ready = source_.directory / tree_file(split);
    const std::filesystem::path kept = tree_in_home(home_, source_.name, split);
    std::error_code failed;
    if (std::filesystem::exists(ready, failed)) {
      ATOLL_RETURN_IF_ERROR(copy(ready, kept));
    } else {
      ATOLL_RETURN_IF_ERROR(make(split, kept));
    }
    ATOLL_ASSIGN_OR_RETURN(const TreeHead head, read_tree_head(kept));
    ATOLL_RETURN_IF_ERROR(check_same_shards(head.index, manifest_.shards(split)));
    const SequenceMap map(0, 0, {head.index.tokens, head.index.chunk_tokens(), length_});
    if (split == Split::kTrain && map.sequences() == 0) {
      return Error{
          ErrorCode::kInvalidArgument,
          fmt::format("{} tokens in chunks of {} are too few for a sequence of {}; prepare more text, choose a "
                      "shorter --sequence-length, or index it in larger chunks: atoll data index --chunk-bytes",
                      head.index.tokens, head.index.chunk_tokens(), length_)};
    }
    return TreeRoot{head.index.tokens, head.index_bytes, head.sha256};
  }

 private:
  static Status copy(const std::filesystem::path& from, const std::filesystem::path& to) {
    ATOLL_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::open(from));
    ATOLL_ASSIGN_OR_RETURN(NewFile made, NewFile::create(to, FileMode::kPrivate));
    ATOLL_RETURN_IF_ERROR(made.write(file.bytes()));
    return made.take_place();
  }

  Status make(Split split, const std::filesystem::path& path) {
    if (!dataset_) {
      ATOLL_ASSIGN_OR_RETURN(dataset_, Dataset::open(source_.directory, manifest_));
    }
    const std::uint32_t chunk_bytes = chunk_bytes_for(length_, dataset_->token_bytes(split));
    return make_chunk_tree(*dataset_, split, chunk_bytes, path, [this](std::uint64_t done, std::uint64_t all) {
      return !on_indexing_ || on_indexing_(source_.name, done, all);
    });
  }

  const HubDataSource& source_;
  const DatasetManifest& manifest_;
  const std::uint32_t length_;
  const HubHome& home_;
  const OnIndexing& on_indexing_;
  std::optional<Dataset> dataset_;
};

Status check_one_tokenizer(const RunDataset& run, const DatasetManifest& other) {
  const auto sha256_of = [](const std::optional<TokenizerEntry>& file) { return file ? file->sha256 : std::string(); };
  if (run.tokenizer == other.tokenizer && run.vocab_size == other.vocab_size && run.end_of_text == other.end_of_text &&
      sha256_of(run.tokenizer_file) == sha256_of(other.tokenizer_file)) {
    return ok_status();
  }
  return Error{
      ErrorCode::kInvalidArgument,
      fmt::format("it was prepared with the tokenizer {} of {} tokens, and the first source with {} of {}; all "
                  "sources of a run have one",
                  other.tokenizer, other.vocab_size, run.tokenizer, run.vocab_size)};
}

Result<RunSource> make_source(const HubDataSource& source, std::uint32_t sequence_length, const HubHome& home,
                              const OnIndexing& on_indexing, RunDataset& run) {
  ATOLL_ASSIGN_OR_RETURN(const DatasetManifest manifest, DatasetManifest::load(source.directory));
  if (run.sources.empty()) {
    run.tokenizer = manifest.tokenizer;
    run.vocab_size = manifest.vocab_size;
    run.end_of_text = manifest.end_of_text;
    run.tokenizer_file = manifest.tokenizer_file;
  }
  ATOLL_RETURN_IF_ERROR(check_one_tokenizer(run, manifest));
  if (manifest.marked_labels) run.chat_template = kLlama3ChatTemplateName;
  SourceMaker maker(source, manifest, sequence_length, home, on_indexing);
  RunSource made;
  made.name = source.name;
  made.manifest_sha256 = sha256_hex(as_bytes(manifest.to_json()));
  made.mirrors = source.mirrors;
  made.license = manifest.license;
  ATOLL_ASSIGN_OR_RETURN(made.train, maker.tree(Split::kTrain));
  if (manifest.tokens(Split::kValidation) > 0) {
    ATOLL_ASSIGN_OR_RETURN(made.validation, maker.tree(Split::kValidation));
  }
  return made;
}

void serve_shards(const std::string& prefix, const std::filesystem::path& directory, const ChunkTreeIndex& index,
                  ServedFiles& files) {
  for (const TreeShard& shard : index.shards) {
    files[prefix + shard.file] = {directory / shard.file, kTokenShardHeaderBytes + shard.tokens * index.token_bytes};
  }
}

}  // namespace

Result<RunDataset> make_run_dataset(const std::vector<HubDataSource>& sources, const std::vector<NamedShare>& weights,
                                    std::uint32_t sequence_length, const HubHome& home, const OnIndexing& on_indexing) {
  if (sources.empty() || sources.size() > kMaxMixtureSources) {
    return Error{ErrorCode::kInvalidArgument, fmt::format("a run has 1 to {} sources of data", kMaxMixtureSources)};
  }
  ATOLL_RETURN_IF_ERROR(make_directories(home.trees(), FileMode::kPrivate));
  RunDataset run;
  std::vector<std::string> names;
  std::vector<double> tokens;
  for (HubDataSource source : sources) {
    if (source.name.empty()) source.name = source_name_of(source.directory);
    if (!is_island_name(source.name)) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("'{}' cannot be the name of a source: 1 to 64 of a-z 0-9 -", source.name)};
    }
    if (std::ranges::find(names, source.name) != names.end()) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("two sources are called {}; name them: --data NAME=DIR", source.name)};
    }
    for (const std::string& mirror : source.mirrors) ATOLL_RETURN_IF_ERROR(check_mirror(mirror));
    auto made = make_source(source, sequence_length, home, on_indexing, run);
    if (!made.ok()) return made.error().with_context(source.directory.string());
    names.push_back(source.name);
    tokens.push_back(static_cast<double>(made->train.tokens));
    run.sources.push_back(std::move(*made));
  }
  ATOLL_ASSIGN_OR_RETURN(const MixtureWeights shares,
                         weights.empty() ? mixture_weights(tokens) : weights_of(names, weights));
  for (std::size_t i = 0; i < shares.size(); ++i) run.sources[i].weight = shares[i];
  ATOLL_RETURN_IF_ERROR(RunDataset::from_json(run.to_json()));
  return run;
}

Result<ServedFiles> served_files(const RunConfig& run, const HubFile& hub, const HubHome& home) {
  ServedFiles files;
  for (const EvaluationTask& task : run.evaluation.tasks) {
    files[evaluation_file_name(task)] = {evaluation_file_in(home, task), task.bytes};
  }
  if (!has_sources(run.dataset_json)) {
    ATOLL_ASSIGN_OR_RETURN(const DatasetManifest manifest, DatasetManifest::from_json(run.dataset_json));
    for (const Split split : {Split::kTrain, Split::kValidation}) {
      for (const ShardEntry& shard : manifest.shards(split)) {
        files[shard.file] = {hub.datasets.begin()->second / shard.file, shard.bytes};
      }
    }
    return files;
  }
  ATOLL_ASSIGN_OR_RETURN(const RunDataset data, RunDataset::from_json(run.dataset_json));
  for (const RunSource& source : data.sources) {
    const auto directory = hub.datasets.find(source.name);
    if (directory == hub.datasets.end()) {
      return Error{ErrorCode::kCorrupt, fmt::format("{} does not say where the data's source {} is; restore it from a "
                                                    "backup",
                                                    home.hub_file().string(), source.name)};
    }
    for (const Split split : {Split::kTrain, Split::kValidation}) {
      const TreeRoot& root = split == Split::kTrain ? source.train : source.validation;
      if (root.tokens == 0) continue;
      const std::filesystem::path path = tree_in_home(home, source.name, split);
      ATOLL_ASSIGN_OR_RETURN(const TreeHead head, read_tree_head(path));
      if (head.sha256 != root.sha256) {
        return Error{ErrorCode::kCorrupt, fmt::format("{} is not the run's; restore it from a backup", path.string())};
      }
      files[fmt::format("{}/{}", source.name, tree_file(split))] = {path, head.index.tree_bytes(head.index_bytes)};
      serve_shards(source.name + "/", directory->second, head.index, files);
    }
    if (data.tokenizer_file && &source == &data.sources.front()) {
      files[data.tokenizer_file->file] = {directory->second / data.tokenizer_file->file, data.tokenizer_file->bytes};
    }
  }
  return files;
}

std::string lacking(const ServedFiles& files) {
  std::size_t count = 0;
  std::string first;
  for (const auto& [name, file] : files) {
    std::error_code failed;
    const std::uintmax_t bytes = std::filesystem::file_size(file.path, failed);
    if (!failed && bytes >= file.bytes) continue;
    if (count++ > 0) continue;
    first = fmt::format("{} {}", file.path.string(), failed ? "is not there" : "is shorter than the run's");
  }
  if (count == 0) return {};
  return fmt::format(
      "{}{}; islands that have no mirror or neighbour with it wait for it: put it back, or say where it "
      "was moved to (atoll hub data)",
      first, count == 1 ? "" : fmt::format(", and {} more", count - 1));
}

Status check_moved_data(const RunConfig& run, const std::string& source, const std::filesystem::path& directory) {
  ATOLL_ASSIGN_OR_RETURN(const DatasetManifest manifest, DatasetManifest::load(directory));
  const std::string text = manifest.to_json();
  bool same = text == run.dataset_json;
  if (has_sources(run.dataset_json)) {
    ATOLL_ASSIGN_OR_RETURN(const RunDataset data, RunDataset::from_json(run.dataset_json));
    const auto found = std::ranges::find(data.sources, source, &RunSource::name);
    same = found != data.sources.end() && found->manifest_sha256 == sha256_hex(as_bytes(text));
  }
  if (same) return ok_status();
  return Error{
      ErrorCode::kInvalidArgument,
      fmt::format("{} is another dataset than that of run {}, whose islands have agreed on its hashes; copy the "
                  "run's own there",
                  directory.string(), run.name)};
}

}  // namespace atl
