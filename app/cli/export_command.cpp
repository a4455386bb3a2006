// atoll export: the model that an island trains, as a HuggingFace directory.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>

#include "app/cli/command.h"
#include "app/cli/model_files_options.h"
#include "app/cli/trainer_arguments.h"
#include "app/cli/validators.h"
#include "net/base/plain_name.h"
#include "net/base/printable.h"
#include "net/control/home.h"

namespace atl {
namespace {

struct Export {
  std::string home, from, output, round, run;
  ModelFilesArguments files;
  bool json = false, force = false;
};

// A model that lies there was made on purpose.
Status check_output(const Export& command) {
  std::error_code ignored;
  const std::filesystem::path output = command.output;
  const bool free = !std::filesystem::exists(output, ignored) || std::filesystem::is_empty(output, ignored);
  if (free || command.force) return ok_status();
  return Error{ErrorCode::kInvalidArgument,
               fmt::format("{} is there already; choose another directory, or --force to write over the model in it",
                           command.output)};
}

// A run that was left for another one: its states are kept beside those of the run that came after it.
Status add_run(const Export& command, TrainerArguments& arguments) {
  if (command.run.empty()) return ok_status();
  ATOLL_ASSIGN_OR_RETURN(const auto directory, island_home_or_default(command.home));
  const IslandHome home{directory};
  const auto joined = load_membership(home);
  if (joined.ok() && joined->run_id == command.run) return ok_status();
  std::error_code ignored;
  if (is_plain_name(command.run) && std::filesystem::is_directory(home.checkpoint_of(command.run), ignored)) {
    arguments.add("--run", command.run);
    return ok_status();
  }
  return Error{ErrorCode::kNotFound,
               fmt::format("{} keeps no model of a run {}; those that it keeps are its directories checkpoint.RUN",
                           home.directory.string(), printable(command.run, kMaxPlainName))};
}

// Of a published state no home is needed.
Status add_source(const Export& command, TrainerArguments& arguments) {
  if (command.from.empty()) return arguments.add_home(command.home);
  arguments.add("--from", command.from);
  if (!command.home.empty()) ATOLL_RETURN_IF_ERROR(arguments.add_home(command.home));
  return arguments.add_store();
}

}  // namespace

void add_export_command(CLI::App& app, CommandContext& context) {
  auto command = std::make_shared<Export>();
  CLI::App* sub = app.add_subcommand("export", "Write the model that an island trains as a HuggingFace directory");
  sub->footer(
      "Example:\n  atoll export --output my-model\n  atoll export --output my-model --dtype bfloat16\n  atoll export "
      "--output early --round 1000\n  atoll export --from s3://bucket/run/outer-1000 --output early\n\nWorks while "
      "the island trains and when it does not.");
  sub->add_option("--home", command->home, "Island's home (default: this user's island)")->type_name("DIR");
  auto* from =
      sub->add_option("--from", command->from,
                      "A published state, s3://BUCKET/PREFIX[/outer-STEP] (default: the newest there); with --home of "
                      "an island of its run the tokenizer comes with it")
          ->type_name("URL");
  sub->add_option("-o,--output", command->output, "Directory to write")->required()->type_name("DIR");
  sub->add_option("--round", command->round,
                  "The model after so many rounds, of those that the island's disk leads to (default: the newest)")
      ->check(whole_number(0, UINT32_MAX))
      ->excludes(from);
  sub->add_option("--run", command->run, "A run that this island left for another one, by its id")
      ->type_name("ID")
      ->excludes(from);
  command->files.add_to(*sub);
  sub->add_flag("--force", command->force, "Write over what is in the directory");
  sub->add_flag("--json", command->json, "Print JSON");
  sub->callback([command, &context] {
    if (const Status output = check_output(*command); !output.ok()) return context.finish(output);
    TrainerArguments arguments("export");
    if (const Status status = add_source(*command, arguments); !status.ok()) return context.finish(status);
    if (const Status run = add_run(*command, arguments); !run.ok()) return context.finish(run);
    arguments.add_path("--output", command->output);
    arguments.add("--round", command->round);
    arguments.add("--dtype", command->files.dtype);
    arguments.add("--max-shard-bytes", std::to_string(command->files.options().max_shard_bytes));
    arguments.add_flag("--json", command->json);
    run_trainer(arguments, context);
  });
}

}  // namespace atl
