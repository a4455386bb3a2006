#include "app/cli/hub_admin/hub_admin_commands.h"
#include "app/cli/agent_client.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "app/agent/files/log_reader.h"
#include "app/cli/hub_admin/hub_backup.h"
#include "app/cli/text.h"
#include "app/cli/validators.h"
#include "net/control/control_client.h"
#include "net/control/home.h"
#include "net/control/hub_state.h"
#include "net/control/methods.h"
#include "net/hub/hub.h"
#include "net/hub/hub_home.h"

namespace atl {
namespace {

struct HubAdmin {
  std::string home, argument;
  bool json = false;
};

std::string dumped(const nlohmann::json& json, int indent = -1) {
  return json.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace);
}

// Asked of the hub when it serves; empty when it does not.
Result<std::optional<nlohmann::json>> ask_hub(const HubHome& home, std::string_view method,
                                              const nlohmann::json& params) {
  const auto client = ControlClient::connect(home.control_socket(), answer_deadline());
  if (!client.ok()) {
    if (client.error().code == ErrorCode::kNotRunning) return std::optional<nlohmann::json>();
    return client.error();
  }
  ATOLL_ASSIGN_OR_RETURN(nlohmann::json answer, (*client)->call(method, params, answer_deadline()));
  return std::optional(std::move(answer));
}

Status islands(const HubAdmin& command, CommandContext& context) {
  ATOLL_ASSIGN_OR_RETURN(const auto directory, hub_home_or_default(command.home));
  ATOLL_ASSIGN_OR_RETURN(const auto enrolled, enrolled_islands(directory));
  ATOLL_ASSIGN_OR_RETURN(const auto live,
                         ask_hub(HubHome{directory}, method::StateGet::kName, nlohmann::json::object()));
  std::map<std::string, HubIslandState> states;
  if (live) {
    ATOLL_ASSIGN_OR_RETURN(const HubState state, HubState::from_json(*live));
    for (const HubState::Island& island : state.islands) states[island.id] = island.state;
  }
  nlohmann::json list = nlohmann::json::array();
  Console& console = context.console;
  if (!command.json) {
    console.out << fmt::format("{} {} {} {}\n", fit("island", 20), fit("name", 20), fit("state", 12), "enrolled");
  }
  for (const EnrolledIslandReport& island : enrolled) {
    const auto found = states.find(island.id);
    const std::string_view state = word_of(island.removed          ? HubIslandState::kRemoved
                                           : found != states.end() ? found->second
                                           : live                  ? HubIslandState::kAway
                                                                   : HubIslandState::kUnknown);
    list.push_back({{"island", island.id},
                    {"name", printable(island.name)},
                    {"state", state},
                    {"enrolled_at", island.enrolled_at}});
    if (command.json) continue;
    console.out << fmt::format("{} {} {} {}\n", fit(island.id, 20), fit(printable(island.name), 20), fit(state, 12),
                               log_time(island.enrolled_at));
  }
  if (command.json) console.out << dumped({{"serving", live.has_value()}, {"islands", list}}) << '\n';
  console.out << std::flush;
  return ok_status();
}

Status remove(const HubAdmin& command, CommandContext& context) {
  ATOLL_ASSIGN_OR_RETURN(const auto directory, hub_home_or_default(command.home));
  ATOLL_RETURN_IF_ERROR(remove_enrolled_island(directory, command.argument));
  ATOLL_ASSIGN_OR_RETURN(const auto told, ask_hub(HubHome{directory}, method::IslandSendAway::kName,
                                                  encode_message(method::IslandSendAway{command.argument})));
  context.console.out << fmt::format("island {} is no member any more{}; its certificate is refused from now on",
                                     command.argument, told ? ", its connections are closed" : "")
                      << std::endl;
  return ok_status();
}

Status config(const HubAdmin& command, CommandContext& context) {
  ATOLL_ASSIGN_OR_RETURN(const auto directory, hub_home_or_default(command.home));
  ATOLL_ASSIGN_OR_RETURN(const RunConfig run, load_run(HubHome{directory}));
  context.console.out << dumped(run.to_json(), command.json ? -1 : 2) << std::endl;
  return ok_status();
}

Status data(const HubAdmin& command, CommandContext& context) {
  ATOLL_ASSIGN_OR_RETURN(const auto directory, hub_home_or_default(command.home));
  const HubHome home{directory};
  ATOLL_ASSIGN_OR_RETURN(const RunConfig run, load_run(home));
  if (!command.argument.empty()) {
    ATOLL_RETURN_IF_ERROR(move_dataset(directory, command.argument));
  }
  ATOLL_ASSIGN_OR_RETURN(const auto dataset, load_dataset_directory(home));
  if (command.json) {
    context.console.out << dumped({{"run", run.name}, {"directory", dataset.string()}}) << std::endl;
  } else {
    context.console.out << dataset.string() << std::endl;
  }
  if (!command.argument.empty())
    context.console.err << "a hub that serves now reads it there once it is started again" << std::endl;
  return ok_status();
}

void tell(const HubBackupReport& report, const std::filesystem::path& path, bool json, const char* what,
          CommandContext& context) {
  if (json) {
    context.console.out << dumped({{"run_id", report.run_id},
                                   {"run", report.run_name},
                                   {"rounds", report.rounds},
                                   {"bytes", report.bytes},
                                   {"path", path.string()}})
                        << std::endl;
    return;
  }
  context.console.out << fmt::format("{} run {} ({}), {} committed, {}\n", what, report.run_name, path.string(),
                                     format_number_of(report.rounds, "round"),
                                     format_bytes(static_cast<double>(report.bytes)))
                      << std::flush;
}

Status backup(const HubAdmin& command, CommandContext& context) {
  ATOLL_ASSIGN_OR_RETURN(const auto directory, hub_home_or_default(command.home));
  ATOLL_ASSIGN_OR_RETURN(const HubBackupReport report, back_up_hub(directory, command.argument));
  tell(report, std::filesystem::absolute(command.argument), command.json, "backed up", context);
  context.console.err << "the file holds the run's keys: who has it can let anybody in. The dataset is not in it."
                      << std::endl;
  return ok_status();
}

Status restore(const HubAdmin& command, CommandContext& context) {
  ATOLL_ASSIGN_OR_RETURN(const auto directory, hub_home_or_default(command.home));
  ATOLL_ASSIGN_OR_RETURN(const HubBackupReport report, restore_hub(command.argument, directory));
  tell(report, directory, command.json, "restored", context);
  context.console.err << "if the dataset is elsewhere now: atoll hub data DIR. Islands tell it what it missed; of "
                         "two hubs the one that was started last goes on, and the other one stops."
                      << std::endl;
  return ok_status();
}

struct Rollback {
  std::string home, reason = "by its operator";
  std::uint32_t to = 0;
  bool json = false;
};

Status roll_back(const Rollback& command, CommandContext& context) {
  ATOLL_ASSIGN_OR_RETURN(const auto directory, hub_home_or_default(command.home));
  ATOLL_RETURN_IF_ERROR(load_run(HubHome{directory}));
  ATOLL_ASSIGN_OR_RETURN(const auto done, ask_hub(HubHome{directory}, method::RunRollback::kName,
                                                  encode_message(method::RunRollback{command.to, command.reason})));
  if (!done) {
    return Error{
        ErrorCode::kNotRunning,
        fmt::format("the hub in {} does not serve, and its islands are to hear of this; start it with: atoll hub "
                    "serve",
                    directory.string())};
  }
  if (command.json) {
    context.console.out << dumped(*done) << std::endl;
  } else {
    context.console.out << fmt::format(
                               "the run goes on from outer step {}; what was committed after it is kept aside, and "
                               "its data is trained again",
                               command.to)
                        << std::endl;
  }
  return ok_status();
}

void add_rollback(CLI::App& hub, CommandContext& context) {
  auto command = std::make_shared<Rollback>();
  CLI::App* sub = hub.add_subcommand("rollback", "Go back to an earlier outer state of the run");
  sub->footer(
      "Example:\n  atoll hub rollback --to 46\n\n"
      "For a run that stands still because nobody holds its newest state, or because that is spoiled; `atoll hub\n"
      "status` says so, and names the state to go back to. It is recorded, with the reason, for good.");
  sub->add_option("--home", command->home, "Hub's home (default: ~/.local/share/atoll-hub)")->type_name("DIR");
  sub->add_option("--to", command->to, "Outer step: so many rounds stay committed")
      ->required()
      ->check(whole_number(0, UINT32_MAX));
  sub->add_option("--reason", command->reason, "Kept in the hub's records")->type_name("TEXT");
  sub->add_flag("--json", command->json, "Print JSON");
  sub->callback([command, &context] { context.finish(roll_back(*command, context)); });
}

using Action = Status (*)(const HubAdmin&, CommandContext&);

CLI::App* add_action(CLI::App& hub, CommandContext& context, const char* name, const char* what, const char* examples,
                     const char* argument, Action action, bool required) {
  auto command = std::make_shared<HubAdmin>();
  CLI::App* sub = hub.add_subcommand(name, what);
  sub->footer(fmt::format("Examples:\n{}", examples));
  sub->add_option("--home", command->home, "Hub's home (default: ~/.local/share/atoll-hub)")->type_name("DIR");
  sub->add_flag("--json", command->json, "Print JSON");
  if (argument != nullptr) {
    auto* option = sub->add_option(argument, command->argument, argument[0] == 'I' ? "Its id, isl-..." : "Where")
                       ->type_name(argument);
    if (required) option->required();
  }
  sub->callback([command, action, &context] { context.finish(action(*command, context)); });
  return sub;
}

}  // namespace

void add_hub_admin_commands(CLI::App& hub, CommandContext& context) {
  add_action(hub, context, "islands", "The islands that ever enrolled", "  atoll hub islands --json", nullptr, islands,
             false);
  add_action(hub, context, "remove", "Take an island's membership away, at once",
             "  atoll hub remove isl-0123456789abcdef", "ISLAND", remove, true);
  add_action(hub, context, "config", "The run's configuration, on which its islands have agreed", "  atoll hub config",
             nullptr, config, false);
  add_action(hub, context, "data", "Where the hub reads its dataset; with DIR: where it was moved to",
             "  atoll hub data\n  atoll hub data /srv/data", "DIR", data, false);
  add_action(hub, context, "backup", "All of the hub in one file; works while it serves", "  atoll hub backup hub.tar",
             "FILE", backup, true);
  add_action(hub, context, "restore", "A hub made of a backup", "  atoll hub restore hub.tar --home DIR", "FILE",
             restore, true);
  add_rollback(hub, context);
}

}  // namespace atl
