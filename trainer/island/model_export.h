// The outer parameters of an island as a HuggingFace directory, with a model card: from the trainer's memory or from
// its checkpoint directory, a chunk of the state (net/recovery/outer_state.h) at a time, so that no second copy of a
// model is ever held. Block, as long as the disk takes. Any thread.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "net/base/address.h"
#include "net/disk/checkpoint_directory.h"
#include "net/https/fetch_progress.h"
#include "net/model/config.h"
#include "net/model_files/model_writer.h"
#include "net/store/store_settings.h"
#include "net/tls/identity.h"
#include "net/wire/run_config.h"
#include "trainer/island/model_card.h"
#include "trainer/island/outer_state_store.h"

namespace atl {

// Who trains the run, for the card: asked of its hub, for seconds. Blocks.
Result<std::vector<Contributor>> ask_contributors(const Identity& self, const std::vector<Address>& hub);

// Of the state that `outer` holds; training goes on meanwhile. An outer step that is taken before all of it is copied
// has it begin anew, a few times: kTimeout when the disk is slower than that.
// `data`: where the run's dataset is kept, whose tokenizer goes along.
Result<OuterStep> export_outer_state(const OuterStateStore& outer, const ModelConfig& model, ModelCard card,
                                     const std::filesystem::path& data, const std::filesystem::path& directory,
                                     const ModelFilesOptions& files);

// Of a state that is published in an object store, as the owner of `store` may read it:
// s3://BUCKET/PREFIX[/outer-STEP], without a step the newest. Chunks are written as they come, each verified.
// `checkpoint`: of an island of the same run, whose kRunFile says how it was trained; may be of another one, or empty.
Result<OuterStep> export_published(const std::string& url, const StoreSettings& store,
                                   const std::filesystem::path& checkpoint, const std::filesystem::path& data,
                                   const std::filesystem::path& directory, const ModelFilesOptions& files,
                                   const FetchProgress& progress);

// For the model card of an export when no trainer runs. What the disk does not take is told in the log. An empty
// directory: nothing is kept.
void keep_run(const std::filesystem::path& checkpoint, const RunConfig& run);

// Of the newest state that the checkpoint directory leads to (checkpoint.h), when no trainer runs. `card`: what is
// known of the run; the rest comes from kRunFile, where that is there. `wanted`: the state of that outer step, also
// while a trainer runs, which may remove what is read (kNotFound, kCorrupt); kNotFound where nothing leads to it.
Result<OuterStep> export_checkpoint(const std::filesystem::path& checkpoint, ModelCard card,
                                    const std::filesystem::path& data, const std::filesystem::path& directory,
                                    const ModelFilesOptions& files, std::optional<OuterStep> wanted = {});

}  // namespace atl
