// atoll hub init: a new run, with its certificate authority.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>

#include "app/cli/command.h"
#include "app/cli/run_check.h"
#include "app/cli/run_preset.h"
#include "app/cli/text.h"
#include "app/cli/validators.h"
#include "net/data/dataset.h"
#include "net/hub/hub.h"

namespace atl {
namespace {

struct HubInit {
  std::string home, data, name, preset = "demo";
  RunOverrides overrides;
};

Status run(const HubInit& command, CommandContext& context) {
  ATOLL_ASSIGN_OR_RETURN(const auto directory, hub_home_or_default(command.home));
  ATOLL_RETURN_IF_ERROR(check_run_name(command.name));
  // Before anything is made: is there a dataset that this run can use?
  ATOLL_ASSIGN_OR_RETURN(const Dataset dataset, Dataset::open(command.data));
  HubInitOptions options;
  options.directory = directory;
  options.dataset_directory = std::filesystem::absolute(command.data);
  ATOLL_ASSIGN_OR_RETURN(options.run, make_run(command.preset, command.name, command.overrides));
  ATOLL_RETURN_IF_ERROR(check_run(options.run, dataset.manifest().vocab_size));
  if (dataset.sequences(Split::kTrain, options.run.sequence_length) == 0) {
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("the dataset in {} is shorter than one sequence of {} tokens; prepare more text, or choose a "
                    "shorter --sequence-length",
                    command.data, options.run.sequence_length)};
  }
  ATOLL_ASSIGN_OR_RETURN(const RunConfig run, hub_init(options));
  const std::string home_flag = command.home.empty() ? "" : fmt::format(" --home {}", command.home);
  context.console.out << fmt::format(
                             "run {} ({}) made in {}\n"
                             "{} inner steps a round, {} tokens a step and island, {} training tokens\n"
                             "next: atoll hub serve{}    then: atoll hub invite{}\n",
                             run.name, run.run_id, directory.string(), run.inner_steps,
                             format_count(std::uint64_t{run.sequences_per_step} * run.sequence_length),
                             format_count(dataset.manifest().tokens(Split::kTrain)), home_flag, home_flag)
                      << std::flush;
  return ok_status();
}

}  // namespace

void add_hub_init_command(CLI::App& hub, CommandContext& context) {
  auto command = std::make_shared<HubInit>();
  RunOverrides& overrides = command->overrides;
  CLI::App* sub = hub.add_subcommand("init", "Make a new run and its certificate authority");
  sub->footer(
      "Examples:\n"
      "  atoll hub init --data data --name first\n"
      "  atoll hub init --data data --name small --preset 150m --inner-steps 100 --islands 4\n\n"
      "A preset is a name or a JSON file {\"model\": NAME, \"run\": {...}}; run.json in the hub's home then\n"
      "shows every value.");
  sub->add_option("--home", command->home, "Directory to make (default: ~/.local/share/atoll-hub)")->type_name("DIR");
  sub->add_option("--data", command->data, "Dataset made by 'atoll data prepare'")->required()->type_name("DIR");
  sub->add_option("--name", command->name, "Name of the run, for people")->required();
  sub->add_option("--preset", command->preset, fmt::format("{}, or a file", fmt::join(preset_names(), ", ")))
      ->capture_default_str();
  sub->add_option("--model", overrides.model, "Model: a preset's name, or a HuggingFace config.json");
  sub->add_option("--inner-steps", overrides.inner_steps, "Inner steps a round (H)")->check(whole_number(1, 1'000'000));
  sub->add_option("--islands", overrides.min_islands, "The first round begins when so many are there")
      ->check(whole_number(1, 1024));
  sub->add_option("--rounds", overrides.max_rounds, "The run ends after so many; 0: when stopped")
      ->check(whole_number(0, UINT32_MAX));
  sub->add_option("--wire", overrides.wire, "How gradients travel")
      ->check(CLI::IsMember(std::vector<std::string>(kWireFormatNames.begin(), kWireFormatNames.end())));
  sub->add_option("--batch", overrides.sequences_per_step, "Sequences an inner step and island")
      ->check(whole_number(1, 1 << 20));
  sub->add_option("--sequence-length", overrides.sequence_length, "Tokens a sequence")->check(whole_number(1, 1 << 20));
  sub->add_option("--lr", overrides.learning_rate, "Peak learning rate of the inner optimiser")
      ->check(positive_number());
  sub->add_option("--warmup-steps", overrides.warmup_steps, "Inner steps until the peak")
      ->check(whole_number(0, UINT32_MAX));
  sub->add_option("--outer-lr", overrides.outer_learning_rate, "Learning rate of the outer optimiser")
      ->check(positive_number());
  sub->add_option("--outer-momentum", overrides.outer_momentum, "Momentum of the outer optimiser")
      ->check(number_between(0, 0.999999));
  sub->add_option("--validate-every", overrides.validate_every, "Rounds between validations; 0: never")
      ->check(whole_number(0, UINT32_MAX));
  sub->add_option("--seed", overrides.seed, "Of the initial parameters and the order of the data")
      ->check(whole_number(0, UINT64_MAX));
  sub->callback([command, &context] { context.finish(run(*command, context)); });
}

}  // namespace atl
