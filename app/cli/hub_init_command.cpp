// atoll hub init: a new run, with its certificate authority.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "app/cli/command.h"
#include "app/cli/hashing_lines.h"
#include "app/cli/run_init.h"
#include "app/cli/text.h"
#include "app/cli/validators.h"
#include "net/check/run_needs.h"
#include "net/data/run_dataset.h"
#include "net/model/train_only.h"

namespace atl {
namespace {

constexpr std::uint64_t kMostMachinesHave = 64'000'000'000;  // of memory, bytes

struct HubInit {
  std::string home;
  NewRun run;
};

Result<std::string> describe_trained(const RunConfig& run) {
  if (run.train_only.empty()) return std::string();
  ATOLL_ASSIGN_OR_RETURN(const ModelConfig model, model_config_from_json(run.model_json));
  const ParameterLayout layout = layout_of_training(model, run.train_only);
  return fmt::format("{} of its {} parameters are trained; the others stay as they begin\n",
                     format_count(static_cast<std::uint64_t>(trained_numel(layout))),
                     format_count(static_cast<std::uint64_t>(layout.numel)));
}

// A large one takes a while.
void tell_copy(const BaseModel& model, Console& console) {
  console.err << fmt::format("copying the {} parameters of {} into the hub's home, from where islands fetch them ...",
                             format_count(static_cast<std::uint64_t>(model.numel())), model.name())
              << std::endl;
}

Status run(const HubInit& command, CommandContext& context) {
  ATOLL_ASSIGN_OR_RETURN(const auto directory, hub_home_or_default(command.home));
  Console& console = context.console;
  const auto on_matrix = [&](std::size_t done, std::size_t all) {
    if (10 * done / all == 10 * (done - 1) / all) return;  // each tenth
    console.err << fmt::format("signal and noise of {} of {} matrices", done, all) << std::endl;
  };
  NewRun wanted = command.run;
  wanted.memory_bytes = kMostMachinesHave;
  ATOLL_ASSIGN_OR_RETURN(PlannedRun planned, plan_run(wanted, context.interrupt, on_matrix));
  HashingLines lines(console);
  planned.options.on_indexing = [&](const std::string& source, std::uint64_t done, std::uint64_t all) {
    lines.show(source, done, all);
    return !context.interrupt.raised();
  };
  tell_notes(planned, console);
  if (planned.base_model) tell_copy(*planned.base_model, console);
  ATOLL_ASSIGN_OR_RETURN(const RunConfig run, init_run(planned, directory));
  ATOLL_ASSIGN_OR_RETURN(const RunDataFacts data, facts_of_run_data(run.dataset_json));
  ATOLL_ASSIGN_OR_RETURN(const RunNeeds needs, needs_of(run));
  ATOLL_ASSIGN_OR_RETURN(const std::string trained, describe_trained(run));
  const std::string evaluation = describe_evaluation(run.evaluation);
  const MicroBatch least = needs.micro_batches.front();
  const auto beside_gpus = static_cast<double>(needs.bytes_beside_gpus);
  const std::string home_flag = command.home.empty() ? "" : fmt::format(" --home {}", command.home);
  console.out
      << fmt::format(
             "run {} ({}) made in {}\n"
             "{}"
             "{} inner steps a round{}, {} tokens a step and island, {} training tokens\n"
             "{}\n"
             "{}{}"
             "each island wants {} of memory if its CPU computes, {} beside GPUs that do ({:.1f} bytes a parameter); "
             "'atoll check' says what a machine has{}\n"
             "next: atoll hub serve{}    then: atoll hub invite{}\n",
             run.name, run.run_id, directory.string(),
             data.sources.size() > 1 ? fmt::format("data: {}\n", describe_weights(data.names(), data.weights())) : "",
             run.inner_steps,
             run.fragments > 1 ? fmt::format(", each averages one of {} fragments", run.fragments) : "",
             format_count(std::uint64_t{run.sequences_per_step} * run.sequence_length), format_count(data.train_tokens),
             describe_learning_rate(run.inner),
             (run.initial_state.empty() ? "" : fmt::format("it begins with {}\n", run.beginning())) + trained,
             (run.attention == AttentionScope::kDocument ? "attention is kept within documents\n" : "") +
                 (evaluation.empty() ? "" : evaluation + "\n"),
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
      "  atoll hub init --data data --name small --preset 150m --inner-steps 100 --islands 4\n"
      "  atoll hub init --data data --name further --from SmolLM2-135M --lr 3e-4 --warmup-steps 100\n"
      "  atoll hub init --data web=/srv/web --data /srv/code --weights web=0.8,code=0.2 --name mixed\n"
      "  atoll hub init --data data --name asked --evaluate hellaswag.jsonl --evaluate-every 20\n\n"
      "A preset is a name or a JSON file {\"model\": NAME, \"run\": {...}}; run.json in the hub's home then\n"
      "shows every value.");
  sub->add_option("--home", command->home, "Directory to make (default: ~/.local/share/atoll-hub)")->type_name("DIR");
  sub->add_option("--data", command->run.data,
                  "Dataset made by 'atoll data prepare'; several times: sources of a mixture")
      ->required()
      ->take_all()
      ->allow_extra_args(false)
      ->type_name("[NAME=]DIR");
  sub->add_option("--weights", command->run.weights,
                  "Shares of the sources, of any sum; one that is not named has none (default: by their tokens)")
      ->type_name("NAME=SHARE,...");
  sub->add_option("--data-mirror", command->run.mirrors,
                  "Where islands get the data from beside the hub: https://, s3://BUCKET/PREFIX or a path; of several "
                  "sources it has a directory each")
      ->take_all()
      ->allow_extra_args(false)
      ->type_name("[NAME=]PLACE");
  sub->add_option("--name", command->run.name, "Name of the run, for people")->required();
  sub->add_option("--operator", command->run.operator_name, "Who runs it, as those see it whom you invite");
  add_run_options(*sub, command->run);
  add_rounds_option(*sub, command->run);
  sub->add_option("--islands", command->run.overrides.min_islands, "The first round begins when so many are there")
      ->check(whole_number(1, 1024));
  sub->callback([command, &context] { context.finish(run(*command, context)); });
}

}  // namespace atl
