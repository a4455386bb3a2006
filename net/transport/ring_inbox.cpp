#include "net/transport/ring_inbox.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <set>

#include "net/base/mutex.h"
#include "net/transport/socket.h"

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
// Of one connection, in one look, keepalives and padding: whoever sends them without end must not keep us from looking
// at the time.
constexpr int kMostKeepalives = 256;
// Of one that was dialled ahead: its dialler asks every 4 s whether it stands, and that comes with an answer.
constexpr std::chrono::seconds kGoneAfter{30};

RingInbox::Kind kind_of(Schedule schedule) {
  return schedule == Schedule::kDirect ? RingInbox::Kind::kExchange : RingInbox::Kind::kRing;
}

// The hello that begins the connection's next attempt, if it has come.
Result<std::optional<RingHello>> read_hello(RingInbox::Parked& parked) {
  ATOLL_ASSIGN_OR_RETURN(const std::size_t length,
                         decode_ring_hello_prefix(ByteView(parked.surplus).first(kRingHelloPrefixBytes)));
  ATOLL_ASSIGN_OR_RETURN(const bool has_body,
                         parked.connection.try_read_up_to(parked.surplus, kRingHelloPrefixBytes + length));
  if (!has_body) return std::optional<RingHello>();
  ATOLL_ASSIGN_OR_RETURN(RingHello hello,
                         decode_ring_hello_body(ByteView(parked.surplus).subspan(kRingHelloPrefixBytes)));
  return std::optional<RingHello>(std::move(hello));
}

// False: not all of it is there yet.
Result<bool> skip_keepalive(RingInbox::Parked& parked) {
  ATOLL_ASSIGN_OR_RETURN(const bool has_header,
                         parked.connection.try_read_up_to(parked.surplus, kRingFrameHeaderBytes));
  if (!has_header) return false;
  ATOLL_ASSIGN_OR_RETURN(const RingFrameHeader header,
                         decode_ring_frame_header(std::span(parked.surplus).first<kRingFrameHeaderBytes>()));
  if (header.type != RingFrameType::kKeepalive) return Error{ErrorCode::kProtocol, "a frame between two attempts"};
  parked.surplus.clear();
  return true;
}

// False: not all of it is there yet.
Result<bool> skip_padding(TlsConnection& connection, std::uint64_t& left) {
  std::array<std::byte, kMaxRingPaddingBytes> ignored;
  while (left > 0) {
    const auto most = static_cast<std::size_t>(std::min<std::uint64_t>(left, ignored.size()));
    ATOLL_ASSIGN_OR_RETURN(const std::size_t count, connection.try_read(std::span(ignored).first(most)));
    if (count == 0) return false;
    left -= count;
  }
  return true;
}

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

// The oldest of those that `counts`, of the fragment of which there are most; none when there is none.
template <class Held, class FragmentOf, class Counts>
auto oldest_of_most(std::vector<Held>& held, FragmentOf fragment_of, Counts counts) {
  std::array<std::size_t, kMaxFragments> count{};
  for (const Held& one : held) count[fragment_of(one).value] += counts(one) ? 1 : 0;
  const FragmentId most{static_cast<std::uint32_t>(std::ranges::max_element(count) - count.begin())};
  return std::ranges::find_if(held, [&](const Held& one) { return counts(one) && fragment_of(one) == most; });
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
  std::vector<ParkedOf> dropped;  // closed after the lock is released
  MutexLock lock(mutex_);
  for (Parked& one : connections) {
    const IslandId peer = one.connection.peer();
    parked_.push_back({fragment, kind, std::move(one)});
    const auto of_peer = [&](const ParkedOf& other) { return other.parked.connection.peer() == peer; };
    while (static_cast<std::size_t>(std::ranges::count_if(parked_, of_peer)) > kMaxWaitingOfPeer) {
      const auto first = oldest_of_most(
          parked_, [](const ParkedOf& other) { return other.fragment; }, of_peer);
      dropped.push_back(std::move(*first));
      parked_.erase(first);
    }
  }
}

std::optional<TlsConnection> RingInbox::take_resting(FragmentId fragment, const IslandId& peer, Kind kind) {
  (void)listen_to_parked(fragment, peer);
  MutexLock lock(mutex_);
  const auto is_meant = [&](const ParkedOf& one) {
    return one.fragment == fragment && one.kind == kind && one.parked.connection.peer() == peer;
  };
  const auto found = std::ranges::find_if(parked_, is_meant);
  if (found == parked_.end() || found->ahead || !found->parked.surplus.empty()) return std::nullopt;
  if (std::ranges::count_if(parked_, is_meant) > 1) return std::nullopt;
  const Result<bool> has_come = found->parked.connection.has_come();
  if (!has_come.ok() || *has_come) return std::nullopt;
  std::optional<TlsConnection> taken(std::move(found->parked.connection));
  parked_.erase(found);
  return taken;
}

