#include "net/mesh/mesh_client.h"

#include <fmt/format.h>
#include <openssl/ssl.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl/error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/buffers_to_string.hpp>
#include <deque>
#include <thread>

#include "net/base/backoff.h"
#include "net/base/mailbox.h"
#include "net/base/mutex.h"
#include "net/mesh/commit_signature.h"
#include "net/mesh/spawn.h"
#include "net/mesh/web_socket.h"

namespace atl {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::ip::tcp;

constexpr std::size_t kInboxMessages = 1024;
constexpr std::size_t kOutboxMessages = 1024;
constexpr std::chrono::milliseconds kCloseTimeout{1'000};
// A connection that stood for so long has shown that the hub and the way to it are well.
constexpr std::chrono::seconds kStood{10};

// Ours or, so it seems, the hub's refusal of a certificate. Nobody has vouched for it: anybody on the way may answer in
// the hub's place, or send an alert. It is tried again like all else, and told to the owner, who may know better.
bool is_certificate_refusal(const boost::system::error_code& error) {
  if (error.category() != asio::error::get_ssl_category()) return false;
  switch (ERR_GET_REASON(static_cast<unsigned long>(error.value()))) {
    case SSL_R_CERTIFICATE_VERIFY_FAILED:
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_REVOKED:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
    case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED: return true;
    default: return false;
  }
}

Error connection_error(const boost::system::error_code& error, const Address& hub) {
  if (is_certificate_refusal(error)) {
    return Error{
        ErrorCode::kCertificate,
        fmt::format("what answers at {} and this island do not accept each other's certificates ({}); if it lasts, the "
                    "run was made anew, this certificate has expired or a clock is wrong: check the clock, or join "
                    "again with a new invite",
                    to_string(hub), error.message())};
  }
  return Error{ErrorCode::kUnreachable, fmt::format("hub {}: {}", to_string(hub), error.message())};
}

// Why a connection that stood ended, for a person.
std::string how_it_ended(const boost::system::error_code& error) {
  const bool closed = error == beast::websocket::error::closed || error == asio::error::eof ||
                      error == asio::ssl::error::stream_truncated;
  return closed ? "the hub closed the connection; is it being restarted?"
                : "the connection to the hub broke: " + error.message();
}

// Codes of what only a hub whose certificate was verified can have said.
bool is_final(const Error& error) {
  return error.code == ErrorCode::kPermissionDenied || error.code == ErrorCode::kVersionUnsupported;
}

}  // namespace

class MeshClient::Impl {
  struct Session {  // one connection; a write that is under way may outlive its use
    Session(asio::io_context& io, asio::ssl::context& tls) : socket(beast::tcp_stream(io), tls) {}
    WebSocket socket;
    bool writing = false;
  };

 public:
  Impl(MeshClientOptions options, Identity identity, TlsContext tls, Callbacks callbacks)
      : options_(std::move(options)),
        identity_(std::move(identity)),
        callbacks_(std::move(callbacks)),
        tls_(share_context(tls)),
        pause_(options_.first_pause, options_.longest_pause),
        retry_timer_(io_),
        welcome_timer_(io_),
        beat_timer_(io_),
        close_timer_(io_) {}
  ~Impl();

  void start();
  bool send(const IslandMessage& message);
  Result<HubMessage> next(Deadline deadline);
  void wake() { inbox_.wake(); }
  bool connected() const { return connected_; }

 private:
  asio::awaitable<void> run();
  asio::awaitable<Error> visit(Address hub, bool& met);
  asio::awaitable<Status> connect(Address hub);
  asio::awaitable<Error> converse();
  void cut_without_welcome();
  void welcomed();
  asio::awaitable<void> beat();
  asio::awaitable<void> write_outbox(std::shared_ptr<Session> session);
  Status take(const std::string& text);
  bool queue(const HubMessage& message);  // false: the inbox is full
  void wake_writer();
  auto when_it_throws(std::shared_ptr<Session> session);
  void begin_closing();
  void give_up(Error reason);

  const MeshClientOptions options_;
  const Identity identity_;
  const Callbacks callbacks_;

  Mutex mutex_;
  std::deque<std::string> outbox_ ATOLL_GUARDED_BY(mutex_);
  std::optional<Error> given_up_ ATOLL_GUARDED_BY(mutex_);
  std::optional<HubRoster> roster_ ATOLL_GUARDED_BY(mutex_);  // the one that waits in inbox_, where it stands empty
  bool closed_ ATOLL_GUARDED_BY(mutex_) = false;
  std::atomic<bool> connected_{false};
  Mailbox<HubMessage> inbox_{kInboxMessages};

