// atoll-trainer: parse, run one subcommand, map the error to an exit code. Usually started by `atoll`.
#include <fmt/format.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>

#include "net/base/exit_code.h"
#include "net/base/log.h"
#include "net/base/open_files.h"
#include "net/base/printable.h"
#include "net/control/trainer_contract.h"
#include "trainer/program/program.h"
#include "trainer/program/tool_arguments.h"

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
  auto* export_home = export_command->add_option("--home", exporting.home);
  auto* export_from = export_command->add_option("--from", exporting.from);
  export_command->add_option("--output", exporting.output)->required();
  export_command->add_option("--dtype", exporting.dtype)->check(CLI::IsMember({"float32", "bfloat16"}));
  export_command->add_option("--max-shard-bytes", exporting.max_shard_bytes)->check(CLI::PositiveNumber);
  export_command->add_option("--round", exporting.round)->needs(export_home)->excludes(export_from);
  export_command->add_flag("--json", exporting.json);

  atl::EvalCommand eval;
  auto* eval_command = atl::add_eval(app, eval);
  atl::SampleCommand sample;
  auto* sample_command = atl::add_sample(app, sample);

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
  if (export_command->parsed() && exporting.home.empty() && exporting.from.empty()) {
    fmt::print(stderr, "atoll-trainer: say which model: --home of an island, or --from s3://BUCKET/PREFIX\n");
    return atl::kExitUsage;
  }
  if (eval_command->parsed() && eval.data.empty() && eval.tasks.empty()) {
    fmt::print(stderr, "atoll-trainer: say on what: --data DIRECTORY, or --task FILE\n");
    return atl::kExitUsage;
  }
  atl::raise_open_file_limit();
  // What a tool prints is its result; the log of one that trains is read by its agent.
  if (!run_command->parsed()) spdlog::default_logger()->sinks() = {std::make_shared<spdlog::sinks::stderr_sink_mt>()};
  atl::set_up_log();
  if (eval_command->parsed() || sample_command->parsed()) atl::set_log_level("warning");

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
