// A published state's parameters as a HuggingFace directory (model_export.h).
#include <fmt/format.h>

#include "net/base/mutex.h"
#include "net/disk/checkpoint_model.h"
#include "net/model/layout.h"
#include "net/store/state_download.h"
#include "trainer/island/exported_model.h"
#include "trainer/island/model_export.h"

namespace atl {
namespace {

// Writes what comes; a chunk that was written is not asked for again.
class WriterSink final : public ChunkSink {
 public:
  WriterSink(ModelWriter& writer, std::uint64_t chunks) : writer_(writer), has_(chunks) {}

  bool has(std::uint64_t index) const override {
    MutexLock lock(mutex_);
    return has_[index];
  }
  Status put(std::uint64_t index, ByteView bytes) override {
    MutexLock lock(mutex_);
    ATOLL_RETURN_IF_ERROR(
        writer_.write(static_cast<std::int64_t>(index * kStateChunkNumel), parameters_of_chunk(bytes)));
    has_[index] = true;
    return ok_status();
  }

 private:
  mutable Mutex mutex_;
  ModelWriter& writer_;  // by one thread at a time
  std::vector<bool> has_ ATOLL_GUARDED_BY(mutex_);
};

// Of an island of the same run.
std::optional<RunConfig> kept_run(const std::filesystem::path& checkpoint, const std::string& run_id) {
  if (checkpoint.empty()) return std::nullopt;
  auto run = load_kept_run(checkpoint);
  return run.ok() && *run && (*run)->run_id == run_id ? std::move(*run) : std::nullopt;
}

}  // namespace

Result<OuterStep> export_published(const std::string& url, const StoreSettings& store,
                                   const std::filesystem::path& checkpoint, const std::filesystem::path& data,
                                   const std::filesystem::path& directory, const ModelFilesOptions& files,
                                   const FetchProgress& progress) {
  const AbortSignal never;
  ATOLL_ASSIGN_OR_RETURN(const StoreUrl place, parse_store_url(url));
  ATOLL_ASSIGN_OR_RETURN(const StoreAccess access, access_as_told(store, place));
  ATOLL_ASSIGN_OR_RETURN(StoreClient client, StoreClient::create(access));
  ATOLL_ASSIGN_OR_RETURN(const PublishedState state, find_published_state(client, place.prefix, "", never));
  ATOLL_ASSIGN_OR_RETURN(const ModelConfig model, model_config_from_json(state.manifest.model_json));
  ModelCard card{.run_id = state.manifest.run_id, .run_name = state.manifest.run_name};
  card.run = kept_run(checkpoint, card.run_id);
  card.outer_step = state.manifest.state.version;
  ModelFilesOptions how = with_attention(files, card);
  if (state.manifest.attention) how.attention = *state.manifest.attention;
  ATOLL_ASSIGN_OR_RETURN(ModelWriter writer, ModelWriter::create(directory, model, how));
  if (state.manifest.state.state_bytes != 2 * sizeof(float) * static_cast<std::uint64_t>(writer.layout().numel)) {
    return Error{ErrorCode::kCorrupt, fmt::format("{} names a model of another size than its state", url)};
  }
  WriterSink sink(writer, state.manifest.state.chunk_sha256.size());
  ATOLL_RETURN_IF_ERROR(fetch_published_state(access, state, sink, never, progress));
  ATOLL_RETURN_IF_ERROR(finish_export(std::move(writer), card, model, data, directory));
  return card.outer_step;
}

}  // namespace atl
