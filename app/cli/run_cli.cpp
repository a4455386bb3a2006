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
#include "app/cli/version_command.h"
#include "app/config/config_keys.h"
#include "net/control/home.h"

namespace atl {
namespace {

constexpr std::size_t kMaxWord = 64;  // of what was given wrongly, in an error

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

constexpr const char* kHubExamples =
    "Examples:\n"
    "  atoll hub init --data data --name first\n"
    "  atoll hub serve                        until Ctrl-C\n"
    "  atoll hub invite --expires 2h          prints what another machine needs to join\n"
    "  atoll hub invites                      those that were made; hub invites revoke ID takes one back\n"
    "  atoll hub status\n"
    "  atoll hub backup hub.tar";

struct NearOption {
  std::string name;                 // empty: none is near
  const CLI::App* owner = nullptr;  // behind whose words it stands
};

// The option of `command`, or of one above it, that is nearest to what was given.
NearOption nearest_option(const CLI::App* command, const std::string& given) {
  NearOption nearest;
  std::size_t least = given.size() / 2;
  for (; command != nullptr; command = command->get_parent()) {
    for (const CLI::Option* option : command->get_options()) {
      for (const std::string& name : option->get_lnames()) {
        const std::size_t letters = edit_distance(given, "--" + name);
        if (letters >= least) continue;
        least = letters;
        nearest = {"--" + name, command};
      }
    }
  }
  return nearest;
}

// The command below `command` that is nearest to what was given; empty: none is near.
std::string nearest_command(const CLI::App* command, const std::string& given) {
  std::string nearest;
  std::size_t least = given.size() / 2 + 1;
  for (const CLI::App* below :
       command->get_subcommands([](const CLI::App* sub) { return !sub->get_group().empty(); })) {
    const std::size_t letters = edit_distance(given, below->get_name());
    if (letters >= least) continue;
    least = letters;
    nearest = below->get_name();
  }
  return nearest;
}

// The innermost command that was named.
const CLI::App* named_command(const CLI::App& app) {
  const CLI::App* command = &app;
  while (!command->get_subcommands().empty()) command = command->get_subcommands().front();
  return command;
}

// Whoever says `atoll`, or `atoll hub`, wants to know what there is.
bool wants_a_command(const CLI::App& command) { return command.get_require_subcommand_min() > 0; }

// "atoll hub serve"
std::string words_of(const CLI::App* command) {
  std::string words = command->get_name();
  while ((command = command->get_parent()) != nullptr) words = command->get_name() + " " + words;
  return words;
}

// A word where a command is wanted.
std::string no_such_command(const CLI::App& app, const std::string& word) {
  const CLI::App* command = named_command(app);
  const std::string nearest = nearest_command(command, word.substr(0, kMaxWord));
  return fmt::format("there is no command '{}'{}; see {} --help", printable(word),
                     nearest.empty() ? "" : fmt::format(" here; did you mean '{}'?", nearest), words_of(command));
}

// What was wrong with the words that were given, and what helps.
std::string usage_error(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App* command = named_command(app);
  const std::vector<std::string> unknown = app.remaining(/*recurse=*/true);
  std::string text = printable(error.what());
  // "A subcommand is required" does not say what is wrong with what is there.
  const bool is_unknown = dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr ||
                          dynamic_cast<const CLI::RequiredError*>(&error) != nullptr;
  if (is_unknown && !unknown.empty()) {
    const std::string given = unknown.front().substr(0, std::min(unknown.front().find('='), kMaxWord));
    const bool is_option = given.starts_with('-') && given.size() > 1;
    text = fmt::format("{} '{}' here", is_option ? "there is no option" : "nothing is expected for", printable(given));
    const NearOption nearest = is_option ? nearest_option(command, given) : NearOption();
    if (!nearest.name.empty() && nearest.name == given) {
      text += fmt::format("; it stands behind its command: {} {}", words_of(nearest.owner), given);
    } else if (!nearest.name.empty()) {
      text += fmt::format("; did you mean '{}'?", nearest.name);
    }
  }
  while (text.ends_with('.')) text.pop_back();
  return fmt::format("{}; see {} --help", text, words_of(command));
}

}  // namespace

void CommandContext::finish(const Status& status) {
  if (status.ok()) return;
  const bool cut_short = status.error().code == ErrorCode::kAborted && interrupt.raised();
  exit_code = cut_short ? kExitInterrupted : exit_code_of(status.error().code);
  if (cut_short && console.output != nullptr && console.output->failed()) return;  // said when the program ends
  console.err << (console.err_is_terminal ? console.styled("atoll:", Style::kBad) : "atoll:") << ' '
              << printable_lines(status.error().message) << std::endl;
}

Result<std::filesystem::path> island_home_or_default(const std::string& given) {
  if (given.empty()) return default_island_home();
  return island_directory(std::filesystem::absolute(given));
}

Result<std::filesystem::path> hub_home_or_default(const std::string& given) {
  if (given.empty()) return default_hub_home();
  return hub_directory(std::filesystem::absolute(given));
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
  hub->footer(kHubExamples);
  add_hub_init_command(*hub, context);
  add_hub_serve_command(*hub, context);
  add_hub_invite_command(*hub, context);
  add_hub_invites_command(*hub, context);
  add_hub_status_command(*hub, context);
  add_hub_admin_commands(*hub, context);
  add_data_command(app, context);
  add_tokenize_command(app, context);
  add_export_command(app, context);
  add_eval_command(app, context);
  add_sample_command(app, context);
  add_merge_command(app, context);
  add_train_command(app, context);
  CLI::App* bench = app.add_subcommand("bench", "Measure this machine and its links: all-reduce, quantise, link");
  bench->require_subcommand(1);
  bench->footer("Examples:\n  atoll bench quantise\n  atoll bench all-reduce\n  atoll bench link --help");
  add_bench_all_reduce_command(*bench, context);
  add_bench_quantise_command(*bench, context);
  add_bench_link_command(*bench, context);
  add_control_command(app, context);
  add_completion_command(app, context);
  add_man_command(app, context);
  add_version_command(app, context);
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::RequiredError& error) {
    const std::vector<std::string> unknown = app.remaining(/*recurse=*/true);
    if (const CLI::App* group = named_command(app); unknown.empty() && wants_a_command(*group)) {
      const CLI::App* above = group->get_parent();
      console.out << group->help(above == nullptr ? "" : words_of(above)) << std::flush;
      context.finish(Error{ErrorCode::kInvalidArgument, words_of(group) + " wants one of the commands above"});
      return kExitUsage;
    }
    if (unknown.empty() || unknown.front().starts_with('-')) {
      context.finish(Error{ErrorCode::kInvalidArgument, usage_error(app, error)});
      return kExitUsage;
    }
    context.finish(Error{ErrorCode::kInvalidArgument, no_such_command(app, unknown.front())});
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error, console.out, console.err), kExitOk;  // the help
    context.finish(Error{ErrorCode::kInvalidArgument, usage_error(app, error)});
    return kExitUsage;
  } catch (const std::exception& exception) {
    context.finish(Error{ErrorCode::kInternal, exception.what()});
  }
  return context.exit_code;
}

}  // namespace atl
