#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "app/cli/bench/bench_commands.h"
#include "app/cli/command.h"
#include "app/cli/hub_admin/hub_admin_commands.h"
#include "app/cli/island/island_commands.h"
#include "app/cli/remote/remote_command.h"
#include "app/cli/service/service_command.h"
#include "app/cli/shell/shell_commands.h"
#include "app/cli/text.h"
#include "net/control/home.h"

namespace atl {
namespace {

constexpr const char* kExamples =
    "Examples:\n"
    "  atoll demo                             three islands train a small model on this machine\n"
    "  atoll data prepare book.txt --output data\n"
    "  atoll hub init --data data --name first && atoll hub serve\n"
    "  atoll hub invite                       prints what another machine needs to join\n"
    "  atoll join --invite-file invite.txt    trains with the others until Ctrl-C\n"
    "  atoll check --quick                    what this machine can do for a run\n"
    "  atoll status\n"
    "\n"
    "Exit codes: 0 ok; 1 other; 2 usage; 3 not running; 4 not joined; 5 denied; 6 check failed;\n"
    "7 check warned, with --strict; 8 invite expired, used or unknown; 9 the hub is not the invite's; 10 hub "
    "unreachable; 11 version unsupported; 12 timeout;\n"
    "13 trainer failed; 130 cut short by Ctrl-C. 'join' and 'hub serve' run until Ctrl-C: ended so, they are 0.";

}  // namespace

void CommandContext::finish(const Status& status) {
  if (status.ok()) return;
  const bool cut_short = status.error().code == ErrorCode::kAborted && interrupt.raised();
  exit_code = cut_short ? kExitInterrupted : exit_code_of(status.error().code);
  console.err << (console.err_is_terminal ? console.styled("atoll:", Style::kBad) : "atoll:") << ' '
              << printable_lines(status.error().message) << std::endl;
}

Result<std::filesystem::path> island_home_or_default(const std::string& given) {
  if (given.empty()) return default_island_home();
  return std::filesystem::absolute(given);
}

Result<std::filesystem::path> hub_home_or_default(const std::string& given) {
  if (given.empty()) return default_hub_home();
  return std::filesystem::absolute(given);
}

int run_cli(const std::vector<std::string>& given, Console& console, const AbortSignal& interrupt,
            const AbortSignal* hurry) {
  std::vector<std::string> arguments = given;
  if (const auto host = take_host(arguments)) return run_remotely(*host, std::move(arguments), console, interrupt);
  CommandContext context{console, interrupt, hurry};
  CLI::App app("Atoll trains one language model on many machines that nobody owns together.", "atoll");
  app.set_version_flag("--version", "atoll " ATOLL_VERSION);
  app.add_option("--host", "Run the command on another machine, by ssh: --host ssh://user@node COMMAND")
      ->type_name("URL");
  app.require_subcommand(1);
  app.footer(kExamples);
  add_demo_command(app, context);
  add_join_command(app, context);
  add_agent_command(app, context);
  add_check_command(app, context);
  add_status_command(app, context);
  add_life_commands(app, context);
  add_peers_command(app, context);
  add_rounds_command(app, context);
  add_checkpoints_command(app, context);
  add_logs_command(app, context);
  add_diag_command(app, context);
  add_config_command(app, context);
  add_service_command(app, context);
  CLI::App* hub = app.add_subcommand("hub", "Coordinate a run: init, serve, invite, status, islands, ...");
  hub->require_subcommand(1);
  add_hub_init_command(*hub, context);
  add_hub_serve_command(*hub, context);
  add_hub_invite_command(*hub, context);
  add_hub_status_command(*hub, context);
  add_hub_admin_commands(*hub, context);
  add_data_command(app, context);
  add_export_command(app, context);
  add_eval_command(app, context);
  add_sample_command(app, context);
  add_train_command(app, context);
  CLI::App* bench = app.add_subcommand("bench", "Measure this machine and its links: all-reduce, quantise, link");
  bench->require_subcommand(1);
  add_bench_all_reduce_command(*bench, context);
  add_bench_quantise_command(*bench, context);
  add_bench_link_command(*bench, context);
  add_control_command(app, context);
  add_completion_command(app, context);
  add_man_command(app, context);
  app.add_subcommand("version", "Print the version")->footer("Example:\n  atoll version")->callback([&] {
    console.out << "atoll " ATOLL_VERSION << std::endl;
  });
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::RequiredError& error) {
    // "A subcommand is required" does not say that the word which is there is none.
    const std::vector<std::string> unknown = app.remaining(/*recurse=*/true);
    if (unknown.empty() || unknown.front().starts_with('-'))
      return app.exit(error, console.out, console.err), kExitUsage;
    context.finish(Error{ErrorCode::kInvalidArgument,
                         fmt::format("there is no command '{}'; see atoll --help, or atoll COMMAND --help",
                                     printable(unknown.front()))});
  } catch (const CLI::ParseError& error) {
    return app.exit(error, console.out, console.err) == 0 ? kExitOk : kExitUsage;
  } catch (const std::exception& exception) {
    context.finish(Error{ErrorCode::kInternal, exception.what()});
  }
  return context.exit_code;
}

}  // namespace atl
