#include "net/transport/ring_inbox.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <set>

#include "net/base/mutex.h"
#include "net/transport/oldest_of_most.h"

namespace atl {
namespace {

std::pair<OuterStep, Attempt> attempt_of(const RingHello& hello) { return {hello.round, hello.attempt}; }

bool same_edge(const RingHello& a, const RingHello& b) {
  return a.from == b.from && a.role == b.role && attempt_of(a) == attempt_of(b) && a.fragment == b.fragment;
}

// A peer that is before this rank alone says its role wrongly when it says another: that is to be told. Two islands
// share two edges, and contributions come beside either. An attempt is of one fragment: whoever names another is wrong.
bool may_be_meant(const RingHello& hello, const RingHello& expected) {
  if (same_edge(hello, expected)) return true;
  if (hello.fragment != expected.fragment) {
    return hello.from == expected.from && attempt_of(hello) == attempt_of(expected);
  }
  const auto exchanges = [](const RingHello& h) { return h.role == RingRole::kExchange; };
  if (exchanges(hello) != exchanges(expected)) {  // in one attempt all do, or nobody does
    return hello.from == expected.from && attempt_of(hello) == attempt_of(expected);
  }
  const auto contributes = [](const RingHello& h) { return h.role == RingRole::kContributions; };
  return hello.from == expected.from && attempt_of(hello) == attempt_of(expected) && expected.world_size != 2 &&
         !contributes(hello) && !contributes(expected);
}

// Between two looks at whether anything is due while nothing arrives, and at whether the edge is still waited for: an
// attempt that has failed meanwhile ends soon.
constexpr int kTickMilliseconds = 100, kTickOfAsked = 5;
// A peer that was refused may have come a little before it was waited for.
constexpr std::chrono::seconds kRefusalCountsFor{3};

UniqueFd make_arrival() {
  UniqueFd arrival(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!arrival) {
    std::perror("atoll: eventfd");
    std::abort();
  }
  return arrival;
}

void wake(const UniqueFd& arrival) {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(arrival.get(), &one, sizeof one);
}

}  // namespace

std::string hello_difference(const RingHello& hello, const RingHello& expected) {
  if (hello.fragment != expected.fragment) {
    return fmt::format("fragment {} instead of {}", hello.fragment.value, expected.fragment.value);
  }
  if (hello.wire != expected.wire) return "another wire format";
  if (hello.payload_numel != expected.payload_numel) {
    return fmt::format("a payload of {} values instead of {}", hello.payload_numel, expected.payload_numel);
  }
  if (hello.bucket_numel != expected.bucket_numel) {
    return fmt::format("buckets of {} values instead of {}", hello.bucket_numel, expected.bucket_numel);
  }
  if ((hello.role == RingRole::kExchange) != (expected.role == RingRole::kExchange)) {
    return hello.role == RingRole::kExchange
               ? "the direct schedule, where everybody sends to everybody; this island was told to send round a ring"
               : "the ring's schedule; this island was told the direct one, where everybody sends to everybody";
  }
  if (hello.role != expected.role) {
    return hello.role == RingRole::kSends ? "the part of the sender, which is this island's"
                                          : "the part of the receiver, which is this island's";
  }
  if (hello.final_buckets != expected.final_buckets) return "another idea of which buckets are final";
  if (hello.world_size != expected.world_size || hello.from_rank != expected.from_rank) {
    return fmt::format("rank {} of {} instead of rank {} of {}", hello.from_rank.value, hello.world_size,
                       expected.from_rank.value, expected.world_size);
  }
  return {};
}

RingInbox::RingInbox() : ahead_arrival_(make_arrival()) {
  for (UniqueFd& arrival : arrivals_) arrival = make_arrival();
}

void RingInbox::deliver(RingHello hello, TlsConnection connection) {
  const FragmentId fragment = hello.fragment;
  std::vector<Waiting> dropped;  // closed after the lock is released
  {
    MutexLock lock(mutex_);
    waiting_.push_back({std::move(hello), std::move(connection), false});
    drop_outdated(dropped);
  }
  wake(arrival_of(fragment));
}

void RingInbox::refuse(const IslandId& peer, const Error& reason) {
  {
    MutexLock lock(mutex_);
    const auto now = Clock::now();
    for (OfFragment& fragment : fragments_) {
      auto& refusals = fragment.refusals;
      std::erase_if(refusals, [now](const auto& refusal) { return now - refusal.second.when > kRefusalCountsFor; });
      if (refusals.size() < kMaxWaiting) refusals.insert_or_assign(peer, Refusal{reason, now});
    }
  }
  for (const UniqueFd& arrival : arrivals_) wake(arrival);
}

void RingInbox::drop_outdated(std::vector<Waiting>& dropped) {
  const auto drop = [&](std::vector<Waiting>::iterator one) ATOLL_REQUIRES(mutex_) {
    dropped.push_back(std::move(*one));
    return waiting_.erase(one);
  };
  for (auto one = waiting_.begin(); one != waiting_.end();) {
    one = attempt_of(one->hello) < of(one->hello.fragment).newest_asked ? drop(one) : one + 1;
  }
  if (waiting_.empty()) return;
  const IslandId latest = waiting_.back().hello.from;
  const auto from_latest = [&](const Waiting& w) { return w.hello.from == latest; };
  const auto fragment_of = [](const Waiting& w) { return w.hello.fragment; };
  while (static_cast<std::size_t>(std::ranges::count_if(waiting_, from_latest)) > kMaxWaitingOfPeer) {
    drop(oldest_of_most(waiting_, fragment_of, from_latest));
  }
  while (waiting_.size() > kMaxWaiting) drop(waiting_.begin());
}

// Some connections of the edge have come, and one of its peer's was closed since: the rest will not come. (Before the
// first has come, a peer may close what it kept and dial anew.)
bool RingInbox::is_cut(const RingHello& expected, bool parked_closed) {
  MutexLock lock(mutex_);
  bool has_begun = false, closed = parked_closed;
  for (const Waiting& one : waiting_) {
    if (!same_edge(one.hello, expected)) continue;
    has_begun = true;
    pollfd end{one.connection.fd(), POLLRDHUP, 0};
    closed = closed || ::poll(&end, 1, 0) > 0;
  }
  return has_begun && closed;
}

RingInbox::Arrived RingInbox::take_arrived(const RingHello& expected, int& arrived) {
  std::vector<Waiting> dropped;
  MutexLock lock(mutex_);
  of(expected.fragment).newest_asked = attempt_of(expected);  // the newest, for a rollback makes rounds count back
  drop_outdated(dropped);
  // The latest connection of each index; an earlier one is of a dialler that began again, as one of another count is.
  std::array<std::optional<std::size_t>, kMaxConnectionsPerEdge> position;
  int count = 0;
  for (std::size_t i = 0; i < waiting_.size(); ++i) {
    const RingHello& hello = waiting_[i].hello;
    if (!may_be_meant(hello, expected)) continue;
    if (const std::string wrong = hello_difference(hello, expected); !wrong.empty()) {
      return Result<Edge>(
          Error{ErrorCode::kProtocol, fmt::format("{} began the edge with {}", expected.from.value, wrong)});
    }
    if (hello.connection_count != count) position = {};
    count = hello.connection_count;
    position[static_cast<std::size_t>(hello.connection_index)] = i;
  }
  arrived = static_cast<int>(std::ranges::count_if(position, [](const auto& p) { return p.has_value(); }));
  const auto refusal = of(expected.fragment).refusals.extract(expected.from);
  if (count == 0 && refusal && Clock::now() - refusal.mapped().when <= kRefusalCountsFor) {
    return Result<Edge>(refusal.mapped().reason.with_context(expected.from.value));
  }
  if (count == 0 || arrived < count) return std::nullopt;
  Edge edge;
  for (const auto& p : position) {
    if (!p) continue;
    edge.reused += waiting_[*p].was_parked ? 1 : 0;
    edge.connections.push_back(std::move(waiting_[*p].connection));
  }
  std::erase_if(waiting_, [&](const Waiting& w) { return same_edge(w.hello, expected); });
  return Result<Edge>(std::move(edge));
}

void RingInbox::park(FragmentId fragment, std::vector<Parked> connections, Kind kind) {
  std::vector<ParkedConnections::One> dropped;  // closed after the lock is released
  MutexLock lock(mutex_);
  for (Parked& one : connections) {
    std::ranges::move(parked_.park({fragment, kind, std::move(one.connection), std::move(one.surplus)}),
                      std::back_inserter(dropped));
  }
}

std::optional<TlsConnection> RingInbox::take_resting(FragmentId fragment, const IslandId& peer, Kind kind) {
  (void)listen_to_parked(fragment, peer);
  MutexLock lock(mutex_);
  return parked_.take_resting(fragment, peer, kind);
}

void RingInbox::keep_parked_of(FragmentId fragment, const std::vector<IslandId>& peers, Kind kind) {
  std::vector<ParkedConnections::One> dropped;
  MutexLock lock(mutex_);
  dropped = parked_.drop_others(fragment, peers, kind);
}

void RingInbox::forget_attempts() {
  std::vector<Waiting> dropped;  // closed after the lock is released
  MutexLock lock(mutex_);
  for (OfFragment& fragment : fragments_) fragment.newest_asked = {};
  dropped.swap(waiting_);
}

void RingInbox::finish(Deadline deadline) {
  const MutexLock lock(mutex_);
  parked_.finish(deadline);
}

void RingInbox::forget(const IslandId& peer) {
  MutexLock lock(mutex_);
  parked_.forget(peer);
  std::erase_if(waiting_, [&](const Waiting& waiting) { return waiting.connection.peer() == peer; });
}

// Hellos that came on the fragment's parked connections: those join the ones that wait. Connections that ended, or say
// anything but a hello of their fragment, are dropped: true when there was one that an attempt has used.
bool RingInbox::listen_to_parked(FragmentId fragment, const IslandId& peer) {
  ParkedConnections::Heard heard;
  std::vector<Waiting> outdated;
  MutexLock lock(mutex_);
  heard = parked_.listen(fragment, peer);
  for (auto& [hello, connection] : heard.begun) waiting_.push_back({std::move(hello), std::move(connection), true});
  // Whoever dials ahead and begins at once, over and over, has no more waiting than others.
  if (!heard.begun.empty()) drop_outdated(outdated);
  return std::ranges::any_of(heard.ended, [](const ParkedConnections::One& one) { return !one.ahead; });
}

void RingInbox::expect_ahead(Schedule schedule, const std::map<IslandId, int>& peers, bool takes_padding,
                             std::uint32_t fragments) {
  MutexLock lock(mutex_);
  parked_.expect_ahead(schedule, peers, takes_padding, fragments);
}

bool RingInbox::park_ahead(const RingAhead& ahead, TlsConnection connection) {
  {
    MutexLock lock(mutex_);
    if (!parked_.park_ahead(ahead, std::move(connection))) return false;
  }
  wake(ahead_arrival_);
  return true;
}

void RingInbox::append_ahead(std::vector<pollfd>& polls) {
  polls.push_back({ahead_arrival_.get(), POLLIN, 0});
  MutexLock lock(mutex_);
  parked_.append_ahead(polls);
}

void RingInbox::read_ahead() {
  std::uint64_t arrivals = 0;
  [[maybe_unused]] const auto drained = ::read(ahead_arrival_.get(), &arrivals, sizeof arrivals);
  ParkedConnections::Heard heard;  // what ended is closed after the lock is released
  std::vector<Waiting> outdated;
  std::set<FragmentId> fragments;
  {
    MutexLock lock(mutex_);
    heard = parked_.read_ahead();
    for (const ParkedConnections::One& one : heard.ended) fragments.insert(one.fragment);
    for (auto& [hello, connection] : heard.begun) {
      fragments.insert(hello.fragment);
      waiting_.push_back({std::move(hello), std::move(connection), true});
      drop_outdated(outdated);  // at once: it bounds whoever came last
    }
  }
  for (const FragmentId fragment : fragments) wake(arrival_of(fragment));
}

void RingInbox::look_at_parked() {
  std::set<std::pair<FragmentId, IslandId>> edges;
  {
    MutexLock lock(mutex_);
    edges = parked_.edges();
  }
  for (const auto& [fragment, peer] : edges) {
    (void)listen_to_parked(fragment, peer);
    wake(arrival_of(fragment));  // for whoever takes after all
  }
}

void RingInbox::append_polls(FragmentId fragment, const std::vector<IslandId>& peers, std::vector<pollfd>& polls) {
  polls.push_back({arrival_of(fragment).get(), POLLIN, 0});
  MutexLock lock(mutex_);
  for (const IslandId& peer : peers) parked_.append_polls(fragment, peer, polls);
}

// Before looking, so that a delivery after the look wakes the poll.
void RingInbox::drain_arrivals(FragmentId fragment) {
  std::uint64_t deliveries = 0;
  [[maybe_unused]] const auto drained = ::read(arrival_of(fragment).get(), &deliveries, sizeof deliveries);
}

std::optional<RingInbox::Came> RingInbox::try_take(std::span<const RingHello> expected) {
  if (!expected.empty()) drain_arrivals(expected.front().fragment);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    (void)listen_to_parked(expected[i].fragment, expected[i].from);
    int arrived = 0;
    if (Arrived edge = take_arrived(expected[i], arrived)) return Came{i, std::move(*edge)};
  }
  return std::nullopt;
}

