#include "trainer/program/command_line.h"

#include <fmt/format.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>

#include "net/base/exit_code.h"
#include "net/base/log.h"
#include "net/base/open_files.h"
#include "net/base/printable.h"
#include "net/base/standard_output.h"
#include "net/control/home.h"
#include "net/control/trainer_contract.h"
#include "net/model/attention_scope.h"
#include "trainer/program/program.h"

namespace atl {
namespace {

constexpr const char* kName = "atoll-trainer";

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

CLI::App* add_run(CLI::App& app, RunCommand& run) {
  auto* command = app.add_subcommand("run", "train as the island whose home this is");
  command->add_option("--home", run.home)->required();
  command->add_option("--local-ranks", run.local_ranks, "threads over which the model is sharded")
      ->check(CLI::Range(0, 64));
  command->add_option("--threads", run.threads, "compute threads")->check(CLI::Range(1, 1024));
  command->add_option("--micro-batch", run.micro_batch, "sequences that a rank computes at once; 0: chosen by memory")
      ->check(CLI::Range(0, 1 << 20));
  return command;
}

CLI::App* add_export(CLI::App& app, ExportCommand& exporting) {
  auto* command = app.add_subcommand("export", "write the island's model as a HuggingFace directory");
  auto* home = command->add_option("--home", exporting.home);
  auto* from = command->add_option("--from", exporting.from);
  command->add_option("--output", exporting.output)->required();
  command->add_option("--dtype", exporting.dtype)->check(CLI::IsMember({"float32", "bfloat16"}));
  command->add_option("--max-shard-bytes", exporting.max_shard_bytes)->check(CLI::PositiveNumber);
  command->add_option("--round", exporting.round)->needs(home)->excludes(from);
  command->add_option("--run", exporting.run)->needs(home)->excludes(from);
  command->add_flag("--json", exporting.json);
  return command;
}

bool names_no_model(const ModelSource& source) { return source.model.empty() && source.home.empty(); }

// How the program ends. What a tool prints is its result; the log of one that trains is its agent's, who reads the exit
// code as net/control/trainer_contract.h has it.
int run_subcommand(int argc, char** argv, StandardOutput& output) {
  CLI::App app{"The trainer of an Atoll island. People use `atoll`, which starts it."};
  app.require_subcommand(1);
  app.set_version_flag("--version", "atoll-trainer " ATOLL_VERSION);
  RunCommand run;
  ExportCommand exporting;
  EvalCommand eval;
  SampleCommand sample;
  const CLI::App* run_command = add_run(app, run);
  const CLI::App* export_command = add_export(app, exporting);
  const CLI::App* eval_command = add_eval(app, eval);
  const CLI::App* sample_command = add_sample(app, sample);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return output.finish(app.exit(error) == 0 ? 0 : kExitUsage, kName);
  }

  const char* missing = nullptr;
  if ((eval_command->parsed() && names_no_model(eval.source)) ||
      (sample_command->parsed() && names_no_model(sample.source)))
    missing = "say which model: --model DIRECTORY, or --home of an island";
  else if (export_command->parsed() && exporting.home.empty() && exporting.from.empty())
    missing = "say which model: --home of an island, or --from s3://BUCKET/PREFIX";
  else if (eval_command->parsed() && eval.data.empty() && eval.tasks.empty())
    missing = "say on what: --data DIRECTORY, or --task FILE";
  if (missing != nullptr) {
    fmt::print(stderr, "atoll-trainer: {}\n", missing);
    return kExitUsage;
  }

  raise_open_file_limit();
  if (!run_command->parsed()) spdlog::default_logger()->sinks() = {std::make_shared<spdlog::sinks::stderr_sink_mt>()};
  set_up_log();
  if (eval_command->parsed() || sample_command->parsed()) set_log_level("warning");

  Status status;
  int code = 0;
  if (run_command->parsed()) {
    const auto ran = run_island(run);
    if (ran.ok()) code = *ran;
    if (!ran.ok()) status = ran.error();
  }
  if (export_command->parsed()) status = export_model(exporting);
  if (eval_command->parsed()) status = eval_model(eval);
  if (sample_command->parsed()) status = sample_model(sample);
  if (!status.ok()) code = exit_code_of(status.error().code);
  if (!status.ok()) fmt::print(stderr, "atoll-trainer: {}\n", printable(status.error().message));
  if (run_command->parsed()) fmt::print(stderr, "{}{}\n", kTrainerExitWords, code);
  return run_command->parsed() ? code : output.finish(code, kName);
}

}  // namespace

int run_trainer_cli(int argc, char** argv) {
  fill_standard_files();
  StandardOutput output;
  return run_subcommand(argc, argv, output);
}

}  // namespace atl
