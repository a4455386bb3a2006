#include "net/transport/peer_listener.h"

#include <fmt/format.h>
#include <poll.h>
#include <spdlog/spdlog.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <list>
#include <mutex>
#include <thread>

#include "net/transport/socket.h"

namespace atl {
namespace {

// HTTPS connections of members that may wait for their turn; more are closed at once.
constexpr int kMaxWaitingHttp = 64;
// How long an accept thread rests when the process has no descriptor left for a new connection.
constexpr std::chrono::milliseconds kOutOfDescriptorsPause{100};

Result<RingHello> read_ring_hello(TlsConnection& connection, Deadline deadline, const AbortSignal& abort) {
  std::array<std::byte, kRingHelloPrefixBytes> prefix;
  ATOLL_RETURN_IF_ERROR(connection.read_exact(prefix, deadline, &abort));
  ATOLL_ASSIGN_OR_RETURN(const std::size_t length, decode_ring_hello_prefix(prefix));
  Bytes body(length);
  ATOLL_RETURN_IF_ERROR(connection.read_exact(body, deadline, &abort));
  ATOLL_ASSIGN_OR_RETURN(RingHello hello, decode_ring_hello_body(body));
  if (hello.from != connection.peer()) {
    return Error{ErrorCode::kCertificate, fmt::format("its hello says {}, its certificate does not", hello.from.value)};
  }
  return hello;
}

}  // namespace

class PeerListener::Impl {
 public:
  Impl(PeerListenerOptions options, TlsContext context, AdmitPeer admit, RingInbox& inbox, HttpHandler serve_http,
       UniqueFd socket)
      : options_(std::move(options)),
        context_(std::move(context)),
        admit_(std::move(admit)),
        inbox_(inbox),
        serve_http_(std::move(serve_http)),
        socket_(std::move(socket)),
        port_(local_port(socket_.get())),
        acceptor_([this] { accept_until_stopped(); }) {}

  ~Impl() {
    stop_.raise("the listener stops");
    {
      std::lock_guard lock(http_mutex_);  // a waiter has seen `stop_`, or sleeps and is woken
      for (Served& served : http_served_) served.abort.raise(stop_.reason());
    }
    http_turn_.notify_all();
    acceptor_.join();
    sessions_.clear();
  }

  std::uint16_t port() const { return port_; }
  void cut(const IslandId& peer) {
    std::lock_guard lock(http_mutex_);
    for (Served& served : http_served_) {
      if (served.peer == peer) served.abort.raise("no longer a member");
    }
  }

 private:
  struct Served {
    explicit Served(IslandId of) : peer(std::move(of)) {}
    const IslandId peer;
    AbortSignal abort;
  };
  // A thread for each connection, from its handshake until it is handed on or served.
  struct Session {
    std::atomic<bool> ended{false};
    std::jthread thread;  // last: joins before `ended` dies
  };

  void accept_until_stopped();
  void begin_session(UniqueFd socket);
  void run_session(UniqueFd socket);
  Status hand_on(TlsConnection connection, Deadline deadline);
  void serve_in_turn(TlsConnection connection);

