#include "trainer/island/model_export.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <nlohmann/json.hpp>

#include "net/base/file.h"
#include "net/base/json_text.h"
#include "net/disk/checkpoint_directory.h"
#include "net/disk/checkpoint_model.h"
#include "net/disk/kept_states.h"
#include "net/disk/replay.h"
#include "net/disk/round_log.h"
#include "net/https/hub_get.h"
#include "net/model/layout.h"
#include "trainer/island/checkpoint.h"
#include "trainer/island/exported_model.h"
#include "trainer/island/exported_tokenizer.h"

namespace atl {
namespace {

constexpr int kTries = 5;
constexpr std::chrono::seconds kHubTime{5};
constexpr const char* kCardFile = "README.md";

// All chunks as they are at one outer step, which it returns; nothing where another was taken meanwhile.
Result<std::optional<OuterStep>> copy_state(const OuterStateStore& outer, ModelWriter& writer) {
  Bytes bytes;
  std::optional<HeldState> state;
  const std::uint64_t chunks = state_chunks(static_cast<std::uint64_t>(writer.layout().numel));
  for (std::uint64_t index = 0; index < chunks; ++index) {
    ATOLL_ASSIGN_OR_RETURN(const CopiedChunk copied, outer.copy_chunk(index, bytes));
    if (state && *state != copied.state) return std::optional<OuterStep>();
    state = copied.state;
    ATOLL_RETURN_IF_ERROR(
        writer.write(static_cast<std::int64_t>(index * kStateChunkNumel), parameters_of_chunk(bytes)));
  }
  return std::optional(state->outer_step);
}

Status write_restored(const StateOnDisk& found, const RoundLog& log, const ParameterLayout& layout,
                      ModelWriter& writer) {
  const AbortSignal never;
  ATOLL_ASSIGN_OR_RETURN(const RestoredChunks chunks, RestoredChunks::open(found, log, layout, never));
  for (std::uint64_t index = 0; index < chunks.manifest().chunk_sha256.size(); ++index) {
    ATOLL_ASSIGN_OR_RETURN(const Bytes bytes, chunks.chunk(index));
    ATOLL_RETURN_IF_ERROR(
        writer.write(static_cast<std::int64_t>(index * kStateChunkNumel), parameters_of_chunk(bytes)));
  }
  return ok_status();
}

// The best first; of an outer step that is wanted the one way to it.
Result<std::vector<StateOnDisk>> states_to_export(const std::filesystem::path& checkpoint, const RoundLog& log,
                                                  std::optional<OuterStep> wanted) {
  const std::vector<KeptState> kept = kept_states(checkpoint);
  if (!wanted) return newest_states(kept, log.rounds());
  if (auto way = way_to(*wanted, kept, log.rounds())) return std::vector<StateOnDisk>{std::move(*way)};
  return Error{
      ErrorCode::kNotFound,
      fmt::format("nothing in {} leads to the state after round {}; 'atoll checkpoints list' says what there is, and "
                  "checkpoints.keep_rounds keeps those that are named before they come",
                  checkpoint.string(), wanted->value)};
}

}  // namespace

std::span<const float> parameters_of_chunk(ByteView chunk) {
  const std::size_t numel = chunk.size() / (2 * sizeof(float));
  return {reinterpret_cast<const float*>(chunk.data()), numel};
}

ModelFilesOptions with_attention(ModelFilesOptions files, const ModelCard& card) {
  if (card.run) files.attention = card.run->attention;
  return files;
}

Status finish_export(ModelWriter writer, const ModelCard& card, const ModelConfig& model,
                     const std::filesystem::path& data, const std::filesystem::path& directory) {
  ExportedTokenizer tokenizer;
  if (card.run) tokenizer = exported_tokenizer(*card.run, data, model);
  if (may_replace_card(directory / kCardFile)) {
    tokenizer.files.push_back({kCardFile, model_card(card, model, writer.layout().numel)});
  }
  return std::move(writer).finish(tokenizer.files, tokenizer.turn_ends);
}

Result<std::vector<Contributor>> ask_contributors(const Identity& self, const std::vector<Address>& hub) {
  const AbortSignal never;
  const auto answer =
      get_from_hub(self, hub, kContributorsPath, kMaxContributorsBytes, Deadline::after(kHubTime), never);
  return answer.ok() ? decode_contributors(*answer) : Result<std::vector<Contributor>>(answer.error());
}

Result<OuterStep> export_outer_state(const OuterStateStore& outer, const ModelConfig& model, ModelCard card,
                                     const std::filesystem::path& data, const std::filesystem::path& directory,
                                     const ModelFilesOptions& files) {
  ATOLL_RETURN_IF_ERROR(outer.held());
  ATOLL_ASSIGN_OR_RETURN(ModelWriter writer, ModelWriter::create(directory, model, with_attention(files, card)));
  for (int i = 0; i < kTries; ++i) {
    ATOLL_ASSIGN_OR_RETURN(const std::optional<OuterStep> step, copy_state(outer, writer));
    if (!step) continue;
    card.outer_step = *step;
    ATOLL_RETURN_IF_ERROR(finish_export(std::move(writer), card, model, data, directory));
    return *step;
  }
  return Error{ErrorCode::kTimeout,
               fmt::format("outer steps are taken faster than {} takes the model; export it to a faster disk, or when "
                           "the island is paused (atoll pause)",
                           directory.string())};
}

void keep_run(const std::filesystem::path& checkpoint, const RunConfig& run) {
  if (checkpoint.empty()) return;
  Status kept = make_directories(checkpoint, FileMode::kPrivate);
  if (kept.ok()) kept = write_file_atomically(checkpoint / kRunFile, dump_json(run.to_json()), FileMode::kPrivate);
  if (!kept.ok()) spdlog::warn("run_file error=\"{}\"", kept.error().message);
}

namespace {

// The first of them that is whole. kCorrupt or kNotFound: none is.
Result<OuterStep> export_first(const std::vector<StateOnDisk>& states, const RoundLog& log,
                               const CheckpointModel& model, ModelCard card, const std::filesystem::path& data,
                               const std::filesystem::path& directory, const ModelFilesOptions& files) {
  Error why{ErrorCode::kNotFound, "there is no state"};
  for (const StateOnDisk& found : states) {
    ATOLL_ASSIGN_OR_RETURN(ModelWriter writer,
                           ModelWriter::create(directory, model.config, with_attention(files, card)));
    const Status written = write_restored(found, log, model.layout, writer);
    if (written.ok()) {
      card.outer_step = found.state.outer_step;
      ATOLL_RETURN_IF_ERROR(finish_export(std::move(writer), card, model.config, data, directory));
      return card.outer_step;
    }
    // A disk that takes no more takes no other state either.
    if (written.error().code != ErrorCode::kCorrupt && written.error().code != ErrorCode::kNotFound) {
      return written.error();
    }
    spdlog::warn("checkpoint error=\"{}\"", written.error().message);
    why = written.error();
  }
  return why;
}

}  // namespace

Result<OuterStep> export_checkpoint(const std::filesystem::path& checkpoint, ModelCard card,
                                    const std::filesystem::path& data, const std::filesystem::path& directory,
                                    const ModelFilesOptions& files, std::optional<OuterStep> wanted) {
  auto loaded = load_checkpoint_model(checkpoint);
  if (!loaded.ok()) {
    return loaded.error().code == ErrorCode::kNotFound ? no_whole_checkpoint(checkpoint) : loaded.error();
  }
  if (loaded->run) card.run = loaded->run;
  std::optional<Error> why;
  std::optional<OuterStep> tried;  // the newest
  // An island that trains removes states while they are read, and writes newer ones.
  for (int i = 0; i < kTries; ++i) {
    const RoundLog log(checkpoint);
    ATOLL_ASSIGN_OR_RETURN(const std::vector<StateOnDisk> states, states_to_export(checkpoint, log, wanted));
    if (states.empty() || states.front().state.outer_step == tried) break;
    tried = states.front().state.outer_step;
    const Result<OuterStep> exported = export_first(states, log, *loaded, card, data, directory, files);
    if (exported.ok()) return exported;
    why = exported.error();
    if (why->code != ErrorCode::kCorrupt && why->code != ErrorCode::kNotFound) break;
  }
  return why ? *why : no_whole_checkpoint(checkpoint);
}

}  // namespace atl
