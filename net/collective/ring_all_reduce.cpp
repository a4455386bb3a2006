#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cmath>

#include "net/base/link_window.h"
#include "net/collective/all_reduce.h"
#include "net/collective/attempt_edges.h"
#include "net/collective/canonical_digest.h"
#include "net/collective/direct_exchange.h"
#include "net/collective/direct_reduce.h"
#include "net/collective/partial_sums.h"
#include "net/collective/ring_edges.h"
#include "net/collective/ring_exchange.h"
#include "net/transport/socket.h"

namespace atl {
namespace {

Error invalid(std::string message) { return Error{ErrorCode::kInvalidArgument, std::move(message)}; }

// Raises a flag while it lives, unless somebody has.
class Claim {
 public:
  explicit Claim(std::atomic<bool>& flag) : flag_(flag), holds_(!flag.exchange(true)) {}
  ~Claim() {
    if (holds_) flag_ = false;
  }
  Claim(const Claim&) = delete;
  Claim& operator=(const Claim&) = delete;
  bool holds() const { return holds_; }

 private:
  std::atomic<bool>& flag_;
  const bool holds_;
};

Status check_members(const std::vector<RingMember>& order) {
  double total = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (!std::isfinite(order[i].weight) || order[i].weight < 0) {
      return invalid(fmt::format("the weight of {} is {}", order[i].id.value, order[i].weight));
    }
    total += order[i].weight;
    for (std::size_t j = 0; j < i; ++j) {
      if (order[i].id == order[j].id) return invalid(fmt::format("{} is in the ring twice", order[i].id.value));
    }
  }
  if (!std::isfinite(total) || total <= 0) return invalid("no member has a weight");
  return ok_status();
}

Status check(const AllReduceSpec& spec, std::size_t numel, std::size_t canonical_bytes) {
  if (numel > kMaxPayloadNumel) return invalid(fmt::format("{} values are too many", numel));
  if (canonical_bytes != static_cast<std::size_t>(encoded_bytes(spec.wire, static_cast<std::int64_t>(numel)))) {
    return invalid("the room for the result does not fit the input");
  }
  if (spec.order.size() > kMaxRingIslands) {
    return invalid(fmt::format("a ring of {} islands; at most {}", spec.order.size(), kMaxRingIslands));
  }
  if (spec.fragments < 1 || spec.fragments > static_cast<int>(kMaxFragments) ||
      spec.fragment.value >= static_cast<std::uint32_t>(spec.fragments)) {
    return invalid(fmt::format("fragment {} of {}; of at most {}", spec.fragment.value, spec.fragments, kMaxFragments));
  }
  const int most = most_connections_per_edge(spec.fragments);
  if (spec.connections_per_edge < 0 || spec.connections_per_edge > most) {
    return invalid(
        fmt::format("{} connections an edge; 1 to {}, or 0 to have them chosen", spec.connections_per_edge, most));
  }
  const std::int64_t block = block_numel(spec.wire);
  if (spec.bucket_numel <= 0 || spec.bucket_numel % block != 0) {
    return invalid(fmt::format("buckets of {} values; a positive multiple of {}", spec.bucket_numel, block));
  }
  const bool directly = spec.schedule == Schedule::kDirect;
  if (directly && !sums_hop_by_hop(spec.wire)) {
    return invalid(fmt::format("{} has its own way to the owners of chunks: choose the ring's schedule for it",
                               wire_format_name(spec.wire)));
  }
  if ((directly || !sums_hop_by_hop(spec.wire)) && spec.order.size() > kMaxDirectIslands) {
    return invalid(fmt::format("{} islands that send {} straight to each other; at most {}", spec.order.size(),
                               wire_format_name(spec.wire), kMaxDirectIslands));
  }
  const std::size_t residuals = spec.feedback.residual_out.size();
  if (spec.feedback.residual_in.size() != residuals || (residuals != 0 && residuals != numel)) {
    return invalid("the residuals do not fit the input");
  }
  const RingPayload payload = payload_of(spec, static_cast<std::int64_t>(numel));
  if (!spec.final_buckets.empty() && std::ssize(spec.final_buckets) != payload.buckets()) {
    return invalid(fmt::format("{} buckets named of {}", spec.final_buckets.size(), payload.buckets()));
  }
  if (spec.threads < 0) return invalid("a negative number of threads");
  if (spec.silence_timeout <= std::chrono::milliseconds::zero()) return invalid("the silence timeout is not positive");
  return check_members(spec.order);
}

std::optional<Rank> rank_of(const IslandId& self, const std::vector<RingMember>& order) {
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (order[i].id == self) return Rank{static_cast<std::int32_t>(i)};
  }
  return std::nullopt;
}