  const PeerListenerOptions options_;
  const TlsContext context_;
  const AdmitPeer admit_;
  RingInbox& inbox_;
  const HttpHandler serve_http_;
  const UniqueFd socket_;
  const std::uint16_t port_;
  AbortSignal stop_;
  std::atomic<int> shaking_hands_{0};
  std::mutex http_mutex_;
  std::condition_variable http_turn_;
  std::list<Served> http_served_;  // guarded by http_mutex_
  int http_waiting_ = 0;           // guarded by http_mutex_
  std::list<Session> sessions_;    // of the acceptor thread, and of the destructor after it
  std::jthread acceptor_;
};

void PeerListener::Impl::accept_until_stopped() {
  std::array<pollfd, 2> watched{pollfd{socket_.get(), POLLIN, 0}, pollfd{stop_.fd(), POLLIN, 0}};
  while (!stop_.raised()) {
    (void)::poll(watched.data(), watched.size(), 1000);
    std::erase_if(sessions_, [](const Session& session) { return session.ended.load(); });
    UniqueFd accepted(::accept4(socket_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (accepted) {
      begin_session(std::move(accepted));
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      spdlog::warn("event=accept_failed reason=\"{}\"", std::strerror(errno));
      std::array<pollfd, 1> stopped{pollfd{stop_.fd(), POLLIN, 0}};
      (void)::poll(stopped.data(), stopped.size(), static_cast<int>(kOutOfDescriptorsPause.count()));
    }
  }
}

void PeerListener::Impl::begin_session(UniqueFd socket) {
  if (shaking_hands_.load() >= options_.max_pending_handshakes) return;  // closed: the dialler may try again
  ++shaking_hands_;
  Session& session = sessions_.emplace_back();
  try {
    session.thread = std::jthread([this, &session, fd = std::move(socket)]() mutable {
      run_session(std::move(fd));
      session.ended = true;
    });
  } catch (const std::system_error& error) {
    spdlog::warn("event=session_failed reason=\"no thread: {}\"", error.what());
    --shaking_hands_;
    sessions_.pop_back();
  }
}

void PeerListener::Impl::run_session(UniqueFd socket) {
  const Deadline deadline = Deadline::after(options_.handshake_timeout);
  Result<TlsConnection> connection = TlsConnection::accept(std::move(socket), context_, deadline, &stop_);
  if (!connection.ok()) {
    --shaking_hands_;
    // Anybody can cause these: not worth a line of a log that people read.
    spdlog::debug("event=handshake_refused reason=\"{}\"", connection.error().message);
    return;
  }
  const std::string peer = connection->description();
  const Status status = hand_on(std::move(*connection), deadline);
  if (!status.ok() && !stop_.raised()) {
    spdlog::warn("event=peer_refused peer=\"{}\" code={} reason=\"{}\"", peer, to_string(status.error().code),
                 status.error().message);
  }
}

Status PeerListener::Impl::hand_on(TlsConnection connection, Deadline deadline) {
  if (connection.peer().value == kHubName) {  // looks whether this port can be reached, and has seen that it can
    --shaking_hands_;
    return ok_status();
  }
  if (Status admitted = admit_(connection.peer_certificate()); !admitted.ok()) {
    --shaking_hands_;
    return admitted;
  }
  if (connection.alpn() == kAlpnHttp) {
    --shaking_hands_;
    serve_in_turn(std::move(connection));
    return ok_status();
  }
  Result<RingHello> hello = read_ring_hello(connection, deadline, stop_);
  --shaking_hands_;
  if (!hello.ok()) {
    if (hello.error().code == ErrorCode::kProtocol || hello.error().code == ErrorCode::kVersionUnsupported) {
      inbox_.refuse(connection.peer(), hello.error());
    }
    return hello.error();
  }
  inbox_.deliver(std::move(*hello), std::move(connection));
  return ok_status();
}

void PeerListener::Impl::serve_in_turn(TlsConnection connection) {
  const auto is_room = [this] { return std::ssize(http_served_) < options_.max_http_connections; };
  std::list<Served>::iterator served;
  {
    std::unique_lock lock(http_mutex_);
    if (!is_room()) {
      if (http_waiting_ >= kMaxWaitingHttp) return;
      ++http_waiting_;
      const bool turn =
          http_turn_.wait_for(lock, options_.handshake_timeout, [&] { return is_room() || stop_.raised(); });
      --http_waiting_;
      if (!turn) return;
    }
    if (stop_.raised()) return;
    served = http_served_.emplace(http_served_.end(), connection.peer());
  }
  try {
    serve_http_(std::move(connection), served->abort);
  } catch (const std::exception& error) {
    spdlog::error("event=http_failed reason=\"{}\"", error.what());
  }
  {
    std::lock_guard lock(http_mutex_);
    http_served_.erase(served);
  }
  http_turn_.notify_one();
}

Result<std::unique_ptr<PeerListener>> PeerListener::start(PeerListenerOptions options, TlsContext context,
                                                          AdmitPeer admit, RingInbox& inbox, HttpHandler serve_http) {
  ATOLL_ASSIGN_OR_RETURN(UniqueFd socket, listen_tcp(options.bind));
  try {
    auto impl = std::make_unique<Impl>(std::move(options), std::move(context), std::move(admit), inbox,
                                       std::move(serve_http), std::move(socket));
    return std::unique_ptr<PeerListener>(new PeerListener(std::move(impl)));
  } catch (const std::system_error& error) {
    return Error{ErrorCode::kIo, fmt::format("cannot start the listener's thread: {}", error.what())};
  }
}

PeerListener::PeerListener(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
PeerListener::~PeerListener() = default;
std::uint16_t PeerListener::port() const { return impl_->port(); }
void PeerListener::cut(const IslandId& peer) { impl_->cut(peer); }

}  // namespace atl
