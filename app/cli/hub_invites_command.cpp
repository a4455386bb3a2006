// atoll hub invites: the invites that were made, and taking one back.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "app/agent/files/log_reader.h"
#include "app/cli/command.h"
#include "app/cli/text.h"
#include "net/base/unix_time.h"
#include "net/hub/hub.h"

namespace atl {
namespace {

struct HubInvites {
  std::string home, id;
  bool json = false;
};

std::string_view state_of(const GivenInvite& invite) {
  if (invite.revoked) return "revoked";
  if (invite.expires_at <= unix_seconds_now()) return "expired";
  return invite.uses_left == 0 ? "used" : "open";
}

Status list(const HubInvites& command, CommandContext& context) {
  ATOLL_ASSIGN_OR_RETURN(const auto directory, hub_home_or_default(command.home));
  ATOLL_ASSIGN_OR_RETURN(const std::vector<GivenInvite> invites, given_invites(directory));
  Console& console = context.console;
  if (command.json) {
    nlohmann::json entries = nlohmann::json::array();
    for (const GivenInvite& invite : invites) {
      entries.push_back({{"id", invite.id},
                         {"state", state_of(invite)},
                         {"uses_left", invite.uses_left},
                         {"expires_unix_seconds", invite.expires_at}});
    }
    console.out << nlohmann::json{{"invites", std::move(entries)}}.dump() << std::endl;
    return ok_status();
  }
  if (invites.empty()) console.out << "no invite was made yet; make one with: atoll hub invite\n";
  if (!invites.empty()) {
    console.out << fmt::format("{} {} {} {}\n", fit("invite", 24), fit("state", 8), fit_right("uses left", 9),
                               "good until");
  }
  for (const GivenInvite& invite : invites) {
    console.out << fmt::format("{} {} {} {}\n", fit(printable(invite.id), 24), fit(state_of(invite), 8),
                               fit_right(std::to_string(invite.uses_left), 9),
                               invite.revoked ? "-" : log_time(invite.expires_at));
  }
  console.out << std::flush;
  return ok_status();
}

Status revoke(const HubInvites& command, CommandContext& context) {
  ATOLL_ASSIGN_OR_RETURN(const auto directory, hub_home_or_default(command.home));
  ATOLL_RETURN_IF_ERROR(revoke_invite(directory, command.id));
  if (command.json) {
    context.console.out << nlohmann::json{{"id", command.id}, {"state", "revoked"}}.dump() << std::endl;
    return ok_status();
  }
  context.console.out << fmt::format(
                             "invite {} is taken back: nobody joins with it any more. Islands that did stay; to send "
                             "one away: atoll hub remove",
                             printable(command.id))
                      << std::endl;
  return ok_status();
}

CLI::App* add_options(CLI::App* sub, const std::shared_ptr<HubInvites>& command) {
  sub->add_option("--home", command->home, "Hub's home (default: ~/.local/share/atoll-hub)")->type_name("DIR");
  sub->add_flag("--json", command->json, "Print JSON");
  return sub;
}

}  // namespace

void add_hub_invites_command(CLI::App& hub, CommandContext& context) {
  auto command = std::make_shared<HubInvites>();
  CLI::App* sub = add_options(hub.add_subcommand("invites", "The invites that were made: list, revoke"), command);
  sub->footer(
      "Examples:\n  atoll hub invites\n  atoll hub invites revoke ID\n\n"
      "Their secrets are not kept, so that an invite cannot be shown again.");
  sub->require_subcommand(0, 1);
  CLI::App* back =
      add_options(sub->add_subcommand("revoke", "Take an invite back; works while the hub serves"), command);
  back->footer("Example:\n  atoll hub invites revoke ID");
  back->add_option("ID", command->id, "Its id, as 'atoll hub invite' and 'atoll hub invites' say it")
      ->type_name("ID")
      ->required();
  sub->callback([sub, command, &context] {
    context.finish(sub->get_subcommands().empty() ? list(*command, context) : revoke(*command, context));
  });
}

}  // namespace atl
