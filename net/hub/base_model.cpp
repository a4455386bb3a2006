#include "net/hub/base_model.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <variant>

#include "net/base/encoding.h"
#include "net/base/file.h"
#include "net/base/mutex.h"
#include "net/base/new_file.h"
#include "net/base/parallel.h"
#include "net/base/printable.h"
#include "net/base/round_words.h"
#include "net/data/run_dataset.h"
#include "net/data/tokenizer_of_data.h"
#include "net/disk/checkpoint_directory.h"
#include "net/disk/checkpoint_model.h"
#include "net/disk/replay.h"
#include "net/hub/hub_home.h"
#include "net/model/layout.h"
#include "net/model_files/model_reader.h"
#include "net/tokenizer/load_tokenizer.h"

namespace atl {
namespace {

constexpr std::size_t kMostNameBytes = 128;

std::string name_of_directory(const std::filesystem::path& directory) {
  std::error_code failed;
  auto path = std::filesystem::weakly_canonical(directory, failed);
  if (failed) path = directory;
  const std::string name = printable(path.filename().string(), kMostNameBytes);
  return name.empty() ? "model" : name;
}

// Where an island keeps its outer states; nothing: the directory is none of an island's.
std::optional<std::filesystem::path> checkpoint_in(const std::filesystem::path& directory) {
  for (const auto& candidate : {directory, IslandHome{island_directory(directory)}.checkpoint()}) {
    const auto states = outer_state_files(candidate);
    if (states.ok() && !states->empty()) return candidate;
  }
  return std::nullopt;
}

// Of the island whose checkpoint directory it is, however that was written.
std::filesystem::path data_beside(const std::filesystem::path& checkpoint) {
  const std::filesystem::path path = std::filesystem::absolute(checkpoint).lexically_normal();
  return IslandHome{(path.has_filename() ? path : path.parent_path()).parent_path()}.data();
}

// The best state that can be made again.
Result<RestoredChunks> newest_state(const std::filesystem::path& checkpoint, const ParameterLayout& layout,
                                    const AbortSignal& abort) {
  const RoundLog log(checkpoint);
  std::optional<Error> why;
  for (const StateOnDisk& found : newest_states(kept_states(checkpoint), log.rounds())) {
    auto chunks = RestoredChunks::open(found, log, layout, abort);
    if (chunks.ok() || chunks.error().code == ErrorCode::kAborted) return chunks;
    spdlog::warn("checkpoint error=\"{}\"", chunks.error().message);
    why = chunks.error();
  }
  if (why) return *why;
  return Error{ErrorCode::kCorrupt,
               fmt::format("no outer state in {} is whole; see: atoll checkpoints verify", checkpoint.string())};
}

Result<ModelReader> open_model_directory(const std::filesystem::path& directory) {
  std::error_code failed;
  if (!std::filesystem::exists(directory / kConfigFile, failed)) {
    return Error{
        ErrorCode::kNotFound,
        fmt::format("{} holds no model: neither {} beside {}, as HuggingFace writes them, nor an island's outer "
                    "states",
                    directory.string(), kConfigFile, kSingleFile)};
  }
  auto reader = ModelReader::open(directory);
  const bool is_missing = !reader.ok() && reader.error().code == ErrorCode::kNotFound;
  const auto has = [&](const char* name) { return std::filesystem::exists(directory / name, failed); };
  if (is_missing && !has(kSingleFile) && !has(kIndexFile)) {
    return Error{ErrorCode::kNotFound, fmt::format("{} has neither {} nor {}; save the model in the safetensors format",
                                                   directory.string(), kSingleFile, kIndexFile)};
  }
  return reader;
}

std::size_t numel_of_chunk(std::int64_t numel, std::uint64_t chunk) {
  return std::min<std::size_t>(kStateChunkNumel, static_cast<std::size_t>(numel) - chunk * kStateChunkNumel);
}

// The copy as it is made: chunks by several threads, hashed and written while they are in the cache.
class BaseModelCopy {
 public:
  BaseModelCopy(const BaseModel& model, NewFile file)
      : model_(model),
        file_(std::move(file)),
        manifest_{model.dtype(),
                  {OuterStep{0}, 2 * sizeof(float) * static_cast<std::uint64_t>(model.numel()),
                   std::vector<Digest>(state_chunks(static_cast<std::uint64_t>(model.numel())))}} {}

