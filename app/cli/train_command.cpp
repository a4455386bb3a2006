// atoll train: a run of one island on this machine, its hub within this process, until Ctrl-C or its last round.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "app/agent/agent_config.h"
#include "app/agent/join_run.h"
#include "app/cli/command.h"
#include "app/cli/foreground_agent.h"
#include "app/cli/own_programs.h"
#include "app/cli/run_init.h"
#include "app/cli/start_again.h"
#include "app/cli/text.h"
#include "app/cli/train_changes.h"
#include "app/cli/train_memory.h"
#include "app/cli/validators.h"
#include "net/base/log.h"
#include "net/base/memory.h"
#include "net/check/gpu_compute.h"
#include "net/check/gpu_probe.h"
#include "net/hub/hub.h"
#include "net/hub/hub_home.h"
#include "net/wire/invite.h"

namespace atl {
namespace {

struct Train {
  std::string directory;
  std::optional<int> threads;
  std::optional<int> micro_batch;
  std::string device, precision;
  NewRun run;
  RunChange change;  // what of `run` was given
};

// What computes: as it was said, else as this run was begun, else as this machine's configuration has it.
Result<DeviceChoice> device_of(const Train& command, const AgentHome& home) {
  if (!command.device.empty()) return parse_device_choice(command.device);
  const auto before = load_join_file(home.island.join_file());
  if (before.ok()) return before->device;
  ATOLL_ASSIGN_OR_RETURN(const Config config, Config::load(config_sources(home)));
  return parse_device_choice(config.text("island.device"));
}

Status check_memory(const RunConfig& run, const Train& command, DeviceChoice device, const AbortSignal& interrupt) {
  const auto ask_gpus = [&] {
    GpuProbe probe;
    GpuFacts none;
    const auto program = locate_gpu_probe();
    if (!program.ok()) none.problem = program.error().message;
    if (!program.ok()) return none;
    probe.program = *program;
    return list_gpus(probe, interrupt);
  };
  return check_train_memory(run, command.micro_batch, device, {usable_memory().total, gpus_compute(), ask_gpus});
}

// A run that the directory holds goes on, with what is to change of it.
Status take_up_run(const Train& command, const HubHome& hub, DeviceChoice device, CommandContext& context) {
  ATOLL_ASSIGN_OR_RETURN(const ChangedRun changed, change_trained_run(hub, command.change));
  ATOLL_RETURN_IF_ERROR(check_memory(changed.run, command, device, context.interrupt));
  if (changed.lines.empty()) return ok_status();
  ATOLL_RETURN_IF_ERROR(save_run(hub, changed.run));
  for (const std::string& line : changed.lines) context.console.out << line << '\n';
  context.console.out << std::flush;
  return ok_status();
}

// The hub's home: a new run's, or that of the run which the directory holds.
Status prepare_run(Train& command, const HubHome& hub, DeviceChoice device, CommandContext& context) {
  const AbortSignal& interrupt = context.interrupt;
  if (std::filesystem::exists(hub.run_file())) return take_up_run(command, hub, device, context);
  if (command.change.more_rounds) command.run.overrides.max_rounds = command.change.more_rounds;
  if (command.run.data.empty()) {
    return Error{ErrorCode::kInvalidArgument,
                 fmt::format("{} holds no run yet; say on what it is to be trained: --data DIR, made by 'atoll data "
                             "prepare'",
                             command.directory)};
  }
  command.run.name = kTrainRunName;
  command.run.overrides.min_islands = 1;
  command.run.memory_bytes = usable_memory().total;
  // There is nobody to ask but its owner, who is here and has lost at most what this machine's disk has.
  if (!command.run.overrides.when_lost) command.run.overrides.when_lost = "rollback";
  ATOLL_ASSIGN_OR_RETURN(const PlannedRun planned, plan_run(command.run, interrupt));
  tell_notes(planned, context.console);
  ATOLL_RETURN_IF_ERROR(check_memory(planned.options.run, command, device, interrupt));
  ATOLL_RETURN_IF_ERROR(init_run(planned, hub.directory));
  return ok_status();
}

// The island joins as any other does; a hub that is started again has another port.
Status join_own_hub(const Train& command, const HubHome& hub, std::uint16_t port, DeviceChoice device,
                    const IslandHome& island, const AbortSignal& interrupt) {
  const Address address{"127.0.0.1", port};
  JoinRequest request;
  request.threads = command.threads;
  request.micro_batch = command.micro_batch;
  request.device = word_of(device);
  request.precision = command.precision;
  auto before = load_join_file(island.join_file());
  if (before.ok()) {
    before->hub_addresses = {address};
    ATOLL_RETURN_IF_ERROR(save_join_file(island.join_file(), *before));
  } else {
    request.listen = "127.0.0.1:0";
    ATOLL_ASSIGN_OR_RETURN(const InviteReport invite, create_invite(hub.directory, {.addresses = {address}}));
    const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
    ATOLL_ASSIGN_OR_RETURN(request.invite, decode_invite(invite.text, now));
  }
  ATOLL_RETURN_IF_ERROR(join_run(request, island, &interrupt, [](const Invite&) { return ok_status(); }));
  return ok_status();
}

Status run(Train& command, CommandContext& context) {
  const TrainHome train{std::filesystem::absolute(command.directory)};
  const HubHome hub = train.hub();
  const AgentHome home = agent_home_in(train.island().directory);
  ATOLL_ASSIGN_OR_RETURN(const DeviceChoice device, device_of(command, home));
  ATOLL_RETURN_IF_ERROR(prepare_run(command, hub, device, context));
  spdlog::set_level(spdlog::level::warn);  // the island's lines say it all
  log_without_waiting(context.console.loss_listener());
  HubServeOptions options;
  options.directory = hub.directory;
  options.listen = {"127.0.0.1", 0};
  ATOLL_ASSIGN_OR_RETURN(const auto server, HubServer::start(options, {}));
  ATOLL_RETURN_IF_ERROR(join_own_hub(command, hub, server->port(), device, home.island, context.interrupt));
  const std::string command_line = "atoll train --dir " + command.directory;
  return train_in_foreground(home, {.come_back = command_line, .more_rounds = command_line + " --rounds +N"}, context)
      .status;
}

// "20", or "+5": beyond those that are done.
void add_rounds(CLI::App& sub, Train& command) {
  sub.add_option_function<std::string>(
         "--rounds",
         [&command](const std::string& text) {
           const bool more = text.starts_with('+');
           const std::string number = text.substr(more ? 1 : 0);
           if (const std::string wrong = whole_number(more ? 1 : 0, UINT32_MAX)(number); !wrong.empty()) {
             throw CLI::ValidationError("--rounds", wrong + ", or +N: so many more than are done");
           }
           const auto rounds = static_cast<std::uint32_t>(std::stoul(number));
           (more ? command.change.more_rounds : command.run.overrides.max_rounds) = rounds;
         },
         "The run ends after so many; 0: when stopped; +N: after so many more than are done")
      ->type_name("N|+N");
}

}  // namespace

void add_train_command(CLI::App& app, CommandContext& context) {
  auto command = std::make_shared<Train>();
  CLI::App* sub = app.add_subcommand("train", "Train on this machine alone: a hub and an island in one command");
  sub->footer(
      "Examples:\n"
      "  atoll train --data data --dir my-run --rounds 20\n"
      "  atoll train --dir my-run               goes on with it\n"
      "  atoll train --dir my-run --rounds +20  goes on with it once it is finished\n"
      "  atoll train --data data --dir larger --preset 150m --micro-batch 1\n"
      "  atoll train --data data --dir further --from SmolLM2-135M --lr 3e-4\n\n"
      "The same steps as an island's of a larger run, without other islands; Ctrl-C ends it.");
  auto* directory = sub->add_option("--dir", command->directory, "Directory of the run, made if need be")
                        ->required()
                        ->type_name("DIR");
  auto* threads = sub->add_option("--threads", command->threads, "Compute threads (default: all cores)")
                      ->check(whole_number(1, 1024));
  auto* micro_batch = sub->add_option("--micro-batch", command->micro_batch,
                                      "Sequences computed at once; 0, the default: as many as the memory allows")
                          ->check(whole_number(0, 1 << 20));
  auto* device =
      sub->add_option(
             "--device", command->device,
             "What computes: auto (the default: GPUs where there are any on which the model fits, else the processor), "
             "processor or gpu")
          ->type_name("WORD")
          ->check(is_device());
  auto* precision = sub->add_option("--precision", command->precision,
                                    "In which numbers the model is computed: auto (the default), fp32 or bf16")
                        ->type_name("WORD")
                        ->check(is_precision());
  sub->add_option("--data", command->run.data, "Dataset made by 'atoll data prepare'")->type_name("DIR");
  add_run_options(*sub, command->run);
  add_rounds(*sub, *command);
  sub->callback([=, &context] {
    command->change.run = &command->run;
    for (const CLI::Option* option : sub->get_options()) {
      const bool of_run =
          option != directory && option != threads && option != micro_batch && option != device && option != precision;
      if (of_run && option->count() > 0) command->change.options.push_back("--" + option->get_lnames().front());
    }
    context.finish(run(*command, context));
  });
}

}  // namespace atl
