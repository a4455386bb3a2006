// atoll-trainer: parse, run one subcommand, map the error to an exit code. Usually started by `atoll`.
#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "net/base/exit_code.h"
#include "net/base/log.h"
#include "net/base/open_files.h"
#include "net/base/printable.h"
#include "net/control/trainer_contract.h"
#include "trainer/program/program.h"

namespace {

void add_source(CLI::App& command, atl::ModelSource& source) {
  auto* model = command.add_option("--model", source.model, "HuggingFace directory of the model");
  auto* home = command.add_option("--home", source.home, "home of an island, for the model that it trains");
  model->excludes(home);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"The trainer of an Atoll island. People use `atoll`, which starts it."};
  app.require_subcommand(1);
  app.set_version_flag("--version", "atoll-trainer " ATOLL_VERSION);

  atl::RunCommand run;
  auto* run_command = app.add_subcommand("run", "train as the island whose home this is");
  run_command->add_option("--home", run.home)->required();
  run_command->add_option("--local-ranks", run.local_ranks, "threads over which the model is sharded")
      ->check(CLI::Range(0, 64));
  run_command->add_option("--threads", run.threads, "compute threads")->check(CLI::Range(1, 1024));
  run_command
      ->add_option("--micro-batch", run.micro_batch, "sequences that a rank computes at once; 0: chosen by memory")
      ->check(CLI::Range(0, 1 << 20));

  atl::ExportCommand exporting;
  auto* export_command = app.add_subcommand("export", "write the island's model as a HuggingFace directory");
  export_command->add_option("--home", exporting.home)->required();
  export_command->add_option("--output", exporting.output)->required();
  export_command->add_flag("--json", exporting.json);

  atl::EvalCommand eval;
  auto* eval_command = app.add_subcommand("eval", "validation loss of a model");
  add_source(*eval_command, eval.source);
  eval_command->add_option("--data", eval.data, "dataset made by `atoll data prepare`")->required();
  eval_command->add_option("--sequences", eval.sequences)->check(CLI::Range(1, 1 << 20));
  eval_command->add_option("--sequence-length", eval.sequence_length)->check(CLI::Range(1, 1 << 20));
  eval_command->add_option("--threads", eval.threads)->check(CLI::Range(1, 1024));
  eval_command->add_flag("--json", eval.json);

  atl::SampleCommand sample;
  auto* sample_command = app.add_subcommand("sample", "continue a prompt");
  add_source(*sample_command, sample.source);
  sample_command->add_option("--prompt", sample.prompt);
  sample_command->add_option("--tokens", sample.tokens)->check(CLI::Range(1, 1 << 20));
  sample_command->add_option("--temperature", sample.temperature)->check(CLI::Range(0.0, 100.0));
  sample_command->add_option("--top-k", sample.top_k)->check(CLI::Range(0, 1 << 20));
  sample_command->add_option("--seed", sample.seed);
  sample_command->add_option("--threads", sample.threads)->check(CLI::Range(1, 1024));
  sample_command->add_flag("--json", sample.json);

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : atl::kExitUsage;
  }
  for (const atl::ModelSource* source : {&eval.source, &sample.source}) {
    const bool asked = (source == &eval.source ? eval_command : sample_command)->parsed();
    if (!asked || !source->model.empty() || !source->home.empty()) continue;
    fmt::print(stderr, "atoll-trainer: say which model: --model DIRECTORY, or --home of an island\n");
    return atl::kExitUsage;
  }
  atl::raise_open_file_limit();
  atl::set_up_log();

  atl::Status status;
  int code = 0;
  if (run_command->parsed()) {
    const auto ran = atl::run_island(run);
    if (ran.ok()) code = *ran;
    if (!ran.ok()) status = ran.error();
  }
  if (export_command->parsed()) status = atl::export_model(exporting);
  if (eval_command->parsed()) status = atl::eval_model(eval);
  if (sample_command->parsed()) status = atl::sample_model(sample);
  if (!status.ok()) code = atl::exit_code_of(status.error().code);
  if (!status.ok()) fmt::print(stderr, "atoll-trainer: {}\n", atl::printable(status.error().message));
  if (run_command->parsed()) fmt::print(stderr, "{}{}\n", atl::kTrainerExitWords, code);
  return code;
}
