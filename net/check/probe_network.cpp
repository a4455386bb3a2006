#include "net/check/probe_network.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "net/base/backoff.h"
#include "net/base/unix_time.h"
#include "net/https/https_fetcher.h"
#include "net/mesh/link_probe.h"
#include "net/transport/peer_listener.h"
#include "net/transport/socket.h"

namespace atl {
namespace {

constexpr std::chrono::seconds kStall{10};
constexpr std::chrono::seconds kAskTime{15};
constexpr std::chrono::seconds kConnectTime{5};
constexpr std::chrono::seconds kDialTime{20};
constexpr std::chrono::seconds kIslandTime{8};
constexpr std::uint64_t kMaxAnswer = 1u << 20;
constexpr std::uint64_t kFirstBytes = 1u << 20;  // to find out how much the real measurement is to send
constexpr double kQuickSeconds = 1.5, kFullSeconds = 5, kLossSeconds = 4;
constexpr int kPings = 5;
constexpr std::size_t kMostIslands = 8;
constexpr int kTries = 3;  // of a request whose connection breaks
constexpr std::chrono::milliseconds kFirstPause{100}, kLongestPause{1'000};

struct Answer {
  std::string text;          // of what is short
  std::uint64_t bytes = 0;   // of the body
  double seconds = 0;        // from asking to the end
  double first_seconds = 0;  // to the first byte of the body
  std::optional<double> lost;
};

// Requests to the hub over one kept connection.
class HubLink {
 public:
  static Result<HubLink> open(const Identity& self, const Address& hub, const AbortSignal& abort) {
    ATOLL_ASSIGN_OR_RETURN(HttpsFetcher fetcher, HttpsFetcher::create(self, kStall));
    return HubLink(std::move(fetcher), hub, abort);
  }

  // A connection that breaks once says nothing of this machine, and is not to cost it its place in a run.
  Result<Answer> ask(const std::string& path, std::uint64_t max_bytes, Deadline deadline, std::uint64_t upload = 0,
                     double upload_rate = 0) {
    Backoff pause(kFirstPause, kLongestPause);
    for (int tries_left = kTries - 1;; --tries_left) {
      Result<Answer> answer = ask_once(path, max_bytes, deadline, upload, upload_rate);
      const bool broke = !answer.ok() && answer.error().code == ErrorCode::kPeerLost;
      if (!broke || tries_left == 0 || deadline.expired()) return answer;
      ATOLL_RETURN_IF_ERROR(fetcher_.wait(Deadline::after(pause.next()).but_not_after(deadline), *abort_));
    }
  }

 private:
  Result<Answer> ask_once(const std::string& path, std::uint64_t max_bytes, Deadline deadline, std::uint64_t upload,
                          double upload_rate) {
    Answer answer;
    const auto begin = Clock::now();
    const auto since = [begin] { return Seconds(Clock::now() - begin).count(); };
    HttpsRequest request;
    request.peer = IslandId{kHubName};
    request.address = hub_;
    request.path = path;
    request.max_bytes = max_bytes;
    request.upload_bytes = upload;
    request.upload_rate = upload_rate;
    request.on_body = [&](ByteView body, bool) {
      if (answer.bytes == 0) answer.first_seconds = since();
      answer.bytes += body.size();
      if (max_bytes <= kMaxAnswer) answer.text.append(reinterpret_cast<const char*>(body.data()), body.size());
      return ok_status();
    };
    const TransferId id = fetcher_.start(std::move(request));
    for (;;) {
      ATOLL_ASSIGN_OR_RETURN(const auto outcomes, fetcher_.wait(deadline, *abort_));
      answer.seconds = since();
      if (!outcomes.empty()) {
        if (outcomes[0].error) return *outcomes[0].error;
        if (outcomes[0].http_status != 200) return refused(outcomes[0].http_status);
        answer.lost = outcomes[0].sent_again;
        return answer;
      }
      if (!deadline.expired()) continue;
      fetcher_.cancel(id);
      if (answer.bytes > kMaxAnswer) return answer;  // a slow link, measured by what came
      return Error{ErrorCode::kTimeout, fmt::format("the hub at {} does not answer in time", to_string(hub_))};
    }
  }

  HubLink(HttpsFetcher fetcher, Address hub, const AbortSignal& abort)
      : fetcher_(std::move(fetcher)), hub_(std::move(hub)), abort_(&abort) {}

  static Error refused(long status) {
    switch (status) {
      case 403: return {ErrorCode::kCertificate, "the hub does not know this island any more; ask the run's operator"};
      case 404: return {ErrorCode::kVersionUnsupported, "the hub is of a version that does not help to check nodes"};
      case 503: return {ErrorCode::kPeerLost, "the hub measures others now; check again later"};
      default: return {ErrorCode::kProtocol, fmt::format("the hub answers with status {}", status)};
    }
  }

  HttpsFetcher fetcher_;
  Address hub_;
  const AbortSignal* abort_;
};

// Bytes that take about `seconds` at the rate that a first piece came with.
std::uint64_t bytes_for(double seconds, double first_rate) {
  return static_cast<std::uint64_t>(std::clamp(seconds * first_rate, 2.0 * kFirstBytes, double{kMaxCheckBytes}));
}

Result<double> rate_down(HubLink& hub, double seconds) {
  const Deadline deadline = Deadline::after(std::chrono::seconds(12));
  const auto fetch = [&](std::uint64_t bytes) {
    return hub.ask(fmt::format("/check/down?bytes={}", bytes), std::max(bytes, kMaxAnswer + 1), deadline);
  };
  ATOLL_ASSIGN_OR_RETURN(const Answer first, fetch(kFirstBytes));
  const double guess = static_cast<double>(first.bytes) / std::max(first.seconds, 1e-6);
  ATOLL_ASSIGN_OR_RETURN(const Answer all, fetch(bytes_for(seconds, 2 * guess)));
  // Without the request's own round trip.
  return static_cast<double>(all.bytes) / std::max(all.seconds - all.first_seconds, 1e-6);
}

Result<double> rate_up(HubLink& hub, double seconds, double rtt) {
  const Deadline deadline = Deadline::after(std::chrono::seconds(14));
  ATOLL_ASSIGN_OR_RETURN(const Answer first, hub.ask("/check/up", kMaxAnswer, deadline, kFirstBytes));
  const double guess = static_cast<double>(kFirstBytes) / std::max(first.seconds - rtt, 1e-6);
  const std::uint64_t bytes = bytes_for(seconds, 2 * guess);
  ATOLL_ASSIGN_OR_RETURN(const Answer all, hub.ask("/check/up", kMaxAnswer, deadline, bytes));
  return static_cast<double>(bytes) / std::max(all.seconds - rtt, 1e-6);
}

// At half of the rate, so that it is the link which loses and not its full queue.
std::optional<double> loss(const NetworkProbe& probe, const Address& hub, double up, const AbortSignal& abort) {
  auto link = HubLink::open(*probe.identity, hub, abort);  // a connection of its own: the kernel counts its whole life
  if (!link.ok()) return std::nullopt;
  const std::uint64_t bytes =
      static_cast<std::uint64_t>(std::clamp(up / 2 * kLossSeconds, 256e3, double{kMaxCheckBytes}));
  const auto answer = link->ask("/check/up", kMaxAnswer, Deadline::after(std::chrono::seconds(14)), bytes, up / 2);
  return answer.ok() ? answer->lost : std::nullopt;
}

void measure_round_trip(HubLink& hub, NetFacts& net) {
  for (int i = 0; i < kPings; ++i) {
    const auto answer = hub.ask("/check/ping", kMaxAnswer, Deadline::after(kAskTime));
    if (!answer.ok()) return;
    if (i > 0) net.rtt_seconds = std::min(net.rtt_seconds.value_or(answer->seconds), answer->seconds);
  }
}

// The hub's clock is read somewhere between asking and the answer: half of the round trip is the best guess.
void compare_clocks(HubLink& hub, NetFacts& net) {
  const double asked = unix_time_now();
  const auto answer = hub.ask("/check/about", kMaxAnswer, Deadline::after(kAskTime));
  const double came = unix_time_now();
  if (!answer.ok()) return;
  const auto about = decode_check_about(answer->text);
  if (about.ok()) net.clock_offset_seconds = (asked + came) / 2 - about->time;
}

void dial_back(const NetworkProbe& probe, HubLink& hub, NetFacts& net) {
  std::string path = "/check/dial";
  RingInbox inbox;
  std::unique_ptr<PeerListener> listener;
  if (!probe.trainer_listens) {
    const auto nobody = [](const PeerCertificate&) { return Status(Error{ErrorCode::kCertificate, "only a check"}); };
    PeerListenerOptions options;
    options.bind = probe.bind;
    auto context = TlsContext::island_server(*probe.identity);
    if (context.ok()) {
      auto started =
          PeerListener::start(options, std::move(*context), nobody, inbox, [](TlsConnection, const AbortSignal&) {});
      if (started.ok()) {
        listener = std::move(*started);
      } else {
        net.dialled = started.error().message;
        return;
      }
    }
    if (!listener) return;
    path += fmt::format("?port={}", listener->port());
  }
  const auto answer = hub.ask(path, kMaxAnswer, Deadline::after(kDialTime));
  const auto dialled = answer.ok() ? decode_check_dialled(answer->text) : Result<CheckDialled>(answer.error());
  if (!dialled.ok()) {
    net.dialled = dialled.error().message;
    return;
  }
  net.dialled = to_string(dialled->address);
  net.dialled_back = dialled->answered;
}

void measure_islands(const NetworkProbe& probe, const CheckAbout& about, const AbortSignal& abort, NetFacts& net) {
  for (const CheckIsland& island : about.islands) {
    if (island.id == probe.identity->name || net.links.size() == kMostIslands || abort.raised()) continue;
    IslandFacts link{island.display_name.empty() ? island.id.value : island.display_name, {}, {}};
    const auto round_trip = connect_round_trip(island.address, abort);
    if (round_trip.ok()) link.rtt_seconds = *round_trip;
    // Islands serve live members alone: beside a running trainer the rate is known too.
    if (round_trip.ok() && probe.trainer_listens) {
      const auto rate =
          measure_link(*probe.identity, {island.id, island.address, 4u << 20}, Deadline::after(kIslandTime), abort);
      if (rate.ok()) link.bytes_per_second = rate->bytes_per_second;
    }
    net.links.push_back(std::move(link));
  }
}

void measure_as_member(const NetworkProbe& probe, const CheckAbout& about, const Address& reached,
                       const AbortSignal& abort, NetFacts& net) {
  for (const CheckIsland& island : about.islands) {
    if (island.id == probe.identity->name) continue;
    ++net.islands;
    net.hidden_islands += island.dialable ? 0 : 1;
  }
  auto hub = HubLink::open(*probe.identity, reached, abort);
  if (!hub.ok()) {
    net.problem = hub.error().message;
    return;
  }
  measure_round_trip(*hub, net);
  compare_clocks(*hub, net);
  dial_back(probe, *hub, net);
  if (probe.trainer_listens && !probe.full) {
    net.limited = "a trainer uses the link; atoll check --full measures beside it";
    return;
  }
  const double seconds = probe.full ? kFullSeconds : kQuickSeconds;
  const auto down = rate_down(*hub, seconds);
  if (down.ok()) net.down_bytes_per_second = *down;
  const auto up = rate_up(*hub, seconds, net.rtt_seconds.value_or(0));
  if (up.ok()) net.up_bytes_per_second = *up;
  if (!probe.full) return;
  if (up.ok()) net.loss = loss(probe, reached, *up, abort);
  measure_islands(probe, about, abort, net);
}

}  // namespace

Result<double> connect_round_trip(const Address& address, const AbortSignal& abort) {
  std::optional<double> least;
  for (int i = 0; i < 3; ++i) {
    const auto begin = Clock::now();
    const auto socket = connect_tcp(address, Deadline::after(kConnectTime), &abort, to_string(address));
    if (!socket.ok()) return socket.error();
    const double took = Seconds(Clock::now() - begin).count();
    least = std::min(least.value_or(took), took);
  }
  return *least;
}

Result<CheckAbout> ask_about_run(const NetworkProbe& probe, const AbortSignal& abort, Address& reached) {
  Error last{ErrorCode::kUnreachable, "no address of the hub is known"};
  for (const Address& address : probe.hub) {
    ATOLL_ASSIGN_OR_RETURN(HubLink hub, HubLink::open(*probe.identity, address, abort));
    const auto answer = hub.ask("/check/about", kMaxAnswer, Deadline::after(kAskTime));
    if (answer.ok()) {
      reached = address;
      return decode_check_about(answer->text);
    }
    last = answer.error();
    if (last.code == ErrorCode::kAborted) break;
  }
  return last;
}

NetFacts probe_network(const NetworkProbe& probe, const Result<CheckAbout>& about, const Address& reached,
                       const AbortSignal& abort) {
  NetFacts net;
  if (probe.identity) {
    if (about.ok()) {
      measure_as_member(probe, *about, reached, abort, net);
    } else {
      net.problem = about.error().message;
    }
    return net;
  }
  net.limited = "only members of the run may measure it: join first";
  for (const Address& address : probe.hub) {
    const auto round_trip = connect_round_trip(address, abort);
    if (round_trip.ok()) {
      net.problem.clear();
      net.rtt_seconds = *round_trip;
      break;
    }
    net.problem = round_trip.error().message;
  }
  return net;
}

}  // namespace atl