void RingInbox::keep_parked_of(FragmentId fragment, const std::vector<IslandId>& peers, Kind kind) {
  std::vector<ParkedOf> dropped;
  MutexLock lock(mutex_);
  for (auto one = parked_.begin(); one != parked_.end();) {
    const bool is_meant = one->kind == kind && std::ranges::find(peers, one->parked.connection.peer()) != peers.end();
    if (one->fragment != fragment || is_meant) {
      ++one;
      continue;
    }
    dropped.push_back(std::move(*one));
    one = parked_.erase(one);
  }
}

void RingInbox::forget_attempts() {
  std::vector<Waiting> dropped;  // closed after the lock is released
  MutexLock lock(mutex_);
  for (OfFragment& fragment : fragments_) fragment.newest_asked = {};
  dropped.swap(waiting_);
}

void RingInbox::forget(const IslandId& peer) {
  MutexLock lock(mutex_);
  ahead_.erase(peer);
  std::erase_if(waiting_, [&](const Waiting& waiting) { return waiting.connection.peer() == peer; });
  std::erase_if(parked_, [&](const ParkedOf& one) { return one.parked.connection.peer() == peer; });
}

// Keepalives of the attempt before are passed over, and so is padding where it may come. `bytes` were read of these.
Result<std::optional<RingHello>> RingInbox::next_hello(ParkedOf& one, std::uint64_t& bytes) {
  Parked& parked = one.parked;
  for (int messages = 0; messages < kMostKeepalives; ++messages) {
    if (one.skips > 0) {
      const std::uint64_t before = one.skips;
      const Result<bool> skipped = skip_padding(parked.connection, one.skips);
      bytes += before - one.skips;
      if (!skipped.ok()) return skipped.error();
      if (!*skipped) break;
    }
    ATOLL_ASSIGN_OR_RETURN(const bool has_prefix,
                           parked.connection.try_read_up_to(parked.surplus, kRingHelloPrefixBytes));
    if (!has_prefix) break;
    const RingMessage message = ring_message_at(ByteView(parked.surplus).first(4));
    if (message == RingMessage::kPadding && one.ahead) {
      ATOLL_ASSIGN_OR_RETURN(one.skips, decode_ring_padding_prefix(parked.surplus));
      bytes += parked.surplus.size();
      parked.surplus.clear();
    } else if (message == RingMessage::kFrame) {
      ATOLL_ASSIGN_OR_RETURN(const bool is_whole, skip_keepalive(parked));
      if (!is_whole) break;
      bytes += kRingFrameHeaderBytes;
    } else {
      return read_hello(parked);
    }
  }
  return std::optional<RingHello>();
}

bool RingInbox::listen_to(ParkedOf& one, std::uint64_t& bytes, std::vector<ParkedOf>& dropped) {
  Result<std::optional<RingHello>> hello = next_hello(one, bytes);
  if (hello.ok() && !hello->has_value()) return false;
  if (hello.ok() && (*hello)->from == one.parked.connection.peer() && (*hello)->fragment == one.fragment) {
    waiting_.push_back({std::move(**hello), std::move(one.parked.connection), true});
  } else {
    dropped.push_back(std::move(one));
  }
  return true;
}

// Hellos that came on the fragment's parked connections: those join the ones that wait. Connections that ended, or say
// anything but a hello of their fragment, are dropped: true when there was one that an attempt has used.
bool RingInbox::listen_to_parked(FragmentId fragment, const IslandId& peer) {
  std::vector<ParkedOf> dropped;
  std::vector<Waiting> outdated;
  MutexLock lock(mutex_);
  const std::size_t waited = waiting_.size();
  for (auto one = parked_.begin(); one != parked_.end();) {
    std::uint64_t bytes = 0;
    const bool is_meant = one->fragment == fragment && one->parked.connection.peer() == peer;
    one = is_meant && listen_to(*one, bytes, dropped) ? parked_.erase(one) : one + 1;
  }
  // Whoever dials ahead and begins at once, over and over, has no more waiting than others.
  if (waiting_.size() > waited) drop_outdated(outdated);
  return std::ranges::any_of(dropped, [](const ParkedOf& one) { return !one.ahead; });
}

// ---- dialled ahead

void RingInbox::expect_ahead(Schedule schedule, const std::map<IslandId, int>& peers, bool takes_padding,
                             std::uint32_t fragments) {
  MutexLock lock(mutex_);
  ahead_.clear();
  for (const auto& [peer, connections] : peers) {
    ahead_[peer] = {kind_of(schedule), connections, fragments, takes_padding ? kMostPaddingOfPeer : 0};
  }
}