void RingInbox::give_up(const RingHello& expected) {
  std::vector<Waiting> dropped;  // closed after the lock is released
  MutexLock lock(mutex_);
  of(expected.fragment).newest_asked = {expected.round, Attempt{expected.attempt.value + 1}};
  drop_outdated(dropped);
}

Result<RingInbox::Edge> RingInbox::take(const RingHello& expected, Deadline deadline, const AbortSignal& abort,
                                        const std::function<bool()>& on_tick) {
  const std::string what = fmt::format("waiting for {} to begin its edge", expected.from.value);
  std::vector<pollfd> watched;
  for (;;) {
    drain_arrivals(expected.fragment);
    if (abort.raised()) return Error{ErrorCode::kAborted, fmt::format("{}: {}", what, abort.reason())};
    const bool parked_closed = listen_to_parked(expected.fragment, expected.from);
    int arrived = 0;
    if (Arrived edge = take_arrived(expected, arrived)) return std::move(*edge);
    if (is_cut(expected, parked_closed)) {
      return Error{ErrorCode::kPeerLost, fmt::format("{}: a connection was closed after {} had come", what, arrived)};
    }
    if (deadline.expired()) {
      return Error{ErrorCode::kTimeout, fmt::format("{}: {} connections came within the time allowed", what, arrived)};
    }
    if (on_tick && !on_tick()) return Error{ErrorCode::kAborted, fmt::format("{}: the attempt has ended", what)};
    watched.assign({pollfd{abort.fd(), POLLIN, 0}});
    append_polls(expected.fragment, {expected.from}, watched);
    (void)::poll(watched.data(), watched.size(),
                 deadline.poll_milliseconds(on_tick ? kTickOfAsked : kTickMilliseconds));
  }
}

}  // namespace atl