  Status make() {
    parallel_for(manifest_.state.chunk_sha256.size(), [this](std::size_t chunk) {
      if (has_failed()) return;
      const Status made = make_chunk(chunk);
      MutexLock lock(mutex_);
      if (!made.ok() && failed_.ok()) failed_ = made;
    });
    MutexLock lock(mutex_);
    return failed_;
  }
  const BaseModelManifest& manifest() const { return manifest_; }
  Status take_place() { return file_.take_place(); }

 private:
  bool has_failed() const {
    MutexLock lock(mutex_);
    return !failed_.ok();
  }
  Status make_chunk(std::size_t chunk) {
    std::vector<float> values(numel_of_chunk(model_.numel(), chunk));
    ATOLL_RETURN_IF_ERROR(model_.read(chunk, values));
    manifest_.state.chunk_sha256[chunk] = chunk_digest(values, std::span(momentum_).first(values.size()));
    const Bytes bytes = encode_parameters(values, manifest_.dtype);
    MutexLock lock(mutex_);
    return file_.write_at(manifest_.range_of_chunk(chunk).first, bytes);
  }

  const BaseModel& model_;
  const std::vector<float> momentum_ = std::vector<float>(kStateChunkNumel);  // zeros
  mutable Mutex mutex_;
  NewFile file_;                // written by one thread at a time
  BaseModelManifest manifest_;  // of each chunk its digest by one thread
  Status failed_ ATOLL_GUARDED_BY(mutex_);
};

}  // namespace

struct BaseModel::Source {
  std::variant<ModelReader, RestoredChunks> of;
  std::optional<AttentionScope> attention;
  std::filesystem::path place = {};   // of the model, or the island's data
  std::optional<RunConfig> run = {};  // of an island's states, where that is known
  std::string note = {};
};

BaseModel::BaseModel(std::string name, ModelConfig config, ModelDtype dtype, std::unique_ptr<Source> source,
                     const AbortSignal& abort)
    : name_(std::move(name)),
      config_(std::move(config)),
      layout_(canonical_layout(config_)),
      dtype_(dtype),
      source_(std::move(source)),
      abort_(&abort) {}
BaseModel::BaseModel(BaseModel&&) noexcept = default;
BaseModel& BaseModel::operator=(BaseModel&&) noexcept = default;
BaseModel::~BaseModel() = default;

Result<BaseModel> BaseModel::open(const std::filesystem::path& directory, const AbortSignal& abort) {
  const std::string name = name_of_directory(directory);
  const auto checkpoint = checkpoint_in(directory);
  if (!checkpoint) {
    ATOLL_ASSIGN_OR_RETURN(ModelReader reader, open_model_directory(directory));
    ModelConfig config = reader.config();
    const ModelDtype dtype = reader.is_bf16() ? ModelDtype::kBfloat16 : ModelDtype::kFloat32;
    Source source{std::move(reader), {}, directory};
    source.attention = std::get<ModelReader>(source.of).attention();
    source.note = std::get<ModelReader>(source.of).note();
    return BaseModel(name, std::move(config), dtype, std::make_unique<Source>(std::move(source)), abort);
  }
  ATOLL_ASSIGN_OR_RETURN(CheckpointModel model, load_checkpoint_model(*checkpoint));
  ATOLL_ASSIGN_OR_RETURN(RestoredChunks chunks, newest_state(*checkpoint, model.layout, abort));
  const auto attention = model.run ? std::optional(model.run->attention) : std::nullopt;
  std::string named = fmt::format("{} ({})", name, after_round(chunks.manifest().version.value));
  Source source{std::move(chunks), attention, data_beside(*checkpoint), std::move(model.run)};
  return BaseModel(std::move(named), std::move(model.config), ModelDtype::kFloat32,
                   std::make_unique<Source>(std::move(source)), abort);
}

std::optional<AttentionScope> BaseModel::attention() const { return source_->attention; }

const std::string& BaseModel::note() const { return source_->note; }

Result<std::unique_ptr<Tokenizer>> BaseModel::tokenizer() const {
  if (std::holds_alternative<ModelReader>(source_->of)) return tokenizer_beside(source_->place);
  if (!source_->run) return std::unique_ptr<Tokenizer>();
  ATOLL_ASSIGN_OR_RETURN(const RunDataFacts facts, facts_of_run_data(source_->run->dataset_json));
  return tokenizer_of_data(facts.tokenizer, facts.tokenizer_file, source_->place);
}

std::string BaseModel::parameter_at(std::int64_t offset) const {
  const auto after = std::ranges::upper_bound(layout_.parameters, offset, {}, &ParameterInfo::offset);
  return std::prev(after)->name;
}

Status BaseModel::read(std::uint64_t chunk, std::span<float> parameters) const {
  if (abort_->raised()) return Error{ErrorCode::kAborted, abort_->reason()};
  const auto first = static_cast<std::int64_t>(chunk * kStateChunkNumel);
  if (const auto* reader = std::get_if<ModelReader>(&source_->of)) {
    reader->read(first, parameters);
  } else {
    ATOLL_ASSIGN_OR_RETURN(const Bytes bytes, std::get<RestoredChunks>(source_->of).chunk(chunk));
    std::ranges::copy(ByteView(bytes).first(parameters.size_bytes()), std::as_writable_bytes(parameters).begin());
  }
  const auto wrong = std::ranges::find_if_not(parameters, [](float value) { return std::isfinite(value); });
  if (wrong == parameters.end()) return ok_status();
  return Error{ErrorCode::kNonFinite, fmt::format("{} of {} has a value that is {}; nothing can be trained from that",
                                                  parameter_at(first + (wrong - parameters.begin())), name_, *wrong)};
}

Status BaseModel::read_values(std::int64_t offset, std::span<float> values) const {
  std::vector<float> room;
  while (!values.empty()) {
    const auto chunk = static_cast<std::uint64_t>(offset) / kStateChunkNumel;
    room.resize(numel_of_chunk(layout_.numel, chunk));
    ATOLL_RETURN_IF_ERROR(read(chunk, room));
    const std::size_t first = static_cast<std::uint64_t>(offset) % kStateChunkNumel;
    const std::size_t count = std::min(values.size(), room.size() - first);
    std::ranges::copy(std::span(room).subspan(first, count), values.begin());
    values = values.subspan(count);
    offset += static_cast<std::int64_t>(count);
  }
  return ok_status();
}

Result<std::string> write_base_model(const BaseModel& model, const HubHome& home, const std::string& expected) {
  ATOLL_ASSIGN_OR_RETURN(NewFile file, NewFile::create(home.base_model_parameters(), FileMode::kPrivate));
  BaseModelCopy copy(model, std::move(file));
  ATOLL_RETURN_IF_ERROR(copy.make());
  std::string hash = to_hex(copy.manifest().state.tree_hash());
  if (!expected.empty() && hash != expected) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{} is another model than the one with which the run began, or has been trained since; "
                             "nothing was changed",
                             model.name())};
  }
  ATOLL_RETURN_IF_ERROR(copy.take_place());
  ATOLL_RETURN_IF_ERROR(
      write_file_atomically(home.base_model_manifest(), copy.manifest().to_json(), FileMode::kPrivate));
  return hash;
}

