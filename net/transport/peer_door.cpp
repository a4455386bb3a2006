#include "net/transport/peer_door.h"

#include <fmt/format.h>
#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <variant>

#include "net/transport/socket.h"

namespace atl {
namespace {

constexpr std::uint64_t kListening = 0;  // in place of a ConnectionId, which begin at 1
constexpr std::uint64_t kWake = ~std::uint64_t{0};
constexpr std::size_t kEventsAtOnce = 256;
constexpr int kAcceptsAtOnce = 64;
// Strangers' handshakes in one turn: each takes the better part of a millisecond, and members are looked at between.
constexpr int kStrangersAtOnce = 8;
// How long accepting rests when the process has no descriptor left for a new connection.
constexpr std::chrono::milliseconds kOutOfDescriptorsPause{100};

bool has_ended(int fd) {
  char byte = 0;
  return ::recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

// One that was removed may come again and again.
void log_refused(LogLimit& limit, const TlsConnection& connection, const Error& error) {
  const auto held_back = limit.pass(fmt::format("{} {}", connection.peer().value, to_string(error.code)));
  if (!held_back) return;
  spdlog::warn("event=peer_refused peer=\"{}\" code={} reason=\"{}\" held_back={}", connection.description(),
               to_string(error.code), error.message, *held_back);
}

// How a ring connection begins. Empty when not all of it has come.
using RingBeginning = std::variant<RingHello, RingAhead>;
Result<std::optional<RingBeginning>> next_beginning(TlsConnection& connection, Bytes& hello) {
  ATOLL_ASSIGN_OR_RETURN(const bool has_prefix, connection.try_read_up_to(hello, kRingHelloPrefixBytes));
  if (!has_prefix) return std::optional<RingBeginning>();
  if (ring_message_at(ByteView(hello).first(4)) == RingMessage::kAhead) {
    ATOLL_ASSIGN_OR_RETURN(const RingAhead ahead, decode_ring_ahead(hello));
    return std::optional<RingBeginning>(ahead);
  }
  ATOLL_ASSIGN_OR_RETURN(const std::size_t length,
                         decode_ring_hello_prefix(ByteView(hello).first(kRingHelloPrefixBytes)));
  ATOLL_ASSIGN_OR_RETURN(const bool has_body, connection.try_read_up_to(hello, kRingHelloPrefixBytes + length));
  if (!has_body) return std::optional<RingBeginning>();
  ATOLL_ASSIGN_OR_RETURN(RingHello said, decode_ring_hello_body(ByteView(hello).subspan(kRingHelloPrefixBytes)));
  if (said.from != connection.peer()) {
    return Error{ErrorCode::kCertificate, fmt::format("its hello says {}, its certificate does not", said.from.value)};
  }
  return std::optional<RingBeginning>(std::move(said));
}

}  // namespace

Result<std::unique_ptr<PeerDoor>> PeerDoor::open(UniqueFd listening, TlsContext context, const ConnectionSizes& sizes,
                                                 std::chrono::milliseconds handshake_timeout, RingInbox& inbox,
                                                 Calls calls) {
  std::unique_ptr<PeerDoor> door(
      new PeerDoor(std::move(listening), std::move(context), sizes, handshake_timeout, inbox, std::move(calls)));
  ATOLL_RETURN_IF_ERROR(door->start());
  return door;
}

PeerDoor::PeerDoor(UniqueFd listening, TlsContext context, const ConnectionSizes& sizes,
                   std::chrono::milliseconds handshake_timeout, RingInbox& inbox, Calls calls)
    : listening_(std::move(listening)),
      context_(std::move(context)),
      handshake_timeout_(handshake_timeout),
      inbox_(inbox),
      calls_(std::move(calls)),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      limits_(sizes) {}

Status PeerDoor::start() {
  if (epoll_ && wake_ && watch(listening_.get(), EPOLL_CTL_ADD, POLLIN, kListening) &&
      watch(wake_.get(), EPOLL_CTL_ADD, POLLIN, kWake)) {
    return ok_status();
  }
  return Error{ErrorCode::kIo, fmt::format("cannot watch the listening port: {}", std::strerror(errno))};
}

// poll(2)'s names of events are epoll's, too.
bool PeerDoor::watch(int fd, int operation, short events, std::uint64_t id) {
  epoll_event event{};
  event.events = static_cast<std::uint32_t>(events);
  event.data.u64 = id;
  return ::epoll_ctl(epoll_.get(), operation, fd, &event) == 0;
}

void PeerDoor::wake() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(wake_.get(), &one, sizeof one);
}

void PeerDoor::turn(std::chrono::milliseconds most) {
  Deadline deadline = Deadline::after(most);
  if (!pending_.empty()) deadline = deadline.but_not_after(pending_.begin()->second.deadline);
  std::array<epoll_event, kEventsAtOnce> events;
  const int count = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()),
                                 deadline.poll_milliseconds(static_cast<int>(most.count())));
  std::vector<ConnectionId> strangers;
  bool has_newcomers = false;
  for (const epoll_event& event : std::span(events).first(static_cast<std::size_t>(std::max(count, 0)))) {
    if (event.data.u64 == kListening) {
      has_newcomers = true;
    } else if (event.data.u64 == kWake) {
      std::uint64_t ignored = 0;
      [[maybe_unused]] const auto drained = ::read(wake_.get(), &ignored, sizeof ignored);
    } else if (const auto found = pending_.find(event.data.u64); found != pending_.end()) {
      found->second.known ? drive(found->first) : strangers.push_back(found->first);
    }
  }
  // The others are told of again: their events are still there.
  if (strangers.size() > kStrangersAtOnce) strangers.resize(kStrangersAtOnce);
  for (const ConnectionId id : strangers) drive(id);
  if (has_newcomers) accept_all();
  end_overdue();
}