Digest encode_alone(const RingPayload& payload, const PartialSums& sums, ByteView canonical) {
  for (std::int64_t bucket = 0; bucket < payload.buckets(); ++bucket) {
    if (payload.is_final(bucket)) continue;
    const std::int64_t first = payload.bucket_begin(bucket);
    const std::int64_t numel = payload.bucket_begin(bucket + 1) - first;
    for (std::uint32_t i = 0; i < sub_chunk_count(payload.wire, numel); ++i) {
      sums.encode_own(sub_chunk_at(payload.wire, first, numel, i));
    }
  }
  return canonical_digest(canonical);
}

double least_rtt_seconds(const std::vector<TlsConnection>& connections) {
  double least = 0;  // not known
  for (const TlsConnection& connection : connections) {
    const double rtt = least_rtt(connection.fd()).count();
    if (rtt > 0 && (least == 0 || rtt < least)) least = rtt;
  }
  return least;
}

// Of the connections that have just carried an attempt to the next rank.
void measure_link(const std::vector<TlsConnection>& connections, const LinkPacing& link, AllReduceReport& report) {
  report.rtt_seconds = least_rtt_seconds(connections);
  const std::optional<double> rate = link.link_rate();
  report.at_least = !rate;
  report.link_bytes_per_second = rate.value_or(std::max(report.bytes_per_second, link.fastest()));
}

// What a link may carry that nobody has seen full, bytes/s: of more only some of its first attempt lacks windows.
constexpr double kUnknownLink = 125e6;

int connections_for(double bytes_per_second, double rtt_seconds, bool lossy) {
  const double window_bytes = window_of_buffer(static_cast<double>(most_send_buffer_bytes()));
  return connections_needed(bytes_per_second, rtt_seconds, window_bytes, lossy);
}

AllReducePhases phases_of(const PartialSums& sums, Seconds connect, Clock::time_point moving_since,
                          std::size_t threads) {
  const auto now = Clock::now();
  const auto summed = std::clamp(sums.last_ended(), moving_since, now);  // nothing was encoded: at once
  const Seconds until_summed = summed - moving_since;
  const Seconds quantise = std::min(until_summed, sums.time_spent() / static_cast<double>(threads));
  return {connect, quantise, until_summed - quantise, now - summed};
}

std::vector<RingInbox::Parked> without_surplus(std::vector<TlsConnection> connections) {
  std::vector<RingInbox::Parked> parked;
  parked.reserve(connections.size());
  for (TlsConnection& connection : connections) parked.push_back({std::move(connection), {}});
  return parked;
}

// Those of which no half message was read: the pool keeps none.
std::vector<TlsConnection> between_messages(std::vector<RingInbox::Parked> parked) {
  std::vector<TlsConnection> connections;
  for (RingInbox::Parked& one : parked) {
    if (one.surplus.empty()) connections.push_back(std::move(one.connection));
  }
  return connections;
}

}  // namespace

RingAllReduce::RingAllReduce(IslandId self, RingInbox& inbox, const TlsContext& dial_context)
    : self_(std::move(self)), inbox_(inbox), dial_context_(dial_context), ahead_(dialled_ahead()) {
  for (std::uint32_t i = 0; i < kMaxFragments; ++i) fragments_.emplace_back(dial_context);
  try {
    warms_ = std::jthread([this] { keep_warm(); });
  } catch (const std::system_error&) {
    // Attempts then ask, as their first step, whether what they kept still lives.
  }
}

