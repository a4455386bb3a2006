#include "trainer/island/evaluation_tasks.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "net/base/file.h"
#include "net/base/sha256.h"
#include "net/data/dataset_fetch.h"
#include "net/data/run_dataset.h"
#include "net/tokenizer/byte_tokenizer.h"
#include "net/tokenizer/load_tokenizer.h"

namespace atl {
namespace {

Result<std::string> verified_file(const std::filesystem::path& path, std::uint64_t most, const std::string& sha256) {
  ATOLL_ASSIGN_OR_RETURN(std::string content, read_file(path, most));
  if (sha256_hex(as_bytes(content)) == sha256) return content;
  return Error{ErrorCode::kCorrupt, fmt::format("{} is not the run's", path.string())};
}

Result<std::unique_ptr<Tokenizer>> run_tokenizer(const RunConfig& run, const std::filesystem::path& directory) {
  ATOLL_ASSIGN_OR_RETURN(const RunDataFacts facts, facts_of_run_data(run.dataset_json));
  if (!facts.tokenizer_file) return std::unique_ptr<Tokenizer>(std::make_unique<ByteTokenizer>());
  ATOLL_ASSIGN_OR_RETURN(const std::string content, verified_file(directory / facts.tokenizer_file->file,
                                                                  kMaxTokenizerFile, facts.tokenizer_file->sha256));
  return read_tokenizer(content);
}

}  // namespace

Status fetch_run_tasks(const RunEvaluation& evaluation, const Identity& self, const std::vector<Address>& hub,
                       const std::filesystem::path& directory, const AbortSignal& abort, DownloadPace* download) {
  for (const EvaluationTask& task : evaluation.tasks) {
    const std::string name = evaluation_file_name(task);
    const std::filesystem::path path = directory / name;
    if (verified_file(path, kMaxEvaluationBytes, task.sha256).ok()) continue;
    ATOLL_RETURN_IF_ERROR(make_directories(path.parent_path()));
    spdlog::info("evaluation fetch={} bytes={}", task.name, task.bytes);
    ATOLL_RETURN_IF_ERROR(fetch_dataset_file(
        self, hub, name, task.bytes, task.sha256, path, abort, [](std::uint64_t, std::uint64_t) {},
        [&](const std::string& why) {
          if (!why.empty()) spdlog::warn("evaluation fetch={} error=\"{}\"", task.name, why);
        },
        {.download = download}));
  }
  return ok_status();
}

Result<TokenTasks> load_run_tasks(const RunConfig& run, const ModelConfig& model,
                                  const std::filesystem::path& directory) {
  ATOLL_ASSIGN_OR_RETURN(auto tokenizer, run_tokenizer(run, directory));
  ATOLL_ASSIGN_OR_RETURN(ModelText text, ModelText::make(std::move(tokenizer), model.vocab_size));
  std::vector<Task> tasks;
  std::uint64_t text_left = kMaxEvaluationText;
  for (const EvaluationTask& entry : run.evaluation.tasks) {
    ATOLL_ASSIGN_OR_RETURN(const std::string content,
                           verified_file(directory / evaluation_file_name(entry), kMaxEvaluationBytes, entry.sha256));
    ATOLL_ASSIGN_OR_RETURN(Task task, read_task(content, entry.name));
    if (task.kind != entry.kind) {
      return Error{ErrorCode::kCorrupt, fmt::format("task {} is of another kind than the run says", entry.name)};
    }
    const std::uint64_t bytes = text_bytes(task);
    if (bytes > text_left) {
      return Error{ErrorCode::kInvalidArgument, fmt::format("with task {} the run asks more than {} MiB of text",
                                                            entry.name, kMaxEvaluationText >> 20)};
    }
    text_left -= bytes;
    tasks.push_back(std::move(task));
  }
  // Of the length that `atoll eval` has, so that figures are the same.
  return tokenise_tasks(std::move(tasks), text, model.max_position_embeddings);
}

}  // namespace atl
