#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "net/base/deadline.h"
#include "net/base/json_text.h"
#include "net/data/source_name.h"
#include "net/data/tokenizer_of_data.h"
#include "net/tokenizer/compare_tokenizers.h"
#include "net/tokenizer/load_tokenizer.h"
#include "trainer/evaluate/batch_loss.h"
#include "trainer/evaluate/eval_report.h"
#include "trainer/evaluate/evaluate_tasks.h"
#include "trainer/island/batch_source.h"
#include "trainer/program/inference_source.h"
#include "trainer/program/program.h"

namespace atl {
namespace {

struct DatasetLoss {
  double loss_nats = 0;  // a token
  std::int64_t tokens = 0;
  // Of text: by this models of different tokenizers compare. What the manifest says of the whole split; none in
  // datasets of before.
  std::optional<double> loss_nats_a_byte = {};
};

double tokens_a_byte(const SplitStatistics& split) {
  return static_cast<double>(split.tokens) / static_cast<double>(std::max<std::uint64_t>(split.text_bytes, 1));
}

// On one line of a terminal that somebody looks at.
void show_how_far(std::string_view task, std::size_t done, std::size_t of) {
  if (::isatty(STDERR_FILENO) == 0) return;
  fmt::print(stderr, "\r{}: {} of {} {}", task, done, of, done == of ? "\n" : "");
}

struct NamedDataset {
  std::string name;
  std::filesystem::path directory;
  Dataset data;
};

Result<NamedDataset> open_validation(const EvalCommand& command, const std::string& text) {
  const auto [name, directory] = split_name(text);
  ATOLL_ASSIGN_OR_RETURN(Dataset dataset, Dataset::open(directory));
  if (dataset.sequences(Split::kValidation, command.sequence_length) == 0) {
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format(
            "the validation split of {} has no sequence of {} tokens; prepare more text, or ask for shorter ones",
            directory, command.sequence_length)};
  }
  ATOLL_RETURN_IF_ERROR(dataset.verify(Split::kValidation));
  return NamedDataset{name.empty() ? source_name_of(directory) : name, directory, std::move(dataset)};
}

Result<std::vector<NamedDataset>> open_datasets(const EvalCommand& command) {
  std::vector<NamedDataset> datasets;
  for (const std::string& text : command.data) {
    ATOLL_ASSIGN_OR_RETURN(NamedDataset dataset, open_validation(command, text));
    const bool taken = std::ranges::any_of(datasets, [&](const auto& other) { return other.name == dataset.name; });
    if (taken) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("two datasets are called {}: name one, as in --data other={}", dataset.name, text)};
    }
    datasets.push_back(std::move(dataset));
  }
  return datasets;
}

std::uint32_t rows_at_once(const EvalCommand& command) {
  return std::min(static_cast<std::uint32_t>(command.inference.batch), command.sequences);
}

Status check_fits(const EvalCommand& command, const ModelConfig& config, std::uint32_t vocab_size) {
  if (command.sequence_length > config.max_position_embeddings) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("--sequence-length {} is more than the {} tokens that this model takes",
                             command.sequence_length, config.max_position_embeddings)};
  }
  if (config.vocab_size < vocab_size) {
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("the dataset's vocabulary ({}) is larger than the model's ({})", vocab_size, config.vocab_size)};
  }
  if (config.vocab_size > vocab_size + kMostVocabPadding) {
    fmt::print(
        stderr,
        "atoll-trainer: the model's vocabulary ({}) is not the dataset's ({}): unless both are of one tokenizer, "
        "this loss means nothing\n",
        config.vocab_size, vocab_size);
  }
  return ok_status();
}

// Where both have one that can be read: of what is missing the sizes alone tell.
void warn_of_other_tokenizer(const NamedDataset& source, const OpenedModel& model) {
  const DatasetManifest& manifest = source.data.manifest();
  const auto of_data = tokenizer_of_data(manifest.tokenizer, manifest.tokenizer_file, source.directory);
  const auto of_model = tokenizer_beside(model.directory);
  if (!of_data.ok() || !of_model.ok() || *of_data == nullptr || *of_model == nullptr) return;
  const TokenizerComparison compared = compare_tokenizers({**of_data, "the dataset's"}, {**of_model, "the model's"});
  if (compared.difference.empty()) return;
  fmt::print(stderr,
             "atoll-trainer: {} was made with another tokenizer than the model's: {}; this loss means nothing\n",
             source.directory.string(), compared.difference);
}

