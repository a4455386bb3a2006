// atoll data prepare: text files -> a dataset.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "app/cli/command.h"
#include "app/cli/text.h"
#include "app/cli/validators.h"
#include "net/base/deadline.h"
#include "net/data/prepare.h"

namespace atl {
namespace {

struct DataPrepare {
  std::vector<std::string> inputs;
  std::string output;
  std::uint32_t validation_every = PrepareOptions{}.validation_every;
  std::uint64_t seed = PrepareOptions{}.seed;
  bool force = false;
};

Status run(const DataPrepare& command, CommandContext& context) {
  Console& console = context.console;
  const auto began = Clock::now();
  auto shown = began;
  const auto progress = [&](std::uint64_t done, std::uint64_t total) {
    if (!console.err_is_terminal || Clock::now() - shown < std::chrono::milliseconds(100)) return;
    shown = Clock::now();
    const double seconds = Seconds(shown - began).count();
    const auto text = total == 0 ? fmt::format("reading {}", format_bytes(static_cast<double>(done)))
                                 : fmt::format("writing {} of {}, {}/s", format_bytes(static_cast<double>(done)),
                                               format_bytes(static_cast<double>(total)),
                                               format_bytes(static_cast<double>(done) / seconds));
    console.err << "\r\033[K" << text << std::flush;
  };
  PrepareOptions options;
  options.validation_every = command.validation_every;
  options.seed = command.seed;
  options.replace = command.force;
  const auto manifest =
      prepare_dataset({command.inputs.begin(), command.inputs.end()}, command.output, options, progress);
  if (console.err_is_terminal) console.err << "\r\033[K" << std::flush;
  if (!manifest.ok()) return manifest.error();
  console.out << fmt::format("{}: {} training and {} validation tokens (byte-level, {} in the vocabulary), {} files\n",
                             command.output, format_count(manifest->tokens(Split::kTrain)),
                             format_count(manifest->tokens(Split::kValidation)), manifest->vocab_size,
                             manifest->train.size() + manifest->validation.size() + 1)
              << std::flush;
  return ok_status();
}

}  // namespace

void add_data_command(CLI::App& app, CommandContext& context) {
  CLI::App* data = app.add_subcommand("data", "Make datasets");
  data->require_subcommand(1);
  auto command = std::make_shared<DataPrepare>();
  CLI::App* prepare = data->add_subcommand("prepare", "Make token shards with a held-out validation split out of text");
  prepare->footer(
      "Examples:\n"
      "  atoll data prepare book.txt --output data\n"
      "  atoll data prepare corpus/ wiki.jsonl.gz --output data --force\n\n"
      "Reads text files, .jsonl (an object with \"text\" a line), both also as .gz, and directories of .txt\n"
      "and .jsonl. The same inputs always give the same files.");
  prepare->add_option("INPUT", command->inputs, "Text files or directories")->required();
  prepare->add_option("-o,--output", command->output, "Directory to make")->required();
  prepare->add_option("--validation-every", command->validation_every, "Hold out one block of text in so many")
      ->check(whole_number(2, 1'000'000))
      ->capture_default_str();
  prepare->add_option("--seed", command->seed, "Which blocks are held out")
      ->check(whole_number(0, UINT64_MAX))
      ->capture_default_str();
  prepare->add_flag("--force", command->force, "Replace a dataset that is there");
  prepare->callback([command, &context] { context.finish(run(*command, context)); });
}

}  // namespace atl
