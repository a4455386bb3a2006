// Where `eval` and `sample` get a model from.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>

#include "net/base/id.h"
#include "net/model_files/model_reader.h"
#include "net/model_files/model_writer.h"
#include "trainer/program/program.h"

namespace atl {

// A model's directory. One that was exported for this goes with `exported`.
struct OpenedModel {
  std::shared_ptr<const void> exported;
  std::filesystem::path directory;
  ModelReader reader;
};
Result<OpenedModel> open_model(const ModelSource& source);

// All of the machine's where `threads` is 0.
int threads_or_all(int threads);

// The outer parameters of the island at `home`, written to `output`: asked of its trainer when that runs, else from its
// checkpoint. Its outer step; `wanted`: that one, of those to which the checkpoint leads. `for_others`: its card names
// who trained it, for which the hub is asked.
Result<OuterStep> export_from_home(const std::filesystem::path& home, const std::filesystem::path& output,
                                   const ModelFilesOptions& files, bool for_others,
                                   std::optional<OuterStep> wanted = {});

}  // namespace atl
