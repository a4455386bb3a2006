#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "net/base/link_window.h"
#include "net/check/figures.h"
#include "net/check/judge_rows.h"
#include "net/check/run_needs.h"
#include "net/wire/ring_frame.h"

namespace atl {
namespace {

// Why nothing can be said of the network but in net.rtt.
std::optional<CheckRow> not_measured(const NetFacts& net, bool needs_membership) {
  if (!net.not_measured.empty()) return skipped(net.not_measured);
  if (!net.problem.empty()) return skipped("the hub does not answer; see net.rtt");
  if (needs_membership && !net.limited.empty()) return skipped(net.limited);
  return std::nullopt;
}

std::string rates(const NetFacts& net) {
  return fmt::format("{} up, {} down", figures::bits_per_second(*net.up_bytes_per_second),
                     figures::bits_per_second(*net.down_bytes_per_second));
}

bool has_rates(const NetFacts& net) { return net.up_bytes_per_second && net.down_bytes_per_second; }

}  // namespace

CheckRow judge_net_rtt(const NodeFacts& facts, const CheckPolicy& policy) {
  const NetFacts& net = facts.net;
  if (!net.not_measured.empty()) return skipped(net.not_measured);
  if (!net.problem.empty()) {
    return failed(net.problem,
                  "check this machine's network and firewall; ask the run's operator whether the hub is up");
  }
  if (!net.rtt_seconds) return skipped("it was not measured");
  return judged(at_most(*net.rtt_seconds, policy.thresholds.net_rtt), *net.rtt_seconds, "s",
                fmt::format("{} to the hub", figures::seconds(*net.rtt_seconds)),
                "look for a detour (a VPN, a proxy), or join a run whose hub is nearer");
}

CheckRow judge_clock(const NodeFacts& facts, const CheckPolicy& policy) {
  if (auto row = not_measured(facts.net, /*needs_membership=*/true)) return *row;
  if (!facts.net.clock_offset_seconds) return skipped("it was not measured");
  const double off = *facts.net.clock_offset_seconds;
  const double size = std::abs(off);
  const CheckThresholds& limits = policy.thresholds;
  const Verdict verdict = size < limits.clock.pass    ? Verdict::kPass
                          : size <= limits.clock.warn ? Verdict::kWarn
                                                      : Verdict::kFail;
  return judged(verdict, off, "s",
                fmt::format("{} {} the hub's", figures::seconds(size), off < 0 ? "behind" : "ahead of"),
                "set the clock by the network: timedatectl set-ntp true");
}

CheckRow judge_net_bandwidth(const NodeFacts& facts, const CheckPolicy&) {
  const NetFacts& net = facts.net;
  if (auto row = not_measured(net, /*needs_membership=*/true)) return *row;
  if (!has_rates(net)) return skipped("it was not measured");
  const double least = std::min(*net.up_bytes_per_second, *net.down_bytes_per_second);
  return judged(least > 0 ? Verdict::kPass : Verdict::kFail, least, "B/s", rates(net),
                "nothing came through: check this machine's network and firewall");
}

CheckRow judge_net_loss(const NodeFacts& facts, const CheckPolicy& policy) {
  if (auto row = not_measured(facts.net, /*needs_membership=*/true)) return *row;
  if (!facts.net.loss) return skipped("it was not measured (atoll check --full does)");
  const double loss = *facts.net.loss;
  return judged(below(loss, policy.thresholds.net_loss), loss, "fraction",
                fmt::format("{} lost at half of the rate", figures::percent(loss)),
                "use a cable in place of Wi-Fi; tell your provider");
}

// Whether as many connections as an edge may have hold what the farthest link has under way; half of them should.
CheckRow judge_net_buffers(const NodeFacts& facts, const CheckPolicy&) {
  const NetFacts& net = facts.net;
  if (auto row = not_measured(net, /*needs_membership=*/true)) return *row;
  if (!facts.host.tcp_send_bytes || !facts.host.tcp_receive_bytes) return skipped("the kernel does not say them");
  if (!has_rates(net) || !net.rtt_seconds) return skipped("the link was not measured");
  double farthest = *net.rtt_seconds;
  for (const IslandFacts& link : net.links) farthest = std::max(farthest, link.rtt_seconds.value_or(0));
  const double rate = std::max(*net.up_bytes_per_second, *net.down_bytes_per_second);
  const double under_way = bytes_under_way(rate, farthest, /*lossy=*/false);
  const auto buffer = static_cast<double>(std::min(*facts.host.tcp_send_bytes, *facts.host.tcp_receive_bytes));
  const double most = kMaxConnectionsPerEdge * window_of_buffer(buffer);
  const std::string link = fmt::format("{} over {}", figures::bits_per_second(rate), figures::seconds(farthest));
  constexpr double kMiB = 1 << 20;
  const double wanted = std::ceil(buffer_of_window(under_way / (kMaxConnectionsPerEdge / 2)) / kMiB) * kMiB;
  return judged(
      under_way <= most ? Verdict::kPass : Verdict::kWarn, buffer, "B",
      under_way <= most ? fmt::format("{} a connection, enough for {}", figures::bytes(buffer), link)
                        : fmt::format("{} connections hold {} under way; {} want {}", kMaxConnectionsPerEdge,
                                      figures::bytes(most), link, figures::bytes(under_way)),
      fmt::format("sysctl -w net.ipv4.tcp_wmem='4096 65536 {0:.0f}' net.ipv4.tcp_rmem='4096 131072 {0:.0f}'", wanted));
}

CheckRow judge_net_sync(const NodeFacts& facts, const CheckPolicy& policy) {
  const NetFacts& net = facts.net;
  if (auto row = not_measured(net, /*needs_membership=*/true)) return *row;
  if (!has_rates(net)) return skipped("the rates were not measured");
  if (!facts.run) return skipped("which run is it for?");
  if (!(facts.run->inner_seconds > 0)) return skipped("the run has trained no round yet, so its pace is not known");
  const double least = std::min(*net.up_bytes_per_second, *net.down_bytes_per_second);
  if (!(least > 0)) return failed("nothing came through", "check this machine's network and firewall");
  const std::uint32_t islands = std::max({2u, facts.run->min_islands, net.islands + 1});
  const double fraction = sync_fraction(*facts.run, islands, least);
  return judged(at_most(fraction, policy.thresholds.net_sync), fraction, "fraction",
                fmt::format("an all-reduce takes {}, {} of the {} between two",
                            figures::seconds(fraction * facts.run->inner_seconds), figures::percent(fraction),
                            figures::seconds(facts.run->inner_seconds)),
                "a faster link, in both directions, or nothing else on this one");
}

CheckRow judge_net_inbound(const NodeFacts& facts, const CheckPolicy&) {
  const NetFacts& net = facts.net;
  if (auto row = not_measured(net, /*needs_membership=*/true)) return *row;
  if (!net.dialled_back) return skipped(net.dialled.empty() ? "it was not tried" : net.dialled);
  if (*net.dialled_back) return {.verdict = Verdict::kPass, .text = fmt::format("the hub dialled {}", net.dialled)};
  // Two islands that nobody can dial are never neighbours: at most half of a ring are such.
  const bool room = 2 * (net.hidden_islands + 1) <= net.islands + 1;
  CheckRow row{.verdict = room ? Verdict::kWarn : Verdict::kFail,
               .text = fmt::format("the hub could not dial {}", net.dialled),
               .fix =
                   "open the port in firewall and router, and name it: atoll join --listen 0.0.0.0:PORT [--advertise "
                   "HOST]"};
  if (!room)
    row.text += fmt::format(", and {} of {} islands cannot be dialled already", net.hidden_islands, net.islands);
  return row;
}

CheckRow judge_net_islands(const NodeFacts& facts, const CheckPolicy& policy) {
  const NetFacts& net = facts.net;
  if (auto row = not_measured(net, /*needs_membership=*/true)) return *row;
  if (net.links.empty()) return skipped("no other island is there");
  std::string text;
  std::size_t answered = 0;
  double farthest = 0;
  for (const IslandFacts& link : net.links) {
    text += fmt::format("{}{}: ", text.empty() ? "" : "; ", link.name);
    if (!link.rtt_seconds) {
      text += "does not answer";
      continue;
    }
    ++answered;
    farthest = std::max(farthest, *link.rtt_seconds);
    text += figures::seconds(*link.rtt_seconds);
    if (link.bytes_per_second) text += ", " + figures::bits_per_second(*link.bytes_per_second);
  }
  if (answered == 0) {
    return {.verdict = Verdict::kWarn,
            .text = text,
            .fix = "check that this machine may dial out to their ports; islands behind NAT dial this one instead"};
  }
  const Verdict verdict =
      at_most(farthest, policy.thresholds.net_rtt) == Verdict::kPass ? Verdict::kPass : Verdict::kWarn;
  return judged(verdict, farthest, "s", text, "none needed: the hub puts near islands beside each other");
}

}  // namespace atl