Result<DatasetLoss> dataset_loss(const EvalCommand& command, InferenceEngine& engine, AttentionScope attention,
                                 NamedDataset source) {
  // Of marked labels some tokens are predicted alone, and their bytes are not known.
  const std::optional<DataStatistics> statistics =
      source.data.manifest().marked_labels ? std::nullopt : source.data.manifest().statistics;
  DatasetBatches batches(std::move(source.data), {.seed = 0,  // nothing is trained
                                                  .sequences_per_step = rows_at_once(command),
                                                  .sequence_length = command.sequence_length,
                                                  .validation_sequences = command.sequences,
                                                  .attention = attention});
  LossSum sum;
  for (std::uint32_t i = 0; i < batches.validation_batches(); ++i) {
    ATOLL_ASSIGN_OR_RETURN(const TokenBatch rows, batches.validation_batch(i));
    ATOLL_ASSIGN_OR_RETURN(const LossSum here, batch_loss(engine, rows));
    sum.nats += here.nats;
    sum.labels += here.labels;
    show_how_far(command.data.size() > 1 ? "loss on " + source.name : "loss", i + 1, batches.validation_batches());
  }
  if (sum.labels == 0) {
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("no token of {} counts: each is the first of its document, or marked as none to learn from",
                    source.name)};
  }
  DatasetLoss loss{.loss_nats = sum.nats / static_cast<double>(sum.labels), .tokens = sum.labels};
  if (statistics) loss.loss_nats_a_byte = loss.loss_nats * tokens_a_byte(statistics->validation);
  return loss;
}

// By source, in their order.
Result<std::vector<std::pair<std::string, DatasetLoss>>> dataset_losses(const EvalCommand& command,
                                                                        const OpenedModel& model,
                                                                        std::vector<NamedDataset> datasets) {
  for (const NamedDataset& source : datasets) {
    ATOLL_RETURN_IF_ERROR(check_fits(command, model.reader.config(), source.data.manifest().vocab_size));
    warn_of_other_tokenizer(source, model);
  }
  const AttentionScope attention =
      attention_scope_named(command.attention).value_or(model.reader.attention().value_or(AttentionScope::kPacked));
  // A sequence may have any number of documents, each of which is a text.
  const std::int64_t texts = attention == AttentionScope::kDocument ? command.inference.batch : rows_at_once(command);
  ATOLL_ASSIGN_OR_RETURN(const auto engine, load_inference(model, command.inference, texts, command.sequence_length));
  std::vector<std::pair<std::string, DatasetLoss>> losses;
  for (NamedDataset& source : datasets) {
    const std::string name = source.name;
    ATOLL_ASSIGN_OR_RETURN(const DatasetLoss loss, dataset_loss(command, *engine, attention, std::move(source)));
    losses.emplace_back(name, loss);
  }
  return losses;
}

// Over all their tokens.
DatasetLoss sum_of(const std::vector<std::pair<std::string, DatasetLoss>>& losses) {
  if (losses.size() == 1) return losses.front().second;
  DatasetLoss sum;
  for (const auto& [name, loss] : losses) {
    sum.loss_nats += loss.loss_nats * static_cast<double>(loss.tokens);
    sum.tokens += loss.tokens;
  }
  sum.loss_nats /= static_cast<double>(sum.tokens);
  return sum;
}

struct Questions {
  TokenTasks all;
  std::string tokenizer;
};

struct Evaluation {
  EvaluationFacts facts;
  std::vector<EvaluatedTask> tasks;
};

Result<std::vector<Task>> load_tasks(const EvalCommand& command) {
  std::vector<Task> tasks;
  for (const auto& file : command.tasks) {
    ATOLL_ASSIGN_OR_RETURN(Task task, load_task(file, command.limit));
    const auto same = [&](const Task& other) { return other.name == task.name; };
    if (std::ranges::any_of(tasks, same)) {
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("two task files are called {}: give one another \"task\"", task.name)};
    }
    tasks.push_back(std::move(task));
  }
  return tasks;
}

Result<Questions> tokenise(const EvalCommand& command, const OpenedModel& model, std::vector<Task> tasks) {
  ATOLL_ASSIGN_OR_RETURN(ModelText text, load_model_text(model, command.inference));
  const std::int64_t most = model.reader.config().max_position_embeddings;
  if (command.max_length > most) {
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("--max-length {} is more than the {} tokens that this model takes", command.max_length, most)};
  }
  const std::int64_t max_length = command.max_length == 0 ? most : command.max_length;
  ATOLL_ASSIGN_OR_RETURN(TokenTasks all, tokenise_tasks(std::move(tasks), text, max_length));
  return Questions{std::move(all), text.kind()};
}

