// atoll hub invite: prints what one more island needs to join.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "app/cli/command.h"
#include "app/cli/validators.h"
#include "app/config/quantity.h"
#include "net/base/file.h"
#include "net/hub/hub.h"

namespace atl {
namespace {

struct HubInvite {
  std::string home, expires = "24h", output;
  std::uint32_t uses = 1;
  std::vector<std::string> addresses;
  bool json = false;
};

nlohmann::json to_json(const HubInvite& command, const InviteReport& invite,
                       const std::vector<std::string>& addresses) {
  const bool shown = command.output.empty();
  return {{"id", invite.id},
          {"invite", shown ? nlohmann::json(invite.text) : nlohmann::json()},
          {"file", shown ? nlohmann::json() : nlohmann::json(command.output)},
          {"uses", command.uses},
          {"expires_unix_seconds", invite.expires_at},
          {"hub_addresses", addresses}};
}

Status run(const HubInvite& command, CommandContext& context) {
  ATOLL_ASSIGN_OR_RETURN(const auto directory, hub_home_or_default(command.home));
  InviteOptions options;
  options.uses = command.uses;
  options.valid_for = duration_of(command.expires);
  for (const std::string& address : command.addresses) {
    ATOLL_ASSIGN_OR_RETURN(options.addresses.emplace_back(), parse_address(address));
  }
  ATOLL_ASSIGN_OR_RETURN(const InviteReport invite, create_invite(directory, options));
  if (!command.output.empty()) {
    ATOLL_RETURN_IF_ERROR(write_file_atomically(command.output, invite.text + "\n", FileMode::kPrivate));
  }
  std::vector<std::string> addresses;
  for (const Address& address : invite.addresses) addresses.push_back(to_string(address));
  if (command.json) {
    context.console.out << to_json(command, invite, addresses).dump() << std::endl;
    return ok_status();
  }
  // What explains goes to stderr, so that `atoll hub invite > invite.txt` holds the invite alone.
  if (command.output.empty()) context.console.out << invite.text << std::endl;
  context.console.err << fmt::format(
                             "invite {}{}: {}, for {}, hub at {}. It is a secret: hand it over as one.\n"
                             "On the other machine: atoll join {}\n",
                             invite.id, command.output.empty() ? "" : " is in " + command.output,
                             command.uses == 1 ? "one island" : fmt::format("{} islands", command.uses),
                             command.expires, fmt::join(addresses, ", "),
                             command.output.empty() ? "--invite-stdin" : "--invite-file FILE")
                      << std::flush;
  return ok_status();
}

}  // namespace

void add_hub_invite_command(CLI::App& hub, CommandContext& context) {
  auto command = std::make_shared<HubInvite>();
  CLI::App* sub = hub.add_subcommand("invite", "Make an invite; works while the hub serves and when it does not");
  sub->footer(
      "Examples:\n  atoll hub invite --expires 2h\n  atoll hub invite --uses 8 --output invite.txt\n  atoll hub invite "
      "--json");
  sub->add_option("--home", command->home, "Hub's home (default: ~/.local/share/atoll-hub)")->type_name("DIR");
  sub->add_option("--uses", command->uses, "How many islands may join with it")
      ->check(whole_number(1, 10'000))
      ->capture_default_str();
  sub->add_option("--expires", command->expires, "How long it is good: 30m, 24h, 7d")
      ->check(is_duration())
      ->capture_default_str();
  sub->add_option("--address", command->addresses,
                  "HOST:PORT where islands reach the hub (default: where it last served)");
  sub->add_option("-o,--output", command->output, "Write it to a file (0600) instead")->type_name("FILE");
  sub->add_flag("--json", command->json, "Print JSON");
  sub->callback([command, &context] { context.finish(run(*command, context)); });
}

}  // namespace atl