DialAhead::Ring RingAllReduce::dialled_ahead() {
  const auto spec_of = [](const NextAttempts& next, FragmentId fragment) {  // as far as connections_of() reads it
    AllReduceSpec spec;
    spec.fragment = fragment;
    spec.fragments = next.fragments;
    spec.connections_per_edge = next.connections_per_edge;
    return spec;
  };
  return {.self = self_,
          .inbox = inbox_,
          .dial_context = dial_context_,
          .under_way = under_way_,
          .pool = [this](FragmentId fragment) -> ConnectionPool& { return of(fragment).pool; },
          .connections = [this, spec_of](const NextAttempts& next, FragmentId fragment,
                                         const EdgeEnd& end) { return connections_of(spec_of(next, fragment), end); },
          .needs_more =
              [this, spec_of](const NextAttempts& next, FragmentId fragment, const EdgeEnd& end, double rtt_seconds) {
                const AllReduceSpec spec = spec_of(next, fragment);
                const int before = connections_of(spec, end);
                tuner_of(spec, end).begins_with(connections_for(kUnknownLink, rtt_seconds, false));
                return connections_of(spec, end) > before;
              },
          .link = [this](Schedule schedule, const IslandId& next) -> LinkPacing& {
            return schedule == Schedule::kDirect ? own_link_ : link_to(next);
          }};
}

// An all-reduce comes after minutes of inner steps. Connections that are found alive before it begins save it a round
// trip, and one that died is dialled anew by it at once. Padding is read as it comes.
void RingAllReduce::keep_warm() {
  auto warms_at = Clock::now() + ConnectionPool::kWarmEvery;
  std::vector<pollfd> polls;
  while (!ends_.raised()) {
    polls.assign({pollfd{ends_.fd(), POLLIN, 0}});
    inbox_.append_ahead(polls);
    if (::poll(polls.data(), polls.size(), Deadline::at(warms_at).poll_milliseconds()) > 0) inbox_.read_ahead();
    if (Clock::now() < warms_at) continue;
    for (OfFragment& fragment : fragments_) fragment.pool.keep_warm();
    inbox_.look_at_parked();
    warms_at = Clock::now() + ConnectionPool::kWarmEvery;
  }
}

std::variant<AllReduceReport, AllReduceFailure> RingAllReduce::run(const AllReduceSpec& spec,
                                                                   std::span<const float> input,
                                                                   std::span<std::byte> canonical,
                                                                   const AbortSignal& abort) {
  const auto begin = Clock::now();
  const auto failed = [&](AllReduceFailure failure, std::string_view rank) {
    failure.error = failure.error.with_context(
        fmt::format("all_reduce round {} attempt {}, {}", spec.round.value, spec.attempt.value, rank));
    if (failure.error.code == ErrorCode::kAborted && !failure.silent && !failure.stalled_after) failure.peer.reset();
    return failure;
  };
  const std::optional<Rank> self = rank_of(self_, spec.order);
  if (!self) return failed({invalid(fmt::format("{} is not in the ring", self_.value)), std::nullopt, {}}, "no rank");
  const std::string rank_text = fmt::format("rank {}", self->value);
  if (Status status = check(spec, input.size(), canonical.size()); !status.ok()) {
    return failed({status.error(), std::nullopt, {}}, rank_text);
  }
  const Claim claim(of(spec.fragment).running);
  if (!claim.holds()) {
    const Error busy = invalid(fmt::format("fragment {} is being averaged already", spec.fragment.value));
    return failed({busy, std::nullopt, {}}, rank_text);
  }
  const DialAhead::Hold hold(ahead_);

  const RingPayload payload = payload_of(spec, static_cast<std::int64_t>(input.size()));
  const PartialSums sums(spec.wire, input, share_of(spec.order, static_cast<std::size_t>(self->value)), spec.feedback,
                         canonical);
  std::variant<AllReduceReport, AllReduceFailure> outcome;
  if (spec.order.size() == 1) {
    AllReduceReport alone{.digest = encode_alone(payload, sums, canonical)};
    if (spec.on_final) spec.on_final(0, canonical.size());
    alone.phases = phases_of(sums, Seconds::zero(), begin, 1);
    outcome = std::move(alone);
  } else if (spec.schedule == Schedule::kDirect) {
    outcome = run_directly(spec, *self, payload, sums, canonical, abort);
  } else {
    outcome = run_with_peers(spec, *self, payload, sums, canonical, abort);
  }
  if (auto* failure = std::get_if<AllReduceFailure>(&outcome)) return failed(std::move(*failure), rank_text);
  std::get<AllReduceReport>(outcome).duration = Clock::now() - begin;
  return outcome;
}

