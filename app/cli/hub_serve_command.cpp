// atoll hub serve: the hub in the foreground, with its control socket.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "app/cli/command.h"
#include "app/cli/hub_serve_lines.h"
#include "app/cli/own_address.h"
#include "net/base/log.h"
#include "net/base/mailbox.h"
#include "net/base/printable.h"
#include "net/control/control_server.h"
#include "net/control/home.h"
#include "net/control/hub_state.h"
#include "net/control/methods.h"
#include "net/hub/hub.h"

namespace atl {
namespace {

struct HubServe {
  std::string home, listen = "0.0.0.0:47000";
  std::vector<std::string> advertise, trusted_proxies;
  bool log = false;
};

struct HubEvent {
  std::string name;
  nlohmann::json data;
};

// The hub's methods on the control socket.
class HubControl final : public ControlService {
 public:
  HubControl(HubServer& server, AbortSignal& stop) : server_(server), stop_(stop) {}

  Result<nlohmann::json> call(std::string_view name, const nlohmann::json& json) override {
    if (name == method::StateGet::kName) return server_.state().to_json();
    if (name == method::Stop::kName) {
      stop_.raise("asked to stop");
      return encode_message(method::Stopping{});
    }
    if (name == method::IslandSendAway::kName) {
      ATOLL_ASSIGN_OR_RETURN(const auto params, decode_message<method::IslandSendAway>(json));
      server_.send_away(params.island);
      return nlohmann::json::object();
    }
    if (name == method::RunRollback::kName) {
      ATOLL_ASSIGN_OR_RETURN(const auto params, decode_message<method::RunRollback>(json));
      const std::string reason = params.reason.empty() ? "by its operator" : params.reason;
      ATOLL_RETURN_IF_ERROR(server_.roll_back(OuterStep{params.to}, reason, params.force));
      return encode_message(method::RolledBackTo{params.to});
    }
    if (name == method::RunDecay::kName) return decide_decay(json);
    if (name == method::RunDecayCancel::kName) {
      ATOLL_RETURN_IF_ERROR(server_.cancel_decay());
      return nlohmann::json::object();
    }
    if (name == method::RunMixture::kName) {
      ATOLL_ASSIGN_OR_RETURN(const auto params, decode_message<method::RunMixture>(json));
      ATOLL_ASSIGN_OR_RETURN(const MixtureWish decided, server_.decide_mixture({params.from_round, params.weights}));
      return encode_message(method::MixtureDecided{decided.from_round.value_or(0), decided.weights});
    }
    if (name == method::RunMixtureCancel::kName) {
      ATOLL_RETURN_IF_ERROR(server_.cancel_mixture());
      return nlohmann::json::object();
    }
    return Error{ErrorCode::kNotFound, fmt::format("no method '{}' here", name)};
  }

 private:
  Result<nlohmann::json> decide_decay(const nlohmann::json& json) {
    ATOLL_ASSIGN_OR_RETURN(const auto params, decode_message<method::RunDecay>(json));
    const auto shape = parse_decay_shape(params.shape.empty() ? kDecayShapes[0] : params.shape);
    if (!shape) {
      return Error{ErrorCode::kInvalidArgument, fmt::format("a decay has no shape '{}': it is one of {}", params.shape,
                                                            fmt::join(kDecayShapes, ", "))};
    }
    ATOLL_ASSIGN_OR_RETURN(const DecidedDecay decided, server_.decide_decay({params.from_round, params.rounds,
                                                                             params.final_learning_rate, *shape}));
    return encode_message(method::DecayDecided{decided.from_round, decided.rounds, decided.final_learning_rate,
                                               std::string(decay_shape_name(decided.shape))});
  }

