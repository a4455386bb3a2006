#include "net/hub/evaluation_files.h"

#include <fmt/format.h>

#include <algorithm>

#include "net/base/file.h"
#include "net/base/json_reader.h"
#include "net/base/printable.h"
#include "net/base/sha256.h"
#include "net/evaluate/task_file.h"

namespace atl {
namespace {

Error refused(const std::filesystem::path& path, std::string_view why) {
  return {ErrorCode::kInvalidArgument, fmt::format("{}: {}", path.string(), why)};
}

Result<EvaluationFile> read_evaluation_file(const std::filesystem::path& path) {
  ATOLL_ASSIGN_OR_RETURN(std::string content, read_file(path, kMaxEvaluationBytes));
  auto task = read_task(content, path.stem().string());
  if (!task.ok()) return refused(path, task.error().message);
  if (!is_task_name(task->name)) {
    return refused(path, fmt::format("a run cannot have a task called '{}': 1 to 64 of A-Z a-z 0-9 . _ -; say \"task\" "
                                     "in its first line",
                                     printable(task->name, kMaxPersonName)));
  }
  EvaluationTask entry{task->name, task->kind, task->documents.size(), content.size(), sha256_hex(as_bytes(content))};
  return EvaluationFile{std::move(entry), std::move(content), text_bytes(*task)};
}

}  // namespace

Result<std::vector<EvaluationFile>> read_evaluation_files(const std::vector<std::filesystem::path>& paths) {
  if (paths.size() > kMaxEvaluationTasks) {
    return Error{ErrorCode::kInvalidArgument, fmt::format("a run has {} tasks at most", kMaxEvaluationTasks)};
  }
  std::vector<EvaluationFile> files;
  std::uint64_t bytes = 0, asked = 0;
  for (const std::filesystem::path& path : paths) {
    ATOLL_ASSIGN_OR_RETURN(EvaluationFile file, read_evaluation_file(path));
    const auto same = [&](const EvaluationFile& other) { return other.task.name == file.task.name; };
    if (std::ranges::any_of(files, same)) {
      return refused(path, fmt::format("another task is called {}, too: give one another \"task\"", file.task.name));
    }
    bytes += file.task.bytes;
    if (bytes > kMaxEvaluationBytes) {
      return refused(path,
                     fmt::format("with it the tasks are larger than {} MiB, which every island fetches; ask fewer "
                                 "questions",
                                 kMaxEvaluationBytes >> 20));
    }
    asked += file.text_bytes;
    if (asked > kMaxEvaluationText) {
      return refused(path, fmt::format("with it the tasks ask more than {} MiB of text, examples before each question "
                                       "included; ask fewer questions",
                                       kMaxEvaluationText >> 20));
    }
    files.push_back(std::move(file));
  }
  return files;
}

std::filesystem::path evaluation_file_in(const HubHome& home, const EvaluationTask& task) {
  return home.directory / evaluation_file_name(task);
}

Status keep_evaluation_files(const std::vector<EvaluationFile>& files, const HubHome& home) {
  for (const EvaluationFile& file : files) {
    const std::filesystem::path path = evaluation_file_in(home, file.task);
    ATOLL_RETURN_IF_ERROR(make_directories(path.parent_path(), FileMode::kPrivate));
    ATOLL_RETURN_IF_ERROR(write_file_atomically(path, file.content, FileMode::kPrivate));
  }
  return ok_status();
}

}  // namespace atl
