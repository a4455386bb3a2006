#include "trainer/program/tool_arguments.h"

#include "net/control/home.h"
#include "net/model/attention_scope.h"

namespace atl {
namespace {

CLI::IsMember attention_scope() {
  return CLI::IsMember(std::vector<std::string>(kAttentionScopes.begin(), kAttentionScopes.end()));
}

void add_source(CLI::App& command, ModelSource& source) {
  auto* model = command.add_option("--model", source.model, "HuggingFace directory of the model");
  auto* home = command.add_option("--home", source.home, "home of an island, for the model that it trains");
  model->excludes(home);
}

void add_inference(CLI::App& command, InferenceChoice& choice) {
  command.add_option("--tokenizer", choice.tokenizer, "tokenizer.json, tokenizer.model, or bytes");
  command.add_flag("--bf16", choice.bf16, "compute in bf16, in place of fp32");
  command.add_option("--batch", choice.batch, "texts at once")->check(CLI::Range(1, 1 << 16));
  command.add_option("--threads", choice.threads)->check(CLI::Range(1, 1024));
  command.add_option_function<std::string>(
      "--device",
      [&choice](const std::string& word) {
        const auto device = parse_device_choice(word);
        if (!device.ok()) throw CLI::ValidationError("--device", device.error().message);
        choice.device = *device;
      },
      "auto, processor or gpu: what computes");
}

}  // namespace

CLI::App* add_eval(CLI::App& app, EvalCommand& eval) {
  auto* command = app.add_subcommand("eval", "validation loss of a model, and its scores on tasks");
  add_source(*command, eval.source);
  auto* data = command->add_option("--data", eval.data, "[NAME=]DIR, made by `atoll data prepare` (repeatable)")
                   ->allow_extra_args(false);
  command->add_option("--sequences", eval.sequences)->check(CLI::Range(1, 1 << 20))->needs(data);
  command->add_option("--sequence-length", eval.sequence_length)->check(CLI::Range(1, 1 << 20))->needs(data);
  command->add_option("--attention", eval.attention)->check(attention_scope())->needs(data);
  auto* tasks =
      command->add_option("--task", eval.tasks, "task file, JSON Lines (repeatable)")->allow_extra_args(false);
  add_inference(*command, eval.inference);
  command->add_option("--max-length", eval.max_length)->check(CLI::Range(1, 1 << 30))->needs(tasks);
  command->add_option("--limit", eval.limit)->check(CLI::Range(1, 1 << 30))->needs(tasks);
  command->add_option("--bootstrap", eval.bootstrap)->check(CLI::Range(0, 1 << 30))->needs(tasks);
  auto* output = command->add_option("--output", eval.output, "directory, or a .json")->needs(tasks);
  command->add_flag("--log-samples", eval.log_samples)->needs(output);
  command->add_flag("--json", eval.json);
  return command;
}

CLI::App* add_sample(CLI::App& app, SampleCommand& sample) {
  auto* command = app.add_subcommand("sample", "continue prompts");
  add_source(*command, sample.source);
  auto* prompt = command->add_option("--prompt", sample.prompts, "(repeatable)")->allow_extra_args(false);
  command->add_option("--prompts", sample.prompts_file, "JSON Lines")->excludes(prompt);
  command->add_option("--tokens", sample.tokens)->check(CLI::Range(1, 1 << 20));
  command->add_option("--temperature", sample.temperature)->check(CLI::Range(0.0, 100.0));
  command->add_option("--top-k", sample.top_k)->check(CLI::Range(0, 1 << 20));
  command->add_option("--top-p", sample.top_p)->check(CLI::Range(0.0, 1.0));
  command->add_option("--stop", sample.stops, "(repeatable)")->allow_extra_args(false);
  command->add_option("--seed", sample.seed);
  add_inference(*command, sample.inference);
  command->add_flag("--json", sample.json);
  return command;
}

}  // namespace atl