Result<BaseModelManifest> kept_base_model(const HubHome& home, const RunConfig& run) {
  const auto none = [&](std::string_view why) {
    return Error{ErrorCode::kNotFound,
                 fmt::format("this hub has no copy of the model with which the run began, {} ({}): islands that "
                             "begin wait for it. Make it anew, of the same model: atoll hub base-model DIR",
                             run.initial_state, why)};
  };
  ATOLL_ASSIGN_OR_RETURN(const ModelConfig model, model_config_from_json(run.model_json));
  const auto numel = static_cast<std::uint64_t>(canonical_layout(model).numel);
  const auto text = read_file(home.base_model_manifest(), max_base_model_manifest_bytes(2 * sizeof(float) * numel));
  if (!text.ok()) return none(text.error().message);
  auto manifest = BaseModelManifest::from_json(*text);
  if (!manifest.ok()) return none(manifest.error().message);
  if (to_hex(manifest->state.tree_hash()) != run.initial_state_sha256) return none("what is there is another model");
  std::error_code failed;
  const auto size = std::filesystem::file_size(home.base_model_parameters(), failed);
  if (failed || size != manifest->parameters_bytes()) return none("its parameters are missing, or not whole");
  return manifest;
}

Result<BaseModelManifest> restore_base_model(const std::filesystem::path& hub_directory, const BaseModel& model) {
  const HubHome home{hub_directory};
  ATOLL_ASSIGN_OR_RETURN(const RunConfig run, load_run(home));
  if (!run.begins_at_hub()) {
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("run {} begins with {}; its hub keeps no model", printable(run.name),
                    run.initial_state.empty() ? "parameters that are drawn from its seed" : run.initial_state)};
  }
  ATOLL_RETURN_IF_ERROR(write_base_model(model, home, run.initial_state_sha256));
  return kept_base_model(home, run);
}

}  // namespace atl
