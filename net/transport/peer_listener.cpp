#include "net/transport/peer_listener.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <list>
#include <map>
#include <optional>
#include <thread>
#include <utility>

#include "net/base/mutex.h"
#include "net/base/open_files.h"
#include "net/transport/peer_door.h"
#include "net/transport/socket.h"

namespace atl {
namespace {

constexpr std::chrono::milliseconds kTurn{1'000};         // between two looks at the clock
constexpr std::chrono::milliseconds kTurnOfWaiting{250};  // while somebody waits for a place

}  // namespace

class PeerListener::Impl {
 public:
  Impl(const PeerListenerOptions& options, AdmitPeer admit, HttpHandler serve_http)
      : admit_(std::move(admit)), serve_http_(std::move(serve_http)), turns_(options.serving) {}
  ~Impl();

  Status start(const PeerListenerOptions& options, TlsContext context, RingInbox& inbox);
  std::uint16_t port() const { return port_; }
  void cut(const IslandId& peer);
  void expect(const std::vector<std::string>& hosts);

 private:
  // A thread for each connection that is served.
  struct Session {
    Session(ConnectionId of, IslandId who, std::function<void(bool)> tell_idle)
        : id(of), peer(std::move(who)), http(std::move(tell_idle)) {}
    const ConnectionId id;
    const IslandId peer;
    HttpSession http;
    std::atomic<bool> ended{false};
    std::jthread thread;  // last: joins before what it uses dies
  };

  void run();
  void queue(ConnectionId id, TlsConnection connection);
  void carry_out(const ServingTurns::Change& change);
  void end(ConnectionId id);
  void begin(ConnectionId id);
  void serve(Session& session, TlsConnection connection);
  void reap();
  void set_idle(ConnectionId id, bool idle);

  const AdmitPeer admit_;
  const HttpHandler serve_http_;
  std::uint16_t port_ = 0;
  std::atomic<bool> stop_{false};
  std::unique_ptr<PeerDoor> door_;

