// atoll diag: the diagnostics bundle, with what is in it shown first.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <nlohmann/json.hpp>

#include "app/agent/agent_config.h"
#include "app/agent/files/diag_bundle.h"
#include "app/agent/files/log_reader.h"
#include "app/cli/agent_client.h"
#include "app/cli/island/island_commands.h"
#include "app/cli/text.h"
#include "net/base/unix_time.h"
#include "net/control/methods.h"

namespace atl {
namespace {

struct Diag {
  std::string home, output;
  bool list = false, json = false;
};

nlohmann::json state_of(const AgentHome& home) {
  const auto client = connect_island(home);
  if (!client.ok()) return nullptr;
  const auto state = (*client)->call(method::StateGet::kName, nlohmann::json::object(), answer_deadline());
  return state.ok() ? *state : nlohmann::json();
}

std::string default_name() {
  std::string name = fmt::format("atoll-diag-{}.tar", log_time(unix_seconds_now()));
  std::replace(name.begin(), name.end(), ':', '-');
  return name;
}

Status run(const Diag& command, CommandContext& context) {
  ATOLL_ASSIGN_OR_RETURN(const AgentHome home, home_of_agent(command.home));
  const ConfigSources config = config_sources(home);
  const auto entries = collect_diagnostics(home, config, state_of(home));
  const std::filesystem::path file =
      command.list ? "" : std::filesystem::absolute(command.output.empty() ? default_name() : command.output);
  Console& console = context.console;
  if (!command.json) {
    for (const DiagEntry& entry : entries) {
      console.out << fmt::format("  {} {}\n", fit_right(format_bytes(static_cast<double>(entry.content.size())), 8),
                                 entry.name);
    }
  }
  if (!command.list) ATOLL_RETURN_IF_ERROR(write_diagnostics(file, entries));
  if (command.json) {
    console.out << diagnostics_json(file, entries).dump() << std::endl;
  } else if (command.list) {
    console.out << "nothing was written: leave out --list to make the bundle" << std::endl;
  } else {
    console.out << fmt::format(
                       "written to {}; keys, invites and passwords are not in it. Look before you send it: tar -xOf {}",
                       file.string(), file.filename().string())
                << std::endl;
  }
  return ok_status();
}

}  // namespace

void add_diag_command(CLI::App& app, CommandContext& context) {
  auto command = std::make_shared<Diag>();
  CLI::App* sub = app.add_subcommand("diag", "A bundle for whoever helps you: state, logs, configuration; no secrets");
  sub->footer("Examples:\n  atoll diag --list\n  atoll diag -o trouble.tar");
  add_home_option(*sub, command->home);
  sub->add_option("-o,--output", command->output, "File to make (default: atoll-diag-TIME.tar here)")
      ->type_name("FILE");
  sub->add_flag("--list", command->list, "Show what would be in it, and write nothing");
  sub->add_flag("--json", command->json, "Print JSON");
  sub->callback([command, &context] { context.finish(run(*command, context)); });
}

}  // namespace atl