void RingAllReduce::finish() {
  constexpr std::chrono::seconds kLongest{3};
  const Deadline deadline = Deadline::after(kLongest);
  for (OfFragment& fragment : fragments_) fragment.pool.finish(deadline);
  inbox_.finish(deadline);
}

void RingAllReduce::forget(const IslandId& peer) {
  ahead_.forget(peer);
  inbox_.forget(peer);
}

ConnectionTuner& RingAllReduce::tuner_of(const AllReduceSpec& spec, const EdgeEnd& end) {
  return of(spec.fragment).tuners.try_emplace(end, most_connections_per_edge(spec.fragments)).first->second;
}

int RingAllReduce::connections_of(const AllReduceSpec& spec, const EdgeEnd& end) {
  return spec.connections_per_edge > 0 ? spec.connections_per_edge : tuner_of(spec, end).connections();
}

LinkPacing& RingAllReduce::link_to(const IslandId& next) {
  MutexLock lock(links_mutex_);
  return links_[next];
}

PeerSilences& RingAllReduce::silences_of(const AllReduceSpec& spec) {
  PeerSilences& silences = of(spec.fragment).silences;
  silences.begin_attempt(self_, spec.order);
  return silences;
}

double RingAllReduce::fastest_link() {
  MutexLock lock(links_mutex_);
  double fastest = 0;
  for (const auto& [next, link] : links_) fastest = std::max(fastest, link.link_rate().value_or(0));
  return fastest;
}

