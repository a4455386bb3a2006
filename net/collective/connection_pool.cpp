#include "net/collective/connection_pool.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <thread>

#include "net/tls/context.h"
#include "net/transport/socket.h"
#include "net/wire/ring_frame.h"

namespace atl {
namespace {

// A connection whose peer answered so lately is taken for alive; others must acknowledge a keepalive first.
constexpr std::chrono::milliseconds kFreshFor{5'000};
// For that acknowledgement: several round trips of the longest link.
constexpr std::chrono::milliseconds kProbeTime{1'500};
constexpr std::chrono::milliseconds kProbeStep{10};

// Neither closed nor saying anything: between two attempts it is for the dialler to speak. (A keepalive of the attempt
// before may come late from a sender; that costs a new connection.) In an exchange the other end may begin as well.
// What the receiver of the attempt before said of it may come late, but not without end.
bool is_open(TlsConnection& connection, RingRole role) {
  if (role == RingRole::kExchange) return connection.has_come().ok();
  const bool may_be_told = role == RingRole::kSends && connection.alpn() == kAlpnRingReceipts;
  for (std::uint64_t receipts = 0; receipts <= kLateReceipts; ++receipts) {
    RingReceiptMessage late;
    const auto read = connection.try_read(late);
    if (!read.ok() || *read == 0) return read.ok();
    if (!may_be_told || !decode_ring_receipt(ByteView(late).first(*read)).ok()) return false;  // each is one record
  }
  return false;
}

bool send_keepalive(TlsConnection& connection) {
  std::array<std::byte, kRingFrameHeaderBytes> keepalive;
  encode(resting_keepalive(), keepalive);
  const auto written = connection.try_write(keepalive);
  return written.ok() && *written == keepalive.size();
}

bool is_unanswered(const TlsConnection& connection) { return tcp_progress(connection.fd()).bytes_queued > 0; }

// Lest the answer to this lone small packet be taken for the first of a rest's end (BBR, socket.h).
bool ask_whether_it_lives(TlsConnection& connection) {
  spare_bbr_its_probe(connection.fd());
  return send_keepalive(connection);
}

std::vector<Result<TlsConnection>> dial(const IslandId& peer, const Address& address, std::size_t count,
                                        const TlsContext& context, Deadline deadline, const AbortSignal& abort) {
  std::vector<Result<TlsConnection>> dialled;
  for (std::size_t i = 0; i < count; ++i) dialled.emplace_back(Error{});
  std::vector<std::jthread> threads;
  const auto dial_one = [&](std::size_t i) {
    dialled[i] = TlsConnection::connect(address, context, peer, deadline, &abort);
  };
  try {
    for (std::size_t i = 1; i < count; ++i) threads.emplace_back(dial_one, i);
    if (count > 0) dial_one(0);
  } catch (const std::system_error& error) {
    dialled[0] = Error{ErrorCode::kIo, std::string("cannot start a thread that dials: ") + error.what()};
  }
  threads.clear();  // they write to what is returned
  return dialled;
}

}  // namespace

void ConnectionPool::finish(Deadline deadline) {
  const MutexLock lock(mutex_);
  for (const auto& [end, kept] : kept_) {
    for (const TlsConnection& connection : kept.connections) wait_until_taken(connection.fd(), deadline);
  }
}

void ConnectionPool::drop_dead(std::vector<TlsConnection>& connections, RingRole role, const AbortSignal& abort) {
  std::erase_if(connections, [&](TlsConnection& connection) { return !is_open(connection, role); });
  std::vector<bool> probed;
  for (TlsConnection& connection : connections) {
    const bool stale = since_last_answer(connection.fd()) > kFreshFor;
    probed.push_back(stale && ask_whether_it_lives(connection));
  }
  const auto unanswered = [&](std::size_t i) { return probed[i] && is_unanswered(connections[i]); };
  const auto somebody_unanswered = [&] {
    for (std::size_t i = 0; i < connections.size(); ++i) {
      if (unanswered(i)) return true;
    }
    return false;
  };
  const Deadline deadline = Deadline::after(kProbeTime);
  while (somebody_unanswered() && !deadline.expired() && !abort.raised()) {
    pollfd aborted{abort.fd(), POLLIN, 0};
    (void)::poll(&aborted, 1, static_cast<int>(kProbeStep.count()));
  }
  std::vector<TlsConnection> alive;
  for (std::size_t i = 0; i < connections.size(); ++i) {
    if (!unanswered(i)) alive.push_back(std::move(connections[i]));
  }
  connections = std::move(alive);
}

Result<ConnectionPool::Edge> ConnectionPool::take(const EdgeEnd& end, const Address& address, int count,
                                                  Deadline deadline, const AbortSignal& abort) {
  Edge edge;
  {
    MutexLock lock(mutex_);
    if (const auto found = kept_.find(end); found != kept_.end()) {
      if (found->second.address == address) edge.connections = std::move(found->second.connections);
      kept_.erase(found);
    }
  }
  drop_dead(edge.connections, end.role, abort);
  std::vector<TlsConnection> beyond;
  while (edge.connections.size() > static_cast<std::size_t>(count)) {
    beyond.push_back(std::move(edge.connections.back()));
    edge.connections.pop_back();
  }
  give_back(end, address, std::move(beyond));
  edge.reused = static_cast<int>(edge.connections.size());
  auto dialled =
      dial(end.peer, address, static_cast<std::size_t>(count) - edge.connections.size(), context_, deadline, abort);
  for (Result<TlsConnection>& connection : dialled) {
    if (!connection.ok()) return connection.error();
    edge.connections.push_back(std::move(*connection));
  }
  return edge;
}

int ConnectionPool::count(const EdgeEnd& end, const Address& address) {
  MutexLock lock(mutex_);
  const auto found = kept_.find(end);
  if (found == kept_.end() || found->second.address != address) return 0;
  std::erase_if(found->second.connections, [&](TlsConnection& connection) { return !is_open(connection, end.role); });
  return static_cast<int>(found->second.connections.size());
}

void ConnectionPool::give_back(const EdgeEnd& end, const Address& address, std::vector<TlsConnection> connections) {
  if (connections.empty()) return;
  MutexLock lock(mutex_);
  Kept& kept = kept_[end];
  if (kept.address != address) kept.connections.clear();
  kept.address = address;
  for (TlsConnection& connection : connections) {
    if (kept.connections.size() < kMaxConnectionsPerEdge) kept.connections.push_back(std::move(connection));
  }
}

void ConnectionPool::forget(const IslandId& peer) {
  MutexLock lock(mutex_);
  std::erase_if(kept_, [&](const auto& entry) { return entry.first.peer == peer; });
}

void ConnectionPool::keep_warm() {
  const MutexLock lock(mutex_);
  for (auto& [end, kept] : kept_) {
    std::erase_if(kept.connections, [role = end.role](TlsConnection& connection) {
      const bool gone = is_unanswered(connection) && since_last_answer(connection.fd()) > kFreshFor + kProbeTime;
      return gone || !is_open(connection, role);
    });
    for (TlsConnection& connection : kept.connections) {
      if (!is_unanswered(connection)) (void)ask_whether_it_lives(connection);
    }
  }
}

void ConnectionPool::keep_only(const std::vector<EdgeEnd>& ends) {
  MutexLock lock(mutex_);
  std::erase_if(kept_, [&](const auto& entry) { return std::ranges::find(ends, entry.first) == ends.end(); });
}

}  // namespace atl
