// atoll data prepare: text -> a dataset; atoll data info: what one was made of.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <bit>
#include <nlohmann/json.hpp>

#include "app/cli/command.h"
#include "app/cli/hashing_lines.h"
#include "app/cli/text.h"
#include "app/cli/validators.h"
#include "net/base/deadline.h"
#include "net/base/json_text.h"
#include "net/data/prepare.h"
#include "net/data/text_input.h"
#include "net/data/tree_builder.h"

namespace atl {
namespace {

struct DataPrepare {
  std::vector<std::string> inputs;
  std::string output, tokenizer, pattern, end_of_text;
  PrepareOptions options;
  double validation_percent = 100 * PrepareOptions{}.validation_share;
  double memory_gib = static_cast<double>(PrepareOptions{}.memory_bytes) / (1u << 30);
  bool json = false;
};

struct DataInfo {
  std::string directory;
  bool verify = false;
  bool json = false;
};

std::string_view word_for(PrepareStage stage) {
  switch (stage) {
    case PrepareStage::kReading: return "reading";
    case PrepareStage::kComparing: return "comparing";
    case PrepareStage::kWriting: return "writing";
  }
  return "";
}

// A line a second for scripts, ten a second for a terminal, none otherwise.
class ProgressLines {
 public:
  ProgressLines(Console& console, bool json) : console_(console), json_(json) {}

  void show(const PrepareProgress& progress) {
    const auto now = Clock::now();
    if (progress.stage != stage_ || began_ == Clock::time_point{}) {
      stage_ = progress.stage;
      began_ = now;
    }
    if (!json_ && !console_.err_is_terminal) return;
    if (now - shown_ < std::chrono::milliseconds(json_ ? 1000 : 100)) return;
    shown_ = now;
    const double seconds = std::max(Seconds(now - began_).count(), 1e-3);
    const double rate =
        static_cast<double>(progress.done_bytes - std::min(progress.begun_bytes, progress.done_bytes)) / seconds;
    const double left = rate > 0 ? static_cast<double>(progress.total_bytes - progress.done_bytes) / rate : 0;
    if (json_) {
      console_.out << dump_json({{"stage", word_for(stage_)},
                                 {"done_bytes", progress.done_bytes},
                                 {"total_bytes", progress.total_bytes},
                                 {"bytes_per_second", rate},
                                 {"seconds_left", left},
                                 {"tokens", progress.tokens}})
                   << "\n"
                   << std::flush;
      return;
    }
    console_.err << "\r\033[K"
                 << fmt::format("{} {} of {}, {}/s, {} left", word_for(stage_),
                                format_bytes(static_cast<double>(progress.done_bytes)),
                                format_bytes(static_cast<double>(progress.total_bytes)), format_bytes(rate),
                                format_duration(left))
                 << std::flush;
  }
  void clear() {
    if (console_.err_is_terminal && !json_) console_.err << "\r\033[K" << std::flush;
  }

