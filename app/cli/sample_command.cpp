// atoll sample: a model continues texts.
#include <CLI/CLI.hpp>

#include "app/cli/command.h"
#include "app/cli/trainer_arguments.h"
#include "app/cli/validators.h"

namespace atl {
namespace {

struct Sample {
  TrainerModelSource source;
  TrainerInference inference;
  std::vector<std::string> prompts, stops;
  std::string prompts_file, tokens, temperature, top_k, top_p, seed;
  bool json = false;
};

Status run_sample(const Sample& command, CommandContext& context) {
  TrainerArguments arguments("sample");
  ATOLL_RETURN_IF_ERROR(command.source.append_to(arguments));
  arguments.add_all("--prompt", command.prompts);
  arguments.add_path("--prompts", command.prompts_file);
  arguments.add("--tokens", command.tokens);
  arguments.add("--temperature", command.temperature);
  arguments.add("--top-k", command.top_k);
  arguments.add("--top-p", command.top_p);
  arguments.add_all("--stop", command.stops);
  arguments.add("--seed", command.seed);
  ATOLL_RETURN_IF_ERROR(command.inference.append_to(arguments, context.interrupt));
  arguments.add_flag("--json", command.json);
  run_trainer(arguments, context);
  return ok_status();
}

}  // namespace

void add_sample_command(CLI::App& app, CommandContext& context) {
  auto command = std::make_shared<Sample>();
  CLI::App* sub = app.add_subcommand("sample", "Continue prompts with a model");
  sub->footer(
      "Examples:\n  atoll sample --model my-model --prompt 'An atoll is' --tokens 200\n"
      "  atoll sample --model my-model --prompts prompts.jsonl --batch 16 --json\n\n"
      "Text that spells a special token of the tokenizer is that token, so a prompt may be of a chat's template, and "
      "a\n"
      "text ends where the model ends its message. One that grows beyond what the model takes goes on from its later\n"
      "half.");
  command->source.add_to(*sub);
  auto* prompt =
      sub->add_option("--prompt", command->prompts, "Text to continue (repeatable)")->allow_extra_args(false);
  sub->add_option("--prompts", command->prompts_file, "Texts to continue: JSON Lines, {\"prompt\": TEXT} each")
      ->type_name("FILE")
      ->excludes(prompt);
  sub->add_option("--tokens", command->tokens, "How many to add")->check(whole_number(1, 1 << 20));
  sub->add_option("--temperature", command->temperature, "0: always the likeliest")->check(number_between(0, 100));
  sub->add_option("--top-k", command->top_k, "Choose among the k likeliest; 0: all")->check(whole_number(0, 1 << 20));
  sub->add_option("--top-p", command->top_p, "Choose among the likeliest that come to this probability together")
      ->check(number_between(0, 1));
  sub->add_option("--stop", command->stops, "End before this text (repeatable)")->allow_extra_args(false);
  sub->add_option("--seed", command->seed, "Of the choices")->check(whole_number(0, UINT64_MAX));
  command->inference.add_to(*sub);
  sub->add_flag("--json", command->json, "Print JSON, a line a text");
  sub->callback([command, &context] {
    if (const Status status = run_sample(*command, context); !status.ok()) context.finish(status);
  });
}

}  // namespace atl