  HubServer& server_;
  AbortSignal& stop_;
};

Result<NetworkRange> parse_proxy(const std::string& text) {
  const auto range = NetworkRange::parse(text);
  if (range) return *range;
  return Error{
      ErrorCode::kInvalidArgument,
      fmt::format("--trusted-proxy '{}' is no address and no network that is somebody's: write one as 10.0.0.5, "
                  "10.0.0.0/24 or fd00::5",
                  printable(text, 64))};
}

bool is_unspecified(const std::string& host) { return host == "0.0.0.0" || host == "::"; }

Result<HubServeOptions> parse(const HubServe& command, Console& console) {
  HubServeOptions options;
  ATOLL_ASSIGN_OR_RETURN(options.directory, hub_home_or_default(command.home));
  ATOLL_ASSIGN_OR_RETURN(options.listen, parse_address(command.listen));
  for (const std::string& address : command.advertise) {
    ATOLL_ASSIGN_OR_RETURN(options.advertised.emplace_back(), parse_address(address));
  }
  for (const std::string& proxy : command.trusted_proxies) {
    ATOLL_ASSIGN_OR_RETURN(options.trusted_proxies.emplace_back(), parse_proxy(proxy));
  }
  if (!options.advertised.empty() || !is_unspecified(options.listen.host)) return options;
  // An invite that says 0.0.0.0 would send each island to itself.
  const auto own = own_address();
  if (!own) {
    return Error{ErrorCode::kInvalidArgument,
                 "this machine has no network address that islands could dial; say one with --advertise HOST:PORT, or "
                 "serve this machine alone with --listen 127.0.0.1:47000"};
  }
  options.advertised.push_back({*own, options.listen.port});
  console.out << fmt::format(
      "invites will carry {}, this machine's own address; set another with --advertise "
      "HOST:PORT\n",
      *own);
  return options;
}

Status run(const HubServe& command, CommandContext& context) {
  UnhurriedConsole unhurried(context.console);
  Console& console = unhurried.console();
  ATOLL_ASSIGN_OR_RETURN(const HubServeOptions options, parse(command, console));
  // Who looks at a terminal reads lines; a log is for programs.
  const bool for_people = context.console.out_is_terminal && !command.log;
  if (for_people) spdlog::set_level(spdlog::level::warn);
  log_without_waiting(context.console.loss_listener());  // the whole run would wait for a terminal that was stopped
  HubServeLines lines;
  Mailbox<HubEvent> events(1024);
  ATOLL_ASSIGN_OR_RETURN(auto server,
                         HubServer::start(options, [&events](std::string_view event, const nlohmann::json& data) {
                           // A full mailbox loses an event, never the hub's time.
                           if (!events.push({std::string(event), data})) return;
                         }));
  AbortSignal stop;
  HubControl service(*server, stop);
  ATOLL_ASSIGN_OR_RETURN(auto control,
                         ControlServer::start(HubHome{options.directory}.control_socket(), "atoll hub", service));
  const HubState state = server->state();
  console.out << fmt::format("hub of run {} ({}) serves on port {}; islands reach it at {}\n", printable(state.name),
                             state.run_id, server->port(), fmt::join(state.addresses, ", "))
              << "Ctrl-C stops it; islands wait and come back when it serves again" << std::endl;
  while (!context.interrupt.raised() && !stop.raised()) {
    ATOLL_RETURN_IF_ERROR(server->health());
    const auto event = events.pop(Deadline::after(std::chrono::milliseconds(100)));
    if (!event) continue;
    control->publish(event->name, event->data);  // the hub has logged it
    const std::string line = for_people ? lines.line_of(event->name, event->data) : std::string();
    if (!line.empty()) console.out << line << std::endl;
  }
  console.out << "stopping ..." << std::endl;
  control.reset();
  server.reset();
  console.out << "hub stopped" << std::endl;
  return ok_status();
}

}  // namespace

void add_hub_serve_command(CLI::App& hub, CommandContext& context) {
  auto command = std::make_shared<HubServe>();
  CLI::App* sub = hub.add_subcommand("serve", "Serve the run until Ctrl-C");
  sub->footer(
      "Examples:\n"
      "  atoll hub serve\n"
      "  atoll hub serve --listen 0.0.0.0:47000 --advertise hub.example.org:47000\n\n"
      "Ended by Ctrl-C, it is a success: 0. Listening on all addresses without --advertise, invites carry this\n"
      "machine's own address.");
  sub->add_option("--home", command->home, "Hub's home (default: ~/.local/share/atoll-hub)")->type_name("DIR");
  sub->add_option("--listen", command->listen, "Address and port; port 0: any free one")->capture_default_str();
  sub->add_option("--advertise", command->advertise,
                  "HOST:PORT that islands dial, if it is another; several are tried in turn");
  sub->add_option("--trusted-proxy", command->trusted_proxies,
                  "Address, or network as 10.0.0.0/24, of a TCP proxy before this hub that says in the PROXY protocol "
                  "where each connection comes from; each connection from there has to say so")
      ->type_name("ADDRESS");
  sub->add_flag("--log", command->log,
                "At a terminal, too, what is printed elsewhere: a line an event for programs, with its data as JSON");
  sub->callback([command, &context] { context.finish(run(*command, context)); });
}

}  // namespace atl
