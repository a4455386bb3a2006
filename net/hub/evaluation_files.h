// The task files of a run: read and checked by `atoll hub init`, kept in the hub's home, served beside the data. Block
// on the disk; any thread.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "net/base/result.h"
#include "net/control/home.h"
#include "net/wire/evaluation.h"

namespace atl {

struct EvaluationFile {
  EvaluationTask task;
  std::string content;
  std::uint64_t text_bytes = 0;  // that it asks
};

// kInvalidArgument names the file that is no task, or what of them no run can have.
Result<std::vector<EvaluationFile>> read_evaluation_files(const std::vector<std::filesystem::path>& paths);

std::filesystem::path evaluation_file_in(const HubHome& home, const EvaluationTask& task);
Status keep_evaluation_files(const std::vector<EvaluationFile>& files, const HubHome& home);

}  // namespace atl