 private:
  Console& console_;
  const bool json_;
  PrepareStage stage_ = PrepareStage::kReading;
  Clock::time_point began_{}, shown_{};
};

std::string describe_split(std::string_view name, const SplitStatistics& split) {
  const double bytes_a_token =
      split.tokens == 0 ? 0 : static_cast<double>(split.text_bytes) / static_cast<double>(split.tokens);
  return fmt::format("{:<12}{} tokens, {}, {} of text, {:.2f} bytes a token\n", name, format_count(split.tokens),
                     format_number_of(split.documents, "document"), format_bytes(static_cast<double>(split.text_bytes)),
                     bytes_a_token);
}

constexpr std::size_t kNamedLeftOut = 20;  // files, for a person

// Before hours of work: whoever misses one of them can end it.
Result<std::size_t> show_left_out(const DataPrepare& command, Console& console) {
  ATOLL_ASSIGN_OR_RETURN(const FoundText found, find_text({command.inputs.begin(), command.inputs.end()}));
  const std::vector<LeftOutFile>& files = found.left_out;
  if (command.json) {
    nlohmann::json list = nlohmann::json::array();
    for (const LeftOutFile& file : files) list.push_back({{"file", printable(file.path.string())}, {"why", file.why}});
    console.out << dump_json({{"files", found.files.size()}, {"files_left_out", std::move(list)}}) << "\n"
                << std::flush;
  } else if (!files.empty()) {
    console.err << fmt::format("left out {}: {}\n", format_number_of(files.size(), "file"),
                               describe_left_out(files, kNamedLeftOut))
                << std::flush;
  }
  return files.size();
}

std::string describe(const DatasetManifest& manifest) {
  std::string text =
      fmt::format("tokenizer   {}, {} in the vocabulary\n", manifest.tokenizer, format_count(manifest.vocab_size));
  if (!manifest.license.empty()) text += fmt::format("licence     {}\n", printable(manifest.license));
  if (manifest.marked_labels) text += "learned     what an assistant says in chats\n";
  if (!manifest.statistics) {
    return text + fmt::format("training    {} tokens\nvalidation  {} tokens\n",
                              format_count(manifest.tokens(Split::kTrain)),
                              format_count(manifest.tokens(Split::kValidation)));
  }
  const DataStatistics& statistics = *manifest.statistics;
  text += describe_split("training", statistics.train) + describe_split("validation", statistics.validation);
  text += fmt::format("duplicates  {}, {} of text, left out\n", format_number_of(statistics.duplicates, "document"),
                      format_bytes(static_cast<double>(statistics.duplicate_bytes)));
  if (statistics.without_text > 0) {
    text += fmt::format("no text     {} whose text is null or empty, left out\n",
                        format_number_of(statistics.without_text, "document"));
  }
  text += fmt::format("files       {} training and {} validation shards\n", manifest.train.size(),
                      manifest.validation.size());
  for (const SourceStatistics& source : statistics.sources) {
    text += fmt::format("source      {}: {}, {}, {} tokens, {}\n", printable(source.name),
                        format_number_of(source.files, "file"), format_number_of(source.documents, "document"),
                        format_count(source.tokens), format_number_of(source.duplicates, "duplicate"));
  }
  for (std::size_t i = 0; i < kLengthBins; ++i) {
    if (statistics.lengths[i] == 0) continue;
    text += fmt::format("length      {} to {} tokens: {}\n", format_count(std::uint64_t{1} << i),
                        format_count((std::uint64_t{2} << i) - 1), format_number_of(statistics.lengths[i], "document"));
  }
  return text;
}

Status run_prepare(DataPrepare& command, CommandContext& context) {
  Console& console = context.console;
  PrepareOptions& options = command.options;
  options.validation_share = command.validation_percent / 100;
  options.memory_bytes = static_cast<std::uint64_t>(command.memory_gib * (1u << 30));
  options.interrupt = &context.interrupt;
  if (!command.tokenizer.empty()) {
    ATOLL_ASSIGN_OR_RETURN(
        options.tokenizer,
        load_dataset_tokenizer(command.tokenizer, parse_split_pattern(command.pattern), command.end_of_text));
  }
  ATOLL_ASSIGN_OR_RETURN(const std::size_t left_out, show_left_out(command, console));
  ProgressLines lines(console, command.json);
  const auto manifest = prepare_dataset({command.inputs.begin(), command.inputs.end()}, command.output, options,
                                        [&](const PrepareProgress& progress) { lines.show(progress); });
  lines.clear();
  if (!manifest.ok() && manifest.error().code == ErrorCode::kAborted) {
    return Error{ErrorCode::kAborted, "interrupted; what is done is kept: go on with the same command"};
  }
  if (!manifest.ok()) return manifest.error();
  if (command.json) {
    console.out << manifest->to_json() << "\n" << std::flush;
    return ok_status();
  }
  console.out << fmt::format("{} is whole\n", command.output) << describe(*manifest);
  if (left_out > 0) console.out << fmt::format("left out    {}, named above\n", format_number_of(left_out, "file"));
  console.out << std::flush;
  return ok_status();
}

Status run_info(const DataInfo& command, CommandContext& context) {
  ATOLL_ASSIGN_OR_RETURN(const Dataset dataset, Dataset::open(command.directory));
  if (command.verify) ATOLL_RETURN_IF_ERROR(dataset.verify());
  context.console.out << (command.json ? dataset.manifest().to_json() + "\n" : describe(dataset.manifest()))
                      << std::flush;
  if (command.verify && !command.json)
    context.console.out << "every shard has the SHA-256 of the manifest\n" << std::flush;
  return ok_status();
}

void add_prepare(CLI::App& data, CommandContext& context) {
  auto command = std::make_shared<DataPrepare>();
  PrepareOptions& options = command->options;
  CLI::App* prepare = data.add_subcommand("prepare", "Make token shards with a held-out validation split out of text");
  prepare->footer(
      "Examples:\n"
      "  atoll data prepare book.txt --output data\n"
      "  atoll data prepare corpus/ 'wiki/*.jsonl.zst' --field content --output data\n"
      "  atoll data prepare corpus/ --tokenizer Llama-3/tokenizer.model --output data\n"
      "  atoll data prepare --chat chats.jsonl --tokenizer Llama-3/tokenizer.json --output chats\n\n"
      "Reads text, JSON Lines (.jsonl, .ndjson, .json: an object a line), both also as .gz or .zst, and Parquet\n"
      "(.parquet); directories of them, of which it says what it leaves out; and patterns. Tokens of others, too: .bin "
      "with .idx of Megatron-LM and .ds "
      "with\n"
      ".ds.index of datatrove, made with the --tokenizer that is named. The same inputs give the same files, whatever "
      "--threads is.\n"
      "Killed or interrupted, it goes on where it was when the same command is given again. Documents of which\n"
      "the same text stands before are left out, and those whose text is null or empty. A long text file is cut into "
      "pieces of up to 16 KiB, of which\n"
      "some are held out; with --whole-files each text file is one document.");
  prepare->add_option("INPUT", command->inputs, "Files, directories, patterns")->required();
  prepare->add_option("-o,--output", command->output, "Directory to make")->required();
  CLI::Option* const tokenizer =
      prepare->add_option("--tokenizer", command->tokenizer, "tokenizer.json or tokenizer.model (default: bytes)")
          ->type_name("FILE");
  prepare
      ->add_option("--pattern", command->pattern, "How text is cut, for a tiktoken file that is none of the known ones")
      ->needs(tokenizer)
      ->check(is_split_pattern());
  prepare->add_option("--end-of-text", command->end_of_text, "Special token behind each document (default: its own)")
      ->needs(tokenizer)
      ->type_name("TOKEN");
  prepare->add_option("--field", options.read.field, "Field or column of the text; a.b: of the object in it")
      ->capture_default_str();
  prepare
      ->add_option("--encoding", options.read.encoding,
                   "Of text and JSON Lines, like latin1 or UTF-16 (default: UTF-8; other bytes are refused)")
      ->type_name("NAME");
  prepare
      ->add_flag(
          "--chat", options.read.chat,
          "A line is a chat, {\"messages\": [{\"role\": ..., \"content\": ...}]}, in Llama 3's template; what an "
          "assistant says is learned")
      ->needs(tokenizer);
  prepare->add_flag("--whole-files", options.read.whole_files, "A text file is one document");
  prepare->add_option("--validation", command->validation_percent, "Percent of documents to hold out, by their hash")
      ->check(number_between(0.0001, 50))
      ->capture_default_str();
  prepare->add_option("--seed", options.seed, "Which documents are held out")
      ->check(whole_number(0, UINT64_MAX))
      ->capture_default_str();
  prepare->add_flag("--keep-duplicates", options.keep_duplicates, "Documents of the same text stay");
  prepare
      ->add_option(
          "--license", options.license,
          "Of the text, an SPDX expression like CC-BY-4.0: it goes into the cards of models that are trained on it")
      ->type_name("SPDX");
  prepare->add_option("--shard-tokens", options.shard_tokens, "Tokens of a shard")
      ->check(whole_number(1 << 10, std::uint64_t{1} << 40))
      ->capture_default_str();
  prepare->add_option("--threads", options.threads, "How many work; 0: as many as there are processors")
      ->check(whole_number(0, 1024))
      ->capture_default_str();
  prepare
      ->add_option("--memory", command->memory_gib, "GiB of memory to find duplicates in: 24 bytes a document at once")
      ->check(number_between(0.01, 4096))
      ->capture_default_str();
  prepare->add_flag("--force", options.replace, "Replace a dataset that is there");
  prepare->add_flag("--restart", options.restart, "Start anew; what was left unfinished is removed");
  prepare->add_flag("--json", command->json,
                    "What is left out, a line of progress a second, then the manifest, as JSON");
  prepare->callback([command, &context] { context.finish(run_prepare(*command, context)); });
}

struct DataIndex {
  std::string directory;
  std::uint32_t chunk_bytes = kDefaultChunkBytes;
};

Status run_index(const DataIndex& command, CommandContext& context) {
  ATOLL_ASSIGN_OR_RETURN(const Dataset dataset, Dataset::open(command.directory));
  Console& console = context.console;
  HashingLines lines(console);
  for (const Split split : {Split::kTrain, Split::kValidation}) {
    if (dataset.manifest().tokens(split) == 0) continue;
    const std::filesystem::path path = std::filesystem::path(command.directory) / tree_file(split);
    const Status made =
        make_chunk_tree(dataset, split, command.chunk_bytes, path, [&](std::uint64_t done, std::uint64_t all) {
          lines.show(split == Split::kTrain ? "training" : "validation", done, all);
          return !context.interrupt.raised();
        });
    if (!made.ok() && made.error().code == ErrorCode::kAborted) {
      return Error{ErrorCode::kAborted, "interrupted; what is done is kept: go on with the same command"};
    }
    ATOLL_RETURN_IF_ERROR(made);
    ATOLL_ASSIGN_OR_RETURN(const TreeHead head, read_tree_head(path));
    console.out << fmt::format("{}: {} of {}\n", path.string(), format_number_of(head.index.chunks(), "chunk"),
                               format_bytes(head.index.chunk_bytes))
                << std::flush;
  }
  return ok_status();
}

void add_index(CLI::App& data, CommandContext& context) {
  auto command = std::make_shared<DataIndex>();
  CLI::App* index = data.add_subcommand("index", "Hash a dataset chunk by chunk, for islands that fetch it by chunks");
  index->footer(
      "Example:\n  atoll data index data\n\n"
      "Reads all of it once. Killed or interrupted, it goes on where it was when the same command is given again.\n"
      "'atoll hub init' does the same where it was not done. Where it was, a hub needs dataset.json, train.tree\n"
      "and validation.tree alone: islands get the shards from a mirror (hub init --data-mirror).");
  index->add_option("DIR", command->directory, "Dataset made by 'atoll data prepare'")->required();
  index->add_option("--chunk-bytes", command->chunk_bytes, "What islands fetch at once; a sequence is within one chunk")
      ->check(whole_number(kMinChunkBytes, kMaxChunkBytes))
      ->capture_default_str();
  index->callback([command, &context] { context.finish(run_index(*command, context)); });
}

}  // namespace

void add_data_command(CLI::App& app, CommandContext& context) {
  CLI::App* data = app.add_subcommand("data", "Make datasets, and look at them");
  data->require_subcommand(1);
  add_prepare(*data, context);
  add_index(*data, context);
  auto command = std::make_shared<DataInfo>();
  CLI::App* info = data->add_subcommand("info", "What a dataset holds and was made of");
  info->footer("Example:\n  atoll data info data --verify");
  info->add_option("DIR", command->directory, "Dataset made by 'atoll data prepare'")->required();
  info->add_flag("--verify", command->verify, "Read all of it, and compare hashes");
  info->add_flag("--json", command->json, "The manifest");
  info->callback([command, &context] { context.finish(run_info(*command, context)); });
}

}  // namespace atl
