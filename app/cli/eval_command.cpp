// atoll eval: how good a model is.
#include <CLI/CLI.hpp>

#include "app/cli/command.h"
#include "app/cli/trainer_arguments.h"
#include "app/cli/validators.h"
#include "net/data/source_name.h"

namespace atl {
namespace {

struct Eval {
  TrainerModelSource source;
  TrainerInference inference;
  std::string split = "validation", sequences, sequence_length, attention, max_length, limit, bootstrap, output;
  std::vector<std::string> data, tasks;
  bool log_samples = false, json = false;
};

Status run_eval(const Eval& command, CommandContext& context) {
  if (command.data.empty() && command.tasks.empty()) {
    return Error{ErrorCode::kInvalidArgument,
                 "say on what the model is to be tried: --data DIR for the loss on a dataset, or --task FILE"};
  }
  TrainerArguments arguments("eval");
  ATOLL_RETURN_IF_ERROR(command.source.append_to(arguments));
  for (const std::string& text : command.data) {
    const auto [name, directory] = split_name(text);
    const std::string place = std::filesystem::absolute(directory).string();
    arguments.add("--data", name.empty() ? place : name + "=" + place);
  }
  arguments.add("--sequences", command.sequences);
  arguments.add("--sequence-length", command.sequence_length);
  arguments.add("--attention", command.attention);
  for (const std::string& task : command.tasks) arguments.add_path("--task", task);
  arguments.add("--max-length", command.max_length);
  arguments.add("--limit", command.limit);
  arguments.add("--bootstrap", command.bootstrap);
  arguments.add_path("--output", command.output);
  arguments.add_flag("--log-samples", command.log_samples);
  ATOLL_RETURN_IF_ERROR(command.inference.append_to(arguments, context.interrupt));
  arguments.add_flag("--json", command.json);
  run_trainer(arguments, context);
  return ok_status();
}

}  // namespace

void add_eval_command(CLI::App& app, CommandContext& context) {
  auto command = std::make_shared<Eval>();
  CLI::App* sub = app.add_subcommand("eval", "Loss of a model on a dataset, and its scores on tasks");
  sub->footer(
      "Examples:\n  atoll eval --model my-model --data data --sequences 64\n"
      "  atoll eval --data web=data/web --data code=data/code\n"
      "  atoll eval --model my-model --task hellaswag.jsonl --task arc_easy.jsonl --output results\n\n"
      "Task files are JSON Lines (docs/eval-tasks.md); docs/eval_tasks.py makes them of lm-evaluation-harness's\n"
      "tasks, whose results this prints and writes.");
  command->source.add_to(*sub);
  auto* data = sub->add_option("--data", command->data,
                               "Dataset made by 'atoll data prepare' (repeatable: the loss on each source, and on all)")
                   ->type_name("[NAME=]DIR")
                   ->allow_extra_args(false);
  sub->add_option("--split", command->split, "Which split")
      ->check(CLI::IsMember({"validation"}))
      ->capture_default_str();
  sub->add_option("--sequences", command->sequences, "How many sequences of each")
      ->check(whole_number(1, 1 << 20))
      ->needs(data);
  sub->add_option("--sequence-length", command->sequence_length, "Tokens in each")
      ->check(whole_number(1, 1 << 20))
      ->needs(data);
  sub->add_option("--attention", command->attention,
                  "Over the packed sequence, or within a document (default: as the model was trained)")
      ->check(attention_scope())
      ->needs(data);
  auto* tasks = sub->add_option("--task", command->tasks, "Task file, JSON Lines (repeatable)")
                    ->type_name("FILE")
                    ->allow_extra_args(false);
  sub->add_option("--max-length", command->max_length, "Tokens of context (default: as many as the model takes)")
      ->check(whole_number(1, 1 << 30))
      ->needs(tasks);
  sub->add_option("--limit", command->limit, "Only so many questions of each task")
      ->check(whole_number(1, 1 << 30))
      ->needs(tasks);
  sub->add_option("--bootstrap", command->bootstrap, "Rounds for standard errors (default: 100000)")
      ->check(whole_number(0, 1 << 30))
      ->needs(tasks);
  auto* output = sub->add_option("-o,--output", command->output, "Write results here: a directory, or a .json")
                     ->type_name("PATH")
                     ->needs(tasks);
  sub->add_flag("--log-samples", command->log_samples, "Write each answer beside them")->needs(output);
  command->inference.add_to(*sub);
  sub->add_flag("--json", command->json, "Print JSON");
  sub->callback([command, &context] {
    if (const Status status = run_eval(*command, context); !status.ok()) context.finish(status);
  });
}

}  // namespace atl