// Those whose dialler is gone without a word make room.
bool RingInbox::may_park_ahead(const RingAhead& ahead, const IslandId& peer) {
  const auto named = ahead_.find(peer);
  if (named == ahead_.end() || named->second.kind != kind_of(ahead.schedule)) return false;
  if (ahead.fragment.value >= named->second.fragments) return false;  // no attempt of it would ever close what it left
  std::erase_if(parked_, [&](const ParkedOf& one) {
    const TlsConnection& connection = one.parked.connection;
    return one.ahead && connection.peer() == peer && since_last_answer(connection.fd()) > kGoneAfter;
  });
  int of_all = 0, of_peer = 0, of_fragment = 0;
  for (const ParkedOf& one : parked_) {
    const bool is_peers = one.parked.connection.peer() == peer;
    of_all += one.ahead ? 1 : 0;
    of_peer += is_peers ? 1 : 0;
    of_fragment += is_peers && one.ahead && one.fragment == ahead.fragment ? 1 : 0;
  }
  return of_all < static_cast<int>(kMaxWaiting) && of_peer < static_cast<int>(kMaxWaitingOfPeer) &&
         of_fragment < named->second.of_fragment;
}

// The answer is a promise: whoever has it takes the connection for one that an attempt may begin with.
bool RingInbox::park_ahead(const RingAhead& ahead, TlsConnection connection) {
  {
    MutexLock lock(mutex_);
    const IslandId& peer = connection.peer();
    if (!may_park_ahead(ahead, peer)) return false;
    const RingAhead answer{ahead.fragment, ahead.schedule, ahead_[peer].bytes_left > 0};
    const auto written = connection.try_write(encode(answer));
    if (!written.ok() || *written < kRingHelloPrefixBytes) return false;
    parked_.push_back({ahead.fragment, kind_of(ahead.schedule), {std::move(connection), {}}, /*ahead=*/true});
  }
  wake(ahead_arrival_);
  return true;
}

// Whoever has sent what is read at once is read as all parked connections are, slowly.
void RingInbox::append_ahead(std::vector<pollfd>& polls) {
  polls.push_back({ahead_arrival_.get(), POLLIN, 0});
  MutexLock lock(mutex_);
  for (const ParkedOf& one : parked_) {
    const TlsConnection& connection = one.parked.connection;
    const auto named = one.ahead ? ahead_.find(connection.peer()) : ahead_.end();
    if (named == ahead_.end() || named->second.bytes_left == 0) continue;
    const short events = connection.poll_events_for_read();
    polls.push_back({connection.fd(), events != 0 ? events : short{POLLOUT}, 0});  // some is here already: at once
  }
}

void RingInbox::read_ahead() {
  std::uint64_t arrivals = 0;
  [[maybe_unused]] const auto drained = ::read(ahead_arrival_.get(), &arrivals, sizeof arrivals);
  std::vector<ParkedOf> dropped;  // closed after the lock is released
  std::vector<Waiting> outdated;
  std::set<FragmentId> begun;
  {
    MutexLock lock(mutex_);
    for (auto one = parked_.begin(); one != parked_.end();) {
      const auto named = one->ahead ? ahead_.find(one->parked.connection.peer()) : ahead_.end();
      if (named == ahead_.end() || named->second.bytes_left == 0) {
        ++one;
        continue;
      }
      std::uint64_t bytes = 0;
      const FragmentId fragment = one->fragment;
      const bool leaves = listen_to(*one, bytes, dropped);
      named->second.bytes_left -= std::min(bytes, named->second.bytes_left);
      one = leaves ? parked_.erase(one) : one + 1;
      if (!leaves) continue;
      begun.insert(fragment);
      drop_outdated(outdated);  // at once: it bounds whoever came last
    }
  }
  for (const FragmentId fragment : begun) wake(arrival_of(fragment));
}

void RingInbox::look_at_parked() {
  std::set<std::pair<FragmentId, IslandId>> edges;
  {
    MutexLock lock(mutex_);
    for (const ParkedOf& one : parked_) edges.emplace(one.fragment, one.parked.connection.peer());
  }
  for (const auto& [fragment, peer] : edges) {
    (void)listen_to_parked(fragment, peer);
    wake(arrival_of(fragment));  // for whoever takes after all
  }
}

void RingInbox::append_parked(FragmentId fragment, const IslandId& peer, std::vector<pollfd>& polls) {
  MutexLock lock(mutex_);
  for (const ParkedOf& one : parked_) {
    const TlsConnection& connection = one.parked.connection;
    if (one.fragment != fragment || connection.peer() != peer) continue;
    const short events = connection.poll_events_for_read();
    polls.push_back({connection.fd(), events != 0 ? events : short{POLLOUT}, 0});  // some is here already: at once
  }
}

void RingInbox::append_polls(FragmentId fragment, const std::vector<IslandId>& peers, std::vector<pollfd>& polls) {
  polls.push_back({arrival_of(fragment).get(), POLLIN, 0});
  for (const IslandId& peer : peers) append_parked(fragment, peer, polls);
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