void PeerDoor::accept_all() {
  for (int i = 0; i < kAcceptsAtOnce; ++i) {
    UniqueFd accepted(::accept4(listening_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (accepted) {
      begin(std::move(accepted));
      continue;
    }
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      spdlog::warn("event=accept_failed reason=\"{}\"", std::strerror(errno));
      pollfd woken{wake_.get(), POLLIN, 0};
      (void)::poll(&woken, 1, static_cast<int>(kOutOfDescriptorsPause.count()));
    }
    return;
  }
}

void PeerDoor::begin(UniqueFd socket) {
  const auto from = NetworkAddress::parse(remote_address(socket.get()).host);
  const ConnectionLimits::Admitted admitted = limits_.admit(from.value_or(NetworkAddress()));
  drop(admitted.dropped);
  if (!watch(socket.get(), EPOLL_CTL_ADD, POLLIN, admitted.id)) return limits_.closed(admitted.id);
  Pending pending{std::move(socket), {}, admitted.known, false, POLLIN, {}, Deadline::after(handshake_timeout_)};
  pending_.emplace(admitted.id, std::move(pending));
}

void PeerDoor::drive(ConnectionId id) {
  const auto found = pending_.find(id);
  if (found == pending_.end()) return;  // dropped in this turn
  const Next next = advance(id, found->second);
  if (next == Next::kEnd) end(id);
  if (next == Next::kHandedOn) pending_.erase(id);
}

PeerDoor::Next PeerDoor::advance(ConnectionId id, Pending& pending) {
  if (!pending.tls) {
    if (has_ended(pending.socket.get())) return Next::kEnd;
    limits_.spoke(id);
    Result<TlsConnection> begun = TlsConnection::begin_accept(std::move(pending.socket), context_);
    if (!begun.ok()) return Next::kEnd;
    pending.tls.emplace(std::move(*begun));
  }
  return pending.verified ? read_hello(id, pending) : shake_hands(id, pending);
}

PeerDoor::Next PeerDoor::shake_hands(ConnectionId id, Pending& pending) {
  const Result<bool> done = pending.tls->try_accept();
  if (!done.ok()) {
    // Anybody can cause these: not worth a line of a log that people read.
    spdlog::debug("event=handshake_refused reason=\"{}\"", done.error().message);
    return Next::kEnd;
  }
  return *done ? welcome(id, pending) : wait(id, pending);
}

PeerDoor::Next PeerDoor::welcome(ConnectionId id, Pending& pending) {
  const IslandId& peer = pending.tls->peer();
  if (peer.value == kHubName) return Next::kEnd;  // looks whether this port can be reached, and has seen that it can
  if (const Status admitted = calls_.admit(pending.tls->peer_certificate()); !admitted.ok()) {
    log_refused(refused_, *pending.tls, admitted.error());
    return Next::kEnd;
  }
  const ConnectionLimits::Dropped dropped = limits_.verified(id, peer, Clock::now());
  if (!limits_.holds(id)) return Next::kEnd;
  drop(dropped);
  pending.verified = true;
  if (pending.tls->alpn() != kAlpnHttp) return read_hello(id, pending);
  limits_.set_busy(id);
  calls_.on_https(id, take(pending));
  return Next::kHandedOn;
}

PeerDoor::Next PeerDoor::read_hello(ConnectionId id, Pending& pending) {
  Result<std::optional<RingBeginning>> hello = next_beginning(*pending.tls, pending.hello);
  if (!hello.ok()) {
    const Error& error = hello.error();
    log_refused(refused_, *pending.tls, error);
    if (error.code == ErrorCode::kProtocol || error.code == ErrorCode::kVersionUnsupported) {
      inbox_.refuse(pending.tls->peer(), error);
    }
    return Next::kEnd;
  }
  if (!hello->has_value()) return wait(id, pending);
  limits_.closed(id);
  if (auto* said = std::get_if<RingHello>(&**hello)) {
    inbox_.deliver(std::move(*said), take(pending));
  } else if (!inbox_.park_ahead(std::get<RingAhead>(**hello), take(pending))) {
    spdlog::debug("event=connection_ahead_refused");
  }
  return Next::kHandedOn;
}

PeerDoor::Next PeerDoor::wait(ConnectionId id, Pending& pending) {
  const short events = pending.tls->poll_events_for_read();
  if (events == pending.events) return Next::kWait;
  pending.events = events;
  return watch(pending.tls->fd(), EPOLL_CTL_MOD, events, id) ? Next::kWait : Next::kEnd;
}

// It lives on elsewhere, and is not to be watched here.
TlsConnection PeerDoor::take(Pending& pending) {
  (void)watch(pending.tls->fd(), EPOLL_CTL_DEL, 0, 0);
  return std::move(*pending.tls);
}

void PeerDoor::end(ConnectionId id) {
  limits_.closed(id);
  pending_.erase(id);
}

// Those that were handed on are in nobody's way: they count as busy.
void PeerDoor::drop(const ConnectionLimits::Dropped& ids) {
  for (const ConnectionId id : ids) {
    spdlog::debug("event=connection_dropped reason=\"others came\"");
    pending_.erase(id);
  }
}

void PeerDoor::end_overdue() {
  while (!pending_.empty() && pending_.begin()->second.deadline.expired()) {
    const auto& [id, pending] = *pending_.begin();
    if (pending.verified) log_refused(refused_, *pending.tls, Error{ErrorCode::kTimeout, "it said no hello in time"});
    end(id);
  }
}

}  // namespace atl
