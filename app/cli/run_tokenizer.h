// Whether the data of a run was made with the tokenizer whose tokens its model knows. Reads both files; main thread.
#pragma once

#include <string>
#include <vector>

#include "net/base/result.h"
#include "net/hub/base_model.h"
#include "net/hub/hub.h"
#include "net/store/published_state.h"

namespace atl {

// What a person ought to know, each a sentence. kInvalidArgument: they are two tokenizers, or it cannot be told; with
// `force` that is one of the notes.
Result<std::vector<std::string>> check_run_tokenizer(const BaseModel& model, const HubDataSource& data, bool force);

// The same of a published state, which names its tokenizer's file by its hash.
Result<std::vector<std::string>> check_published_tokenizer(const PublishedManifest& published,
                                                           const HubDataSource& data, bool force);

}  // namespace atl