Result<Evaluation> evaluate(const EvalCommand& command, const OpenedModel& model, Questions questions) {
  const auto began = std::chrono::system_clock::now();
  TokenTasks& all = questions.all;
  ATOLL_ASSIGN_OR_RETURN(const auto engine, load_inference(model, command.inference, all.pairs, all.capacity));
  Evaluation evaluation;
  for (std::size_t i = 0; i < all.tasks.size(); ++i) {
    const std::string name = all.tasks[i].name;
    const auto progress = [&](std::size_t done, std::size_t of) { show_how_far(name, done, of); };
    ATOLL_ASSIGN_OR_RETURN(EvaluatedTask result, evaluate_task(*engine, std::move(all.tasks[i]), all.tokens[i],
                                                               all.max_length, command.bootstrap, progress));
    evaluation.tasks.push_back(std::move(result));
  }
  evaluation.facts = {
      .model = command.source.model.empty() ? command.source.home.string() : command.source.model.string(),
      .tokenizer = questions.tokenizer,
      .dtype = command.inference.bf16 ? "bfloat16" : "float32",
      .device = engine->device_kind() == DeviceKind::kCuda ? "cuda:0" : "cpu",
      .max_length = all.max_length,
      .batch = engine->options().slots,
      .limit = command.limit,
      .bootstrap = command.bootstrap,
      .began = Seconds(began.time_since_epoch()).count(),
      .seconds = Seconds(std::chrono::system_clock::now() - began).count()};
  return evaluation;
}

nlohmann::json loss_json(const DatasetLoss& loss) {
  nlohmann::json json = {
      {"loss_nats", loss.loss_nats}, {"tokens", loss.tokens}, {"perplexity", std::exp(loss.loss_nats)}};
  if (loss.loss_nats_a_byte) json["loss_nats_a_byte"] = *loss.loss_nats_a_byte;
  return json;
}

void print_loss(std::string_view of, const DatasetLoss& loss) {
  const std::string a_byte = loss.loss_nats_a_byte ? fmt::format(", {:.4f} nats a byte", *loss.loss_nats_a_byte) : "";
  std::cout << fmt::format("validation loss {}{:.4f} nats a token  (perplexity {:.3f}, {} tokens{})\n",
                           of.empty() ? "" : fmt::format("on {}: ", of), loss.loss_nats, std::exp(loss.loss_nats),
                           loss.tokens, a_byte);
}

void tell_losses(const std::vector<std::pair<std::string, DatasetLoss>>& losses, bool as_json, nlohmann::json& json) {
  const DatasetLoss all = sum_of(losses);
  const bool several = losses.size() > 1;
  json = loss_json(all);
  for (const auto& [name, loss] : losses) {
    if (several) json["sources"][name] = loss_json(loss);
    if (several && !as_json) print_loss(name, loss);
  }
  if (!as_json) print_loss(several ? "all of them" : "", all);
}

}  // namespace

// What is wrong with files is said before anything is computed, and what was computed is printed before anything is
// written.
Status eval_model(const EvalCommand& command) {
  ATOLL_ASSIGN_OR_RETURN(std::vector<Task> tasks, load_tasks(command));
  if (!command.output.empty()) ATOLL_RETURN_IF_ERROR(check_output(command.output));
  ATOLL_ASSIGN_OR_RETURN(std::vector<NamedDataset> datasets, open_datasets(command));
  ATOLL_ASSIGN_OR_RETURN(const OpenedModel model, open_model(command.source));
  std::optional<Questions> questions;
  if (!tasks.empty()) {
    ATOLL_ASSIGN_OR_RETURN(questions, tokenise(command, model, std::move(tasks)));
  }
  nlohmann::json json = nlohmann::json::object();
  if (!datasets.empty()) {
    ATOLL_ASSIGN_OR_RETURN(const auto losses, dataset_losses(command, model, std::move(datasets)));
    tell_losses(losses, command.json, json);
  }
  std::optional<Evaluation> evaluation;
  if (questions) {
    ATOLL_ASSIGN_OR_RETURN(evaluation, evaluate(command, model, std::move(*questions)));
    json.update(report_json(evaluation->facts, evaluation->tasks));
    if (!command.json) std::cout << report_table(evaluation->tasks);
  }
  if (command.json) std::cout << dump_json(json) << '\n';
  if (!evaluation || command.output.empty()) return ok_status();
  ATOLL_ASSIGN_OR_RETURN(const auto file,
                         write_report(command.output, evaluation->facts, evaluation->tasks, command.log_samples));
  if (!command.json) std::cout << fmt::format("results: {}\n", file.string());
  return ok_status();
}

}  // namespace atl