  // On the client's thread alone:
  asio::io_context io_{1};
  asio::ssl::context tls_;
  std::shared_ptr<Session> session_;
  std::string hub_certificate_pem_;  // of the connection's hub
  std::string heartbeat_;            // the next thing to write, if not empty; never queued
  bool closing_ = false;
  std::chrono::milliseconds heartbeat_period_{0};  // 0 until the connection's welcome
  bool ever_welcomed_ = false;
  Backoff pause_;
  asio::steady_timer retry_timer_;
  asio::steady_timer welcome_timer_;
  asio::steady_timer beat_timer_;
  asio::steady_timer close_timer_;
  std::jthread thread_;
};

// ---- any thread

void MeshClient::Impl::start() {
  spawn(io_, run(), [this](const std::string& what) {
    give_up(Error{ErrorCode::kInternal, fmt::format("the mesh client ended: {}", what)});
  });
  thread_ = std::jthread([this] {
    try {
      io_.run();
    } catch (const std::exception& error) {
      give_up(Error{ErrorCode::kInternal, fmt::format("the mesh client's thread ended: {}", error.what())});
    }
  });
}

MeshClient::Impl::~Impl() {
  {
    MutexLock lock(mutex_);
    closed_ = true;
  }
  asio::post(io_, [this] { begin_closing(); });
  if (thread_.joinable()) thread_.join();
}

bool MeshClient::Impl::send(const IslandMessage& message) {
  {
    MutexLock lock(mutex_);
    if (closed_ || given_up_ || outbox_.size() >= kOutboxMessages) return false;
    outbox_.push_back(encode(message));
  }
  asio::post(io_, [this] { wake_writer(); });
  return true;
}

Result<HubMessage> MeshClient::Impl::next(Deadline deadline) {
  if (auto message = inbox_.pop(deadline)) {
    if (!std::holds_alternative<HubRoster>(*message)) return std::move(*message);
    MutexLock lock(mutex_);
    return HubMessage(*std::exchange(roster_, std::nullopt));
  }
  MutexLock lock(mutex_);
  if (given_up_) return *given_up_;
  return Error{ErrorCode::kTimeout, "no message of the hub yet"};
}

void MeshClient::Impl::give_up(Error reason) {
  {
    MutexLock lock(mutex_);
    if (!given_up_) given_up_ = std::move(reason);
  }
  inbox_.close();
}

// ---- the client's thread

asio::awaitable<void> MeshClient::Impl::run() {
  const auto began = Clock::now();
  for (std::size_t turn = 0; !closing_; ++turn) {
    const Address hub = options_.hub_addresses[turn % options_.hub_addresses.size()];
    const auto stands_since = Clock::now();
    bool met = false;
    const Error failure = co_await visit(hub, met);
    const bool stood = met && failure.code != ErrorCode::kInternal && Clock::now() - stands_since >= kStood;
    if (stood) pause_.reset();
    if (closing_) break;
    if (is_final(failure) || inbox_.closed()) co_return give_up(failure);
    const auto since = Clock::now() - began;
    if (!ever_welcomed_ && since >= options_.reconnect_for) {
      co_return give_up(
          Error{ErrorCode::kUnreachable,
                fmt::format("the hub did not answer for {:.0f} s ({}): is it running, and does a firewall "
                            "let this machine reach it?",
                            Seconds(since).count(), failure.message)});
    }
    spdlog::info("mesh retry error=\"{}\"", failure.message);
    const auto left = ever_welcomed_ ? std::nullopt : std::optional<Seconds>(options_.reconnect_for - since);
    if (callbacks_.lost) callbacks_.lost(failure.message, left);
    // The islands of a hub that restarts do not all come in the same moment.
    retry_timer_.expires_after(pause_.next());
    co_await retry_timer_.async_wait(kAwait);
  }
  io_.stop();
}

// One connection, from dialling to its end, and why it ended. What is thrown in it ends it alone.
asio::awaitable<Error> MeshClient::Impl::visit(Address hub, bool& met) {
  std::string thrown;
  try {
    const Status connected = co_await connect(std::move(hub));
    if (!connected.ok()) co_return connected.error();
    met = true;
    const Error ended = co_await converse();
    co_return ended;
  } catch (...) {
    thrown = what_of(std::current_exception());
  }
  connected_ = false;
  beat_timer_.cancel();
  if (session_) beast::get_lowest_layer(session_->socket).close();
  co_return Error{ErrorCode::kInternal, fmt::format("the connection to the hub was given up: {}", thrown)};
}

// By value: coroutine arguments outlive the suspension.
asio::awaitable<Status> MeshClient::Impl::connect(Address hub) {
  tcp::resolver resolver(io_);
  const auto [resolve_error, endpoints] = co_await resolver.async_resolve(hub.host, std::to_string(hub.port), kAwait);
  if (resolve_error) co_return connection_error(resolve_error, hub);
  session_ = std::make_shared<Session>(io_, tls_);
  WebSocket& socket = session_->socket;
  auto& lowest = beast::get_lowest_layer(socket);
  lowest.expires_after(options_.connect_timeout);
  const auto [connect_error, endpoint] = co_await lowest.async_connect(endpoints, kAwait);
  if (connect_error) co_return connection_error(connect_error, hub);
  boost::system::error_code ignored;
  lowest.socket().set_option(tcp::no_delay(true), ignored);
  const AsioError tls_error = co_await handshake_tls(socket);
  if (tls_error) co_return connection_error(tls_error, hub);
  const Result<PeerCertificate> peer = verified_peer(socket.next_layer().native_handle());
  if (!peer.ok()) co_return peer.error();
  if (peer->name.value != kHubName) {
    co_return Error{ErrorCode::kCertificate, fmt::format("{} is not the run's hub but {}; check the hub's address",
                                                         to_string(hub), peer->name.value)};
  }
  const Result<std::string> certificate = peer_certificate_pem(socket.next_layer().native_handle());
  if (!certificate.ok()) co_return certificate.error();
  hub_certificate_pem_ = *certificate;
  lowest.expires_never();
  // A hub that vanished without a word is found out by pings.
  socket.set_option(beast::websocket::stream_base::timeout{options_.connect_timeout, RunConfig{}.dead_after,
                                                           /*keep_alive_pings=*/true});
  socket.read_message_max(kMaxMeshMessageBytes);
  socket.text(true);
  beast::websocket::response_type response;
  const AsioError error = co_await handshake_web_socket(socket, response, to_string(hub), "/mesh");
  if (error == beast::websocket::error::upgrade_declined && response.result() == http::status::forbidden) {
    co_return Error{ErrorCode::kPermissionDenied,
                    "the hub no longer has this island in its roster: it was removed; join again with a new invite"};
  }
  if (error == beast::websocket::error::upgrade_declined) {
    co_return Error{ErrorCode::kUnreachable,
                    fmt::format("hub {} takes no island now (HTTP status {})", to_string(hub), response.result_int())};
  }
  if (error) co_return connection_error(error, hub);
  co_return ok_status();
}

// From the hello to the end of the connection; says why it ended.
asio::awaitable<Error> MeshClient::Impl::converse() {
  const std::string hello = encode(IslandMessage(callbacks_.hello()));
  const auto session = session_;
  WebSocket& socket = session->socket;
  session->writing = true;
  const AsioError hello_error = co_await write_message(socket, hello);
  session->writing = false;
  Error ended{ErrorCode::kPeerLost, how_it_ended(hello_error)};
  if (hello_error) co_return ended;
  connected_ = true;
  heartbeat_period_ = {};
  welcome_timer_.expires_after(options_.welcome_timeout);
  welcome_timer_.async_wait([this](const boost::system::error_code& cancelled) {
    if (!cancelled) cut_without_welcome();
  });
  wake_writer();
  beast::flat_buffer buffer;
  for (;;) {
    buffer.clear();
    const AsioError error = co_await read_message(socket, buffer);
    if (error) {
      const bool unwelcome = heartbeat_period_.count() == 0 && welcome_timer_.expiry() <= Clock::now();
      ended.message = unwelcome ? "the hub accepted the connection but sends no welcome" : how_it_ended(error);
      break;
    }
    const Status taken = take(beast::buffers_to_string(buffer.data()));
    if (!taken.ok()) {
      ended = taken.error();
      break;
    }
  }
  connected_ = false;
  welcome_timer_.cancel();
  beat_timer_.cancel();
  beast::get_lowest_layer(socket).close();
  co_return ended;
}

// Who reads the connection finds it closed, and connects anew.
auto MeshClient::Impl::when_it_throws(std::shared_ptr<Session> session) {
  return [session = std::move(session)](const std::string& what) {
    spdlog::error("mesh failed=\"{}\"", what);
    beast::get_lowest_layer(session->socket).close();
  };
}

// The reader sees it and connects anew.
void MeshClient::Impl::cut_without_welcome() {
  if (connected_ && heartbeat_period_.count() == 0) beast::get_lowest_layer(session_->socket).close();
}

Status MeshClient::Impl::take(const std::string& text) {
  ATOLL_ASSIGN_OR_RETURN(HubMessage message, decode_hub_message(text));
  if (const auto* welcome = std::get_if<HubWelcome>(&message)) {
    if (welcome->version != kMeshVersion) {
      return Error{ErrorCode::kVersionUnsupported,
                   fmt::format("the hub speaks version {} of the mesh, this island version {}: update the older one",
                               welcome->version, kMeshVersion)};
    }
    ATOLL_RETURN_IF_ERROR(verify_epoch(identity_, welcome->epoch));
    if (callbacks_.meet) ATOLL_RETURN_IF_ERROR(callbacks_.meet(welcome->epoch));
    const bool first = heartbeat_period_.count() == 0;
    heartbeat_period_ = welcome->run.heartbeat;
    if (first) welcomed();
  }
  if (const auto* commit = std::get_if<HubCommit>(&message)) {
    ATOLL_RETURN_IF_ERROR(verify_commit(identity_, hub_certificate_pem_, *commit));
    if (callbacks_.committed) {
      callbacks_.committed(std::make_shared<const SignedCommit>(SignedCommit{*commit, hub_certificate_pem_}));
    }
  }
  // Queued before it is told: what counts messages as they are told finds every one of them in the queue.
  if (!queue(message)) {
    return Error{ErrorCode::kProtocol, "more messages of the hub than this island takes; connecting anew"};
  }
  if (callbacks_.urgent) callbacks_.urgent(message);
  const auto* last = std::get_if<HubGoodbye>(&message);
  if (last == nullptr) return ok_status();
  const Error goodbye{last->code, last->message};
  give_up(goodbye);
  return goodbye;
}

// One roster waits at most, the newest: others' coming and going fills no queue while the loop is busy.
bool MeshClient::Impl::queue(const HubMessage& message) {
  const auto* roster = std::get_if<HubRoster>(&message);
  if (roster == nullptr) return inbox_.push(HubMessage(message));
  MutexLock lock(mutex_);
  const bool waits = roster_.has_value();
  roster_ = *roster;
  if (waits || inbox_.push(HubRoster{})) return true;
  roster_.reset();
  return false;
}

void MeshClient::Impl::welcomed() {
  ever_welcomed_ = true;
  welcome_timer_.cancel();
  if (callbacks_.back) callbacks_.back();
  spawn(io_, beat(), when_it_throws(session_));
}

asio::awaitable<void> MeshClient::Impl::beat() {
  while (connected_ && !closing_) {
    heartbeat_ = encode(IslandMessage(callbacks_.heartbeat()));
    wake_writer();
    beat_timer_.expires_after(heartbeat_period_);
    const auto [error] = co_await beat_timer_.async_wait(kAwait);
    if (error) co_return;
  }
}

void MeshClient::Impl::wake_writer() {
  if (!connected_ || session_->writing) return;
  session_->writing = true;
  spawn(io_, write_outbox(session_), when_it_throws(session_));
}

// What could not be written stays queued for the next connection, but for heartbeats.
asio::awaitable<void> MeshClient::Impl::write_outbox(std::shared_ptr<Session> session) {
  for (;;) {
    std::string text = std::exchange(heartbeat_, {});
    const bool queued = text.empty();
    if (queued) {
      MutexLock lock(mutex_);
      if (!outbox_.empty()) text = outbox_.front();
    }
    if (text.empty()) break;
    const AsioError error = co_await write_message(session->socket, text);
    if (error) break;  // the reader sees it too and connects anew
    if (!queued) continue;
    MutexLock lock(mutex_);
    outbox_.pop_front();
  }
  session->writing = false;
  if (!closing_ || session != session_) co_return;
  co_await close_web_socket(session->socket);
  io_.stop();
}

void MeshClient::Impl::begin_closing() {
  closing_ = true;
  retry_timer_.cancel();
  welcome_timer_.cancel();
  beat_timer_.cancel();
  if (!connected_) return io_.stop();
  close_timer_.expires_after(kCloseTimeout);
  close_timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) io_.stop();
  });
  wake_writer();  // if one is under way it closes when it is done
}

// ---- the public face

Result<std::unique_ptr<MeshClient>> MeshClient::start(MeshClientOptions options, const Identity& identity,
                                                      Callbacks callbacks) {
  if (options.hub_addresses.empty()) {
    return Error{ErrorCode::kInvalidArgument, "no address of the hub is known; join with a new invite"};
  }
  ATOLL_ASSIGN_OR_RETURN(TlsContext tls, TlsContext::client(identity, kAlpnHttp));
  auto impl = std::make_unique<Impl>(std::move(options), identity, std::move(tls), std::move(callbacks));
  impl->start();
  return std::unique_ptr<MeshClient>(new MeshClient(std::move(impl)));
}

MeshClient::MeshClient(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
MeshClient::~MeshClient() = default;
bool MeshClient::send(const IslandMessage& message) { return impl_->send(message); }
Result<HubMessage> MeshClient::next(Deadline deadline) { return impl_->next(deadline); }
void MeshClient::wake() { impl_->wake(); }
bool MeshClient::connected() const { return impl_->connected(); }

}  // namespace atl
