// atoll hub init: a new run, with its certificate authority.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "app/cli/command.h"
#include "app/cli/run_init.h"
#include "app/cli/text.h"
#include "app/cli/validators.h"
#include "net/check/run_needs.h"
#include "net/data/dataset.h"

namespace atl {
namespace {

constexpr std::uint64_t kMostMachinesHave = 64'000'000'000;  // of memory, bytes

struct HubInit {
  std::string home;
  NewRun run;
};

Status run(const HubInit& command, CommandContext& context) {
  ATOLL_ASSIGN_OR_RETURN(const auto directory, hub_home_or_default(command.home));
  ATOLL_ASSIGN_OR_RETURN(const RunConfig run, init_run(command.run, directory));
  ATOLL_ASSIGN_OR_RETURN(const DatasetManifest data, DatasetManifest::from_json(run.dataset_json));
  ATOLL_ASSIGN_OR_RETURN(const RunNeeds needs, needs_of(run));
  const MicroBatch least = needs.micro_batches.front();
  const auto beside_gpus = static_cast<double>(needs.bytes_beside_gpus);
  const std::string home_flag = command.home.empty() ? "" : fmt::format(" --home {}", command.home);
  context.console.out
      << fmt::format(
             "run {} ({}) made in {}\n"
             "{} inner steps a round{}, {} tokens a step and island, {} training tokens\n"
             "{}\n"
             "{}"
             "each island wants {} of memory if its CPU computes, {} beside GPUs that do ({:.1f} bytes a parameter); "
             "'atoll check' says what a machine has{}\n"
             "next: atoll hub serve{}    then: atoll hub invite{}\n",
             run.name, run.run_id, directory.string(), run.inner_steps,
             run.fragments > 1 ? fmt::format(", each averages one of {} fragments", run.fragments) : "",
             format_count(std::uint64_t{run.sequences_per_step} * run.sequence_length),
             format_count(data.tokens(Split::kTrain)), describe_learning_rate(run.inner),
             run.initial_state.empty() ? "" : fmt::format("it begins with {}\n", run.initial_state),
             format_bytes(static_cast<double>(least.bytes)), format_bytes(beside_gpus),
             beside_gpus / static_cast<double>(needs.parameters),
             least.bytes > kMostMachinesHave ? "\nfew machines have that: a smaller --model asks for less" : "",
             home_flag, home_flag)
      << std::flush;
  return ok_status();
}

}  // namespace

void add_hub_init_command(CLI::App& hub, CommandContext& context) {
  auto command = std::make_shared<HubInit>();
  CLI::App* sub = hub.add_subcommand("init", "Make a new run and its certificate authority");
  sub->footer(
      "Examples:\n"
      "  atoll hub init --data data --name first\n"
      "  atoll hub init --data data --name small --preset 150m --inner-steps 100 --islands 4\n\n"
      "A preset is a name or a JSON file {\"model\": NAME, \"run\": {...}}; run.json in the hub's home then\n"
      "shows every value.");
  sub->add_option("--home", command->home, "Directory to make (default: ~/.local/share/atoll-hub)")->type_name("DIR");
  sub->add_option("--data", command->run.data, "Dataset made by 'atoll data prepare'")->required()->type_name("DIR");
  sub->add_option("--name", command->run.name, "Name of the run, for people")->required();
  sub->add_option("--operator", command->run.operator_name, "Who runs it, as those see it whom you invite");
  sub->add_option("--from", command->run.from,
                  "Begin with the parameters of a published state, s3://BUCKET/PREFIX[/outer-STEP], and its model; its "
                  "momentum is left behind")
      ->type_name("URL");
  add_run_options(*sub, command->run);
  sub->add_option("--islands", command->run.overrides.min_islands, "The first round begins when so many are there")
      ->check(whole_number(1, 1024));
  sub->callback([command, &context] { context.finish(run(*command, context)); });
}

}  // namespace atl
