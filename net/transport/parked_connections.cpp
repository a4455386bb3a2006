#include "net/transport/parked_connections.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <span>

#include "net/transport/oldest_of_most.h"
#include "net/transport/socket.h"

namespace atl {
namespace {

using Parked = ParkedConnections::One;

// Of one connection, in one look, keepalives, receipts and padding: whoever sends them without end must not keep us
// from looking at the time.
constexpr int kMostMessages = 256;
// Of one that was dialled ahead: its dialler asks every 4 s whether it stands, and that comes with an answer.
constexpr std::chrono::seconds kGoneAfter{30};

ParkedConnections::Kind kind_of(Schedule schedule) {
  return schedule == Schedule::kDirect ? ParkedConnections::Kind::kExchange : ParkedConnections::Kind::kRing;
}

// The hello that begins the connection's next attempt, if it has come.
Result<std::optional<RingHello>> read_hello(Parked& parked) {
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
Result<bool> skip_keepalive(Parked& parked) {
  ATOLL_ASSIGN_OR_RETURN(const bool has_header,
                         parked.connection.try_read_up_to(parked.surplus, kRingFrameHeaderBytes));
  if (!has_header) return false;
  ATOLL_ASSIGN_OR_RETURN(const RingFrameHeader header,
                         decode_ring_frame_header(std::span(parked.surplus).first<kRingFrameHeaderBytes>()));
  if (header.type != RingFrameType::kKeepalive) return Error{ErrorCode::kProtocol, "a frame between two attempts"};
  parked.surplus.clear();
  return true;
}

// Where the receiver dialled, what it said of the attempt before may come late.
bool may_be_told(const Parked& parked) {
  return parked.kind == ParkedConnections::Kind::kRing && !parked.ahead &&
         parked.connection.alpn() == kAlpnRingReceipts;
}

// False: not all of it is there yet.
Result<bool> skip_receipt(Parked& parked) {
  ATOLL_ASSIGN_OR_RETURN(const bool is_whole, parked.connection.try_read_up_to(parked.surplus, kRingReceiptBytes));
  if (!is_whole) return false;
  ATOLL_RETURN_IF_ERROR(decode_ring_receipt(ByteView(parked.surplus).first(kRingReceiptBytes)));
  parked.surplus.erase(parked.surplus.begin(),
                       parked.surplus.begin() + kRingReceiptBytes);  // it is shorter than others
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

// Keepalives of the attempt before are passed over, and so is padding where it may come. `bytes` were read of these.
Result<std::optional<RingHello>> next_hello(Parked& one, std::uint64_t& bytes) {
  for (int messages = 0; messages < kMostMessages; ++messages) {
    if (one.skips > 0) {
      const std::uint64_t before = one.skips;
      const Result<bool> skipped = skip_padding(one.connection, one.skips);
      bytes += before - one.skips;
      if (!skipped.ok()) return skipped.error();
      if (!*skipped) break;
    }
    ATOLL_ASSIGN_OR_RETURN(const bool has_prefix, one.connection.try_read_up_to(one.surplus, kRingHelloPrefixBytes));
    if (!has_prefix) break;
    const RingMessage message = ring_message_at(ByteView(one.surplus).first(4));
    if (message == RingMessage::kPadding && one.ahead) {
      ATOLL_ASSIGN_OR_RETURN(one.skips, decode_ring_padding_prefix(one.surplus));
      bytes += one.surplus.size();
      one.surplus.clear();
    } else if (message == RingMessage::kFrame) {
      ATOLL_ASSIGN_OR_RETURN(const bool is_whole, skip_keepalive(one));
      if (!is_whole) break;
      bytes += kRingFrameHeaderBytes;
    } else if (message == RingMessage::kReceipt && may_be_told(one)) {
      ATOLL_ASSIGN_OR_RETURN(const bool is_whole, skip_receipt(one));
      if (!is_whole) break;
      bytes += kRingReceiptBytes;
    } else {
      return read_hello(one);
    }
  }
  return std::optional<RingHello>();
}

// True: it is parked no more. `bytes` were passed over.
bool listen_to(Parked& one, std::uint64_t& bytes, ParkedConnections::Heard& heard) {
  Result<std::optional<RingHello>> hello = next_hello(one, bytes);
  if (hello.ok() && !hello->has_value()) return false;
  if (hello.ok() && (*hello)->from == one.connection.peer() && (*hello)->fragment == one.fragment) {
    heard.begun.push_back({std::move(**hello), std::move(one.connection)});
  } else {
    heard.ended.push_back(std::move(one));
  }
  return true;
}

pollfd poll_of(const TlsConnection& connection) {
  const short events = connection.poll_events_for_read();
  return {connection.fd(), events != 0 ? events : short{POLLOUT}, 0};  // some is here already: at once
}

}  // namespace

std::vector<ParkedConnections::One> ParkedConnections::park(One one) {
  std::vector<One> dropped;
  const IslandId peer = one.connection.peer();
  parked_.push_back(std::move(one));
  const auto of_peer = [&](const One& other) { return other.connection.peer() == peer; };
  while (static_cast<std::size_t>(std::ranges::count_if(parked_, of_peer)) > kMostOfPeer) {
    const auto first = oldest_of_most(
        parked_, [](const One& other) { return other.fragment; }, of_peer);
    dropped.push_back(std::move(*first));
    parked_.erase(first);
  }
  return dropped;
}

std::vector<ParkedConnections::One> ParkedConnections::drop_others(FragmentId fragment,
                                                                   const std::vector<IslandId>& peers, Kind kind) {
  std::vector<One> dropped;
  for (auto one = parked_.begin(); one != parked_.end();) {
    const bool is_meant = one->kind == kind && std::ranges::find(peers, one->connection.peer()) != peers.end();
    if (one->fragment != fragment || is_meant) {
      ++one;
      continue;
    }
    dropped.push_back(std::move(*one));
    one = parked_.erase(one);
  }
  return dropped;
}

void ParkedConnections::forget(const IslandId& peer) {
  limits_.forget(peer);
  std::erase_if(parked_, [&](const One& one) { return one.connection.peer() == peer; });
}

void ParkedConnections::finish(Deadline deadline) const {
  for (const One& one : parked_) {
    if (!one.ahead) wait_until_taken(one.connection.fd(), deadline);
  }
}

std::optional<TlsConnection> ParkedConnections::take_resting(FragmentId fragment, const IslandId& peer, Kind kind) {
  const auto is_meant = [&](const One& one) {
    return one.fragment == fragment && one.kind == kind && one.connection.peer() == peer;
  };
  const auto found = std::ranges::find_if(parked_, is_meant);
  if (found == parked_.end() || found->ahead || !found->surplus.empty()) return std::nullopt;
  if (std::ranges::count_if(parked_, is_meant) > 1) return std::nullopt;
  const Result<bool> has_come = found->connection.has_come();
  if (!has_come.ok() || *has_come) return std::nullopt;
  std::optional<TlsConnection> taken(std::move(found->connection));
  parked_.erase(found);
  return taken;
}

// Those whose dialler is gone without a word make room.
bool ParkedConnections::may_park_ahead(const RingAhead& ahead, const IslandId& peer) {
  const int most = limits_.most_of_fragment(ahead, peer);
  if (most == 0) return false;
  std::erase_if(parked_, [&](const One& one) {
    return one.ahead && one.connection.peer() == peer && since_last_answer(one.connection.fd()) > kGoneAfter;
  });
  std::size_t of_all = 0, of_peer = 0;
  int of_fragment = 0;
  for (const One& one : parked_) {
    const bool is_peers = one.connection.peer() == peer;
    of_all += one.ahead ? 1 : 0;
    of_peer += is_peers ? 1 : 0;
    of_fragment += is_peers && one.ahead && one.fragment == ahead.fragment ? 1 : 0;
  }
  return of_all < kMostAhead && of_peer < kMostOfPeer && of_fragment < most;
}

// The answer is a promise: whoever has it takes the connection for one that an attempt may begin with.
bool ParkedConnections::park_ahead(const RingAhead& ahead, TlsConnection&& connection) {
  const IslandId& peer = connection.peer();
  if (!may_park_ahead(ahead, peer)) return false;
  const RingAhead answer{ahead.fragment, ahead.schedule, limits_.reads_at_once(peer)};
  const auto written = connection.try_write(encode(answer));
  if (!written.ok() || *written < kRingHelloPrefixBytes) return false;
  parked_.push_back({ahead.fragment, kind_of(ahead.schedule), std::move(connection), {}, /*ahead=*/true});
  return true;
}

ParkedConnections::Heard ParkedConnections::listen(FragmentId fragment, const IslandId& peer) {
  Heard heard;
  for (auto one = parked_.begin(); one != parked_.end();) {
    std::uint64_t bytes = 0;
    const bool is_meant = one->fragment == fragment && one->connection.peer() == peer;
    one = is_meant && listen_to(*one, bytes, heard) ? parked_.erase(one) : one + 1;
  }
  return heard;
}

ParkedConnections::Heard ParkedConnections::read_ahead() {
  Heard heard;
  for (auto one = parked_.begin(); one != parked_.end();) {
    if (!reads_at_once(*one)) {
      ++one;
      continue;
    }
    const IslandId peer = one->connection.peer();
    std::uint64_t bytes = 0;
    const bool leaves = listen_to(*one, bytes, heard);
    limits_.has_read(peer, bytes);
    one = leaves ? parked_.erase(one) : one + 1;
  }
  return heard;
}

void ParkedConnections::append_polls(FragmentId fragment, const IslandId& peer, std::vector<pollfd>& polls) const {
  for (const One& one : parked_) {
    if (one.fragment == fragment && one.connection.peer() == peer) polls.push_back(poll_of(one.connection));
  }
}

void ParkedConnections::append_ahead(std::vector<pollfd>& polls) const {
  for (const One& one : parked_) {
    if (reads_at_once(one)) polls.push_back(poll_of(one.connection));
  }
}

std::set<std::pair<FragmentId, IslandId>> ParkedConnections::edges() const {
  std::set<std::pair<FragmentId, IslandId>> edges;
  for (const One& one : parked_) edges.emplace(one.fragment, one.connection.peer());
  return edges;
}

}  // namespace atl
