// atoll bench link: what the link to another machine carries.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "app/cli/bench/bench_commands.h"
#include "app/cli/bench/link_bench.h"

namespace atl {
namespace {

constexpr std::chrono::minutes kListenFor{10};

struct LinkCommand {
  std::string peer;
  bool listen = false;
  std::string bind = "0.0.0.0";
  std::uint16_t port = 47'001;
  double seconds = 5;
  bool json = false;
};

nlohmann::json as_json(const LinkBenchResult& result) {
  nlohmann::json transfers = nlohmann::json::array();
  for (const LinkTransfer& transfer : result.transfers) {
    transfers.push_back({{"tls", transfer.tls},
                         {"direction", transfer.from_here ? "out" : "in"},
                         {"bytes_per_second", transfer.bytes_per_second()},
                         {"bytes", transfer.received.bytes},
                         {"seconds", static_cast<double>(transfer.received.nanoseconds) * 1e-9},
                         {"rtt_seconds", transfer.sent.rtt_us * 1e-6},
                         {"least_rtt_seconds", transfer.sent.least_rtt_us * 1e-6},
                         {"retransmitted_segments", transfer.sent.retransmitted},
                         {"segments", transfer.sent.segments},
                         {"congestion_control", transfer.sent.congestion_control}});
  }
  return {{"rtt_seconds", result.rtt_seconds}, {"transfers", transfers}};
}

std::string as_text(const LinkTransfer& transfer) {
  const auto& [rtt_us, least_us, retransmitted, segments, congestion] = transfer.sent;
  return fmt::format(
      "{:<4} {:<4} {:9.1f} Mbit/s; round trip {:.1f} ms under load; {} of {} segments sent again ({:.3f} %); {}\n",
      transfer.tls ? "TLS" : "TCP", transfer.from_here ? "out" : "in", transfer.bytes_per_second() * 8e-6,
      rtt_us * 1e-3, retransmitted, segments, segments == 0 ? 0.0 : 100.0 * retransmitted / segments, congestion);
}

Status listen(const LinkCommand& command, CommandContext& context) {
  const auto listening = [&](std::uint16_t port) {
    context.console.err << fmt::format("listening on port {}; on the other machine: atoll bench link THIS-HOST:{}\n",
                                       port, port)
                        << std::flush;
  };
  ATOLL_RETURN_IF_ERROR(
      serve_link_bench({command.bind, command.port}, Deadline::after(kListenFor), context.interrupt, listening));
  context.console.err << "done; the figures are on the other machine" << std::endl;
  return ok_status();
}

Status run(const LinkCommand& command, CommandContext& context) {
  if (command.listen == !command.peer.empty()) {
    return Error{ErrorCode::kInvalidArgument,
                 "say either --listen, or HOST:PORT of the machine that listens (atoll bench link --help)"};
  }
  if (command.listen) return listen(command, context);
  const bool has_port = parse_address(command.peer).ok();
  ATOLL_ASSIGN_OR_RETURN(const Address address,
                         parse_address(has_port ? command.peer : fmt::format("{}:{}", command.peer, command.port)));
  const std::chrono::milliseconds each(static_cast<std::int64_t>(command.seconds * 1000));
  ATOLL_ASSIGN_OR_RETURN(const LinkBenchResult result, run_link_bench(address, each, context.interrupt));
  if (command.json) {
    context.console.out << as_json(result).dump(2) << std::endl;
    return ok_status();
  }
  context.console.out << fmt::format("round trip {:.2f} ms\n", result.rtt_seconds * 1e3);
  for (const LinkTransfer& transfer : result.transfers) context.console.out << as_text(transfer);
  context.console.out << std::flush;
  return ok_status();
}

}  // namespace

void add_bench_link_command(CLI::App& bench, CommandContext& context) {
  auto command = std::make_shared<LinkCommand>();
  CLI::App* sub = bench.add_subcommand("link", "Rate and round trip between two machines, as TCP and as TLS");
  sub->footer(
      "Examples:\n  atoll bench link --listen                 on one machine\n"
      "  atoll bench link 203.0.113.7:47001        on the other\n\n"
      "The listener serves one client, once, to anybody who reaches its port; it handles no secret of a run.");
  sub->add_option("peer", command->peer, "The machine that listens; without a port --port's")->type_name("HOST:PORT");
  sub->add_flag("--listen", command->listen, "Wait for the other machine, for 10 minutes");
  sub->add_option("--bind", command->bind, "Where to listen")->capture_default_str();
  sub->add_option("--port", command->port, "Port to listen on (0: any free one), or to dial")->capture_default_str();
  sub->add_option("--seconds", command->seconds, "How long each of the four transfers takes")
      ->check(CLI::Range(0.1, kMaxLinkMilliseconds / 1000.0))
      ->capture_default_str();
  sub->add_flag("--json", command->json, "Figures as JSON");
  sub->callback([command, &context] { context.finish(run(*command, context)); });
}

}  // namespace atl
