// atoll check: what this machine can do for a run, row by row as it is measured, each with what to do about it.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "app/cli/check_this_node.h"
#include "app/cli/command.h"
#include "net/base/file.h"
#include "net/control/home.h"
#include "net/wire/invite.h"

namespace atl {
namespace {

struct Check {
  std::string home, invite_file;
  bool quick = false, full = false, json = false, strict = false;
};

Status run(const Check& command, CommandContext& context) {
  ATOLL_ASSIGN_OR_RETURN(const AgentHome home, find_agent_home(command.home));
  CheckRequest request{home};
  request.full = !command.quick;
  if (!command.invite_file.empty()) {
    ATOLL_ASSIGN_OR_RETURN(const std::string text, read_file(command.invite_file, kMaxInviteText));
    const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
    ATOLL_ASSIGN_OR_RETURN(request.invite, decode_invite(text, now));
  }
  ATOLL_ASSIGN_OR_RETURN(const CheckReport report,
                         check_this_node(request, context.interrupt, [&](const CheckRow& row) {
                           if (!command.json) print_row(row, context.console);
                         }));
  if (command.json) {
    context.console.out << report.to_json().dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << std::endl;
  }
  const std::size_t failed = report.count(Verdict::kFail), warned = report.count(Verdict::kWarn);
  if (failed > 0) context.exit_code = kExitCheckFailed;
  if (failed == 0 && warned > 0 && command.strict) context.exit_code = kExitCheckWarnings;
  if (!command.json) print_summary(report, context.exit_code, context.console);
  return ok_status();
}

}  // namespace

void add_check_command(CLI::App& app, CommandContext& context) {
  auto command = std::make_shared<Check>();
  CLI::App* sub = app.add_subcommand("check", "What this machine can do, measured, with what to do about it");
  sub->footer(
      "Examples:\n"
      "  atoll check --quick          seconds; what 'atoll join' looks at first\n"
      "  atoll check                  also measures GPUs and links, a minute or two\n"
      "  atoll check --invite-file F   before joining: for the run of this invite\n"
      "  atoll check --json | jq '.rows[] | select(.verdict == \"fail\")'\n\n"
      "A joined machine is checked for its run; before that, what depends on a run is skipped, or with its invite "
      "what\n"
      "only members may measure.\n"
      "Exit codes: 6 when a row fails, 7 when one warns and --strict is given.");
  sub->add_option("--home", command->home, "Island's home (default: this user's island)")->type_name("DIR");
  sub->add_option("--invite-file", command->invite_file,
                  "Check for the run of an invite, and knock at its hub, without using it")
      ->type_name("FILE");
  auto* quick = sub->add_flag("--quick", command->quick, "Only what takes seconds");
  sub->add_flag("--full", command->full, "Everything (the default)")->excludes(quick);
  sub->add_flag("--json", command->json, "Print JSON");
  sub->add_flag("--strict", command->strict, "Warnings are a failure too: exit code 7");
  sub->callback([command, &context] { context.finish(run(*command, context)); });
}

}  // namespace atl
