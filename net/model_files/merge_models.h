// Merges model directories (merge.h) into one, a piece of every input in memory at a time for each processor. Blocks
// on the disk, and computes on all processors; any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "net/base/abort_signal.h"
#include "net/base/result.h"
#include "net/model_files/merge.h"
#include "net/model_files/model_writer.h"

namespace atl {

struct ModelMerge {
  MergeRecipe recipe;
  std::vector<std::filesystem::path> models = {};
  std::optional<std::filesystem::path> base = {};  // where the method needs one
  std::filesystem::path output = {};               // not one of the others
  ModelFilesOptions files = {};
  bool other_tokenizers = false;  // models of several are merged, too
};

// Done and all, in parameters.
using MergeProgress = std::function<void(std::int64_t done, std::int64_t total)>;
// What a person ought to know, a sentence.
using MergeNote = std::function<void(const std::string& note)>;

// Number of parameters. All inputs are of one shape and, unless that is not asked for, of one tokenizer
// (net/tokenizer/compare_tokenizers.h): kInvalidArgument names what differs. config.json, tokenizer and
// the tokens that begin and end a text are those of the base, or of the first model. kAborted soon after `abort` is
// raised; then, and after any error, what was at `output` is as it was.
Result<std::int64_t> merge_models(const ModelMerge& merge, const AbortSignal& abort, const MergeProgress& progress,
                                  const MergeNote& on_note);

}  // namespace atl