  Mutex mutex_;
  ServingTurns turns_ ATOLL_GUARDED_BY(mutex_);
  std::list<Session> sessions_ ATOLL_GUARDED_BY(mutex_);  // only the port's thread adds and removes
  std::optional<std::vector<NetworkAddress>> expected_ ATOLL_GUARDED_BY(mutex_);  // for the port's thread
  std::map<ConnectionId, TlsConnection> waiting_;                                 // the port's thread; for a place
  std::jthread thread_;
};

Status PeerListener::Impl::start(const PeerListenerOptions& options, TlsContext context, RingInbox& inbox) {
  ATOLL_ASSIGN_OR_RETURN(UniqueFd socket, listen_tcp(options.bind));
  port_ = local_port(socket.get());
  PeerDoor::Calls calls{admit_,
                        [this](ConnectionId id, TlsConnection connection) { queue(id, std::move(connection)); }};
  ATOLL_ASSIGN_OR_RETURN(
      door_, PeerDoor::open(std::move(socket), std::move(context), options.connections.within(open_file_limit()),
                            options.handshake_timeout, inbox, std::move(calls)));
  try {
    thread_ = std::jthread([this] { run(); });
  } catch (const std::system_error& error) {
    return Error{ErrorCode::kIo, fmt::format("cannot start the listener's thread: {}", error.what())};
  }
  return ok_status();
}

PeerListener::Impl::~Impl() {
  if (!thread_.joinable()) return;
  stop_ = true;
  door_->wake();
  thread_.join();
  {
    MutexLock lock(mutex_);
    for (Session& session : sessions_) session.http.abort().raise("the listener stops");
  }
  sessions_.clear();  // joins, outside of the lock, which they take
}

void PeerListener::Impl::run() {
  while (!stop_) {
    std::chrono::milliseconds most = kTurn;
    {
      MutexLock lock(mutex_);
      if (turns_.waiting() > 0) most = kTurnOfWaiting;
      if (expected_) door_->expect(*std::exchange(expected_, std::nullopt));
    }
    door_->turn(most);
    reap();
  }
}

void PeerListener::Impl::queue(ConnectionId id, TlsConnection connection) {
  const IslandId peer = connection.peer();
  waiting_.emplace(id, std::move(connection));
  ServingTurns::Change change;
  {
    MutexLock lock(mutex_);
    change = turns_.ask(id, peer, Clock::now());
  }
  carry_out(change);
}

void PeerListener::Impl::carry_out(const ServingTurns::Change& change) {
  for (const ConnectionId id : change.end) end(id);
  for (const ConnectionId id : change.begin) begin(id);
}

// Of one that waits, or is served.
void PeerListener::Impl::end(ConnectionId id) {
  if (waiting_.erase(id) > 0) return door_->closed(id);
  MutexLock lock(mutex_);
  for (Session& session : sessions_) {
    if (session.id == id) session.http.abort().raise("others need its place");
  }
}

void PeerListener::Impl::begin(ConnectionId id) {
  auto waiting = waiting_.extract(id);
  if (waiting.empty()) return;
  TlsConnection connection = std::move(waiting.mapped());
  MutexLock lock(mutex_);
  Session& session = sessions_.emplace_back(id, connection.peer(), [this, id](bool idle) { set_idle(id, idle); });
  // Still, after its wait; asked now that cut() finds the session.
  session.ended = !admit_(connection.peer_certificate()).ok();
  if (session.ended) return door_->wake();
  try {
    session.thread =
        std::jthread([this, &session, held = std::move(connection)]() mutable { serve(session, std::move(held)); });
  } catch (const std::system_error& error) {
    spdlog::warn("event=session_failed reason=\"no thread: {}\"", error.what());
    session.ended = true;
    door_->wake();
  }
}

void PeerListener::Impl::serve(Session& session, TlsConnection connection) {
  try {
    serve_http_(std::move(connection), session.http);
  } catch (const std::exception& error) {
    spdlog::error("event=http_failed reason=\"{}\"", error.what());
  }
  session.ended = true;
  door_->wake();
}

// Those that ended leave their places to others.
void PeerListener::Impl::reap() {
  std::list<Session> ended;  // joined after the lock is released
  ServingTurns::Change change;
  {
    MutexLock lock(mutex_);
    change = turns_.at(Clock::now());
    for (auto session = sessions_.begin(); session != sessions_.end();) {
      const auto next = std::next(session);
      if (session->ended) ended.splice(ended.end(), sessions_, session);
      session = next;
    }
    for (const Session& session : ended) {
      door_->closed(session.id);
      const ServingTurns::Change more = turns_.ended(session.id, Clock::now());
      change.begin.insert(change.begin.end(), more.begin.begin(), more.begin.end());
      change.end.insert(change.end.end(), more.end.begin(), more.end.end());
    }
  }
  carry_out(change);
}

void PeerListener::Impl::set_idle(ConnectionId id, bool idle) {
  MutexLock lock(mutex_);
  idle ? turns_.set_idle(id, Clock::now()) : turns_.set_busy(id);
}

void PeerListener::Impl::cut(const IslandId& peer) {
  MutexLock lock(mutex_);
  for (Session& session : sessions_) {
    if (session.peer == peer) session.http.abort().raise("no longer a member");
  }
}

void PeerListener::Impl::expect(const std::vector<std::string>& hosts) {
  std::vector<NetworkAddress> addresses;
  for (const std::string& host : hosts) {
    if (const auto address = NetworkAddress::parse(host)) addresses.push_back(*address);
  }
  MutexLock lock(mutex_);
  expected_ = std::move(addresses);
  door_->wake();
}

Result<std::unique_ptr<PeerListener>> PeerListener::start(const PeerListenerOptions& options, TlsContext context,
                                                          AdmitPeer admit, RingInbox& inbox, HttpHandler serve_http) {
  auto impl = std::make_unique<Impl>(options, std::move(admit), std::move(serve_http));
  ATOLL_RETURN_IF_ERROR(impl->start(options, std::move(context), inbox));
  return std::unique_ptr<PeerListener>(new PeerListener(std::move(impl)));
}

PeerListener::PeerListener(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
PeerListener::~PeerListener() = default;
std::uint16_t PeerListener::port() const { return impl_->port(); }
void PeerListener::cut(const IslandId& peer) { impl_->cut(peer); }
void PeerListener::expect(const std::vector<std::string>& hosts) { impl_->expect(hosts); }

}  // namespace atl