std::variant<AllReduceReport, AllReduceFailure> RingAllReduce::run_with_peers(const AllReduceSpec& spec, Rank self,
                                                                              const RingPayload& payload,
                                                                              const PartialSums& sums,
                                                                              std::span<std::byte> canonical,
                                                                              const AbortSignal& abort) {
  const std::vector<AttemptEdge> edges = edges_of(spec.order, Schedule::kRing, static_cast<std::size_t>(self.value));
  const RingMember& next = spec.order[edges[0].peer];
  const RingMember& previous = spec.order[edges[1].peer];
  const bool dials_next = edges[0].is_dialled, dials_previous = edges[1].is_dialled;
  const EdgeEnd out{next.id, edges[0].role}, in{previous.id, edges[1].role};
  AllReduceSpec chosen = spec;
  if (dials_next) chosen.connections_per_edge = connections_of(spec, out);
  const int inbound = dials_previous ? connections_of(spec, in) : 0;
  ConnectionPool& pool = of(spec.fragment).pool;
  const auto connecting_since = Clock::now();
  EdgeConnector connector(chosen, self, payload, pool, inbox_, abort, inbound);
  auto edge = connector.connect_next();
  if (auto* failure = std::get_if<AllReduceFailure>(&edge)) return std::move(*failure);
  auto& to_next = std::get<EdgeConnector::ToNext>(edge);
  AllReduceReport report;
  report.next = next.id;
  report.previous = previous.id;
  report.connections = static_cast<int>(to_next.connections.size());
  report.connections_reused = to_next.reused;
  LinkPacing& link = link_to(next.id);
  PeerSilences& silences = silences_of(spec);
  const EdgeSilences edge_silences{silences.at(previous.id).sent, silences.at(next.id).took};
  const UploadShare upload(under_way_, spec.most_bytes_per_second);
  const auto moving_since = Clock::now();
  std::optional<DirectReduce> direct;
  if (!sums_hop_by_hop(spec.wire)) direct.emplace(spec, self, payload, sums, inbox_, dial_context_, silences, upload);
  auto outcome = exchange(spec, self, connector, std::move(to_next), sums, payload, canonical, link, edge_silences,
                          upload, direct ? &*direct : nullptr, abort);
  if (auto* failure = std::get_if<AllReduceFailure>(&outcome)) return std::move(*failure);
  auto& done = std::get<ExchangeOutcome>(outcome);
  report.digest = done.digest;
  report.bytes_sent = done.bytes_sent;
  report.bytes_received = done.bytes_received;
  report.bytes_retransmitted = done.bytes_retransmitted;
  const auto all_gather_hops = static_cast<int>(spec.order.size()) - 1;
  report.hops = (sums_hop_by_hop(spec.wire) ? all_gather_hops : 1) + all_gather_hops;
  report.phases = phases_of(sums, moving_since - connecting_since, moving_since, done.threads);
  const double seconds = std::max(Seconds(Clock::now() - moving_since).count(), 1e-6);
  report.bytes_per_second = static_cast<double>(done.bytes_to_next) / seconds;
  report.bytes_per_second_received = static_cast<double>(done.bytes_from_previous) / seconds;
  if (!done.to_next.empty()) report.congestion_control = congestion_control(done.to_next.front().fd());
  measure_link(done.to_next, link, report);
  const bool tells = upload.alone_so_far();  // else it tells of the others, and not of the number of connections
  constexpr double kLossy = 0.002;           // of the bytes
  const bool lossy = static_cast<double>(done.bytes_retransmitted) > kLossy * static_cast<double>(done.bytes_to_next);
  const auto tune = [&](const EdgeEnd& end, int connections, double goodput, double link_rate, double rtt_seconds) {
    ConnectionTuner& tuner = tuner_of(spec, end);
    tuner.measured(connections, goodput, seconds / std::max(rtt_seconds, 1e-6));
    tuner.needs(connections_for(link_rate, rtt_seconds, lossy));
  };
  if (dials_next) {
    if (tells) tune(out, report.connections, report.bytes_per_second, report.link_bytes_per_second, report.rtt_seconds);
    pool.give_back(out, next.address, std::move(done.to_next));
  } else {
    inbox_.park(spec.fragment, without_surplus(std::move(done.to_next)));
  }
  if (dials_previous) {
    std::vector<TlsConnection> from_previous = between_messages(std::move(done.from_previous));
    if (tells) {
      const double received = report.bytes_per_second_received;
      tune(in, inbound, received, received, least_rtt_seconds(from_previous));
    }
    pool.give_back(in, previous.address, std::move(from_previous));
  } else {
    inbox_.park(spec.fragment, std::move(done.from_previous));
  }
  return report;
}

std::variant<AllReduceReport, AllReduceFailure> RingAllReduce::run_directly(const AllReduceSpec& spec, Rank self,
                                                                            const RingPayload& payload,
                                                                            const PartialSums& sums,
                                                                            std::span<std::byte> canonical,
                                                                            const AbortSignal& abort) {
  const auto connecting_since = Clock::now();
  const UploadShare upload(under_way_, spec.most_bytes_per_second);
  // The whole upload carries at least what one link does: nearer the truth than no limit, with which N-1 connections
  // overflow it for several attempts.
  own_link_.begin_with(fastest_link());
  DirectExchange exchange(spec, self, payload, sums, canonical, of(spec.fragment).pool, inbox_, own_link_,
                          silences_of(spec), upload);
  auto outcome = exchange.run(abort);
  if (auto* report = std::get_if<AllReduceReport>(&outcome)) {
    const auto moving_since = exchange.moving_since();
    report->phases = phases_of(sums, moving_since - connecting_since, moving_since, 1);
  }
  return outcome;
}

}  // namespace atl
