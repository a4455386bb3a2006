#include "tests/net/hub/scripted_hub.h"

#include <QtCore/qlogging.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <thread>

#include "net/base/encoding.h"
#include "net/base/mailbox.h"
#include "net/base/mutex.h"
#include "net/hub/hub_stream.h"
#include "net/hub/island_link.h"
#include "net/mesh/commit_signature.h"
#include "net/mesh/spawn.h"
#include "net/tls/signature.h"
#include "net/wire/told_past.h"

namespace atl {

namespace asio = boost::asio;
namespace beast = boost::beast;
using asio::ip::tcp;

class ScriptedHub::Impl {
 public:
  explicit Impl(const Identity& hub)
      : identity_(hub),
        tls_(share_context(TlsContext::hub_server(hub).value())),
        acceptor_(io_, {asio::ip::address_v4::loopback(), 0}),
        port_(acceptor_.local_endpoint().port()) {
    spawn(io_, accept(), [](const std::string& what) { qFatal("the scripted hub ended: %s", what.c_str()); });
    thread_ = std::jthread([this] { io_.run(); });
  }
  ~Impl() {
    asio::post(io_, [this] {
      if (link_) link_->cut();
      io_.stop();
    });
  }

  std::uint16_t port() const { return port_; }
  const Identity& identity() const { return identity_; }
  std::optional<IslandMessage> hear(Deadline deadline) { return heard_.pop(deadline); }
  std::optional<IslandHeartbeat> heartbeat() const {
    MutexLock lock(mutex_);
    return heartbeat_;
  }
  void tell_past(std::string text) {
    MutexLock lock(mutex_);
    past_ = std::move(text);
  }
  int times_asked_for_past() const {
    MutexLock lock(mutex_);
    return asked_for_past_;
  }
  PeerCertificate peer() const {
    MutexLock lock(mutex_);
    return peer_.value();
  }
  void say(const HubMessage& message) {
    asio::post(io_, [this, text = encode(message)] {
      if (link_) link_->send(text);
    });
  }

 private:
  asio::awaitable<void> accept() {
    for (;;) {
      auto [error, socket] = co_await acceptor_.async_accept(kAwait);
      if (error) co_return;
      spawn(io_, serve(std::move(socket)), [](const std::string&) {});
    }
  }

  asio::awaitable<void> serve(tcp::socket accepted) {
    TlsStream stream(beast::tcp_stream(std::move(accepted)), tls_);
    const AsioError refused = co_await accept_tls(stream);
    if (refused) co_return;
    const Result<PeerCertificate> peer = verified_peer(stream.native_handle());
    beast::flat_buffer buffer;
    HttpRequestParser parser;
    const AsioError unread = co_await read_request_header(stream, buffer, parser);
    if (unread || !peer.ok()) co_return;
    const HttpRequest request = parser.release();
    if (request.target() == kPastPath) {
      std::string past = take_past_request();
      const auto status = past.empty() ? beast::http::status::not_found : beast::http::status::ok;
      co_await answer_text(stream, request, status, std::move(past));
      co_return;
    }
    if (!beast::websocket::is_upgrade(request)) co_return;  // its data and files are no matter of this hub
    WebSocket socket(std::move(stream));
    const AsioError declined = co_await accept_web_socket(socket, request);
    if (declined) co_return;
    {
      MutexLock lock(mutex_);
      peer_ = *peer;
    }
    link_ = std::make_shared<IslandLink>(std::move(socket),
                                         EnrolledIsland{peer->name, "", to_hex(peer->key_sha256), {}}, "127.0.0.1");
    const auto link = link_;
    for (;;) {
      const Result<std::string> text = co_await link->read();
      if (!text.ok()) break;
      take(decode_island_message(*text).value());
    }
    if (link_ == link) link_.reset();
  }

  std::string take_past_request() {
    MutexLock lock(mutex_);
    ++asked_for_past_;
    return past_;
  }

  void take(IslandMessage message) {
    if (const auto* beat = std::get_if<IslandHeartbeat>(&message)) {
      MutexLock lock(mutex_);
      heartbeat_ = *beat;
    } else if (!heard_.push(std::move(message))) {
      qFatal("an island said more than the test listened to");
    }
  }

  const Identity identity_;
  asio::io_context io_{1};
  asio::ssl::context tls_;
  tcp::acceptor acceptor_;
  const std::uint16_t port_;
  std::shared_ptr<IslandLink> link_;  // its thread's
  Mailbox<IslandMessage> heard_{4096};
  mutable Mutex mutex_;
  std::optional<IslandHeartbeat> heartbeat_ ATOLL_GUARDED_BY(mutex_);
  std::string past_ ATOLL_GUARDED_BY(mutex_);
  int asked_for_past_ ATOLL_GUARDED_BY(mutex_) = 0;
  std::optional<PeerCertificate> peer_ ATOLL_GUARDED_BY(mutex_);
  std::jthread thread_;  // last
};

ScriptedHub::ScriptedHub(const Identity& hub) : impl_(std::make_unique<Impl>(hub)) {}
ScriptedHub::~ScriptedHub() = default;
Address ScriptedHub::address() const { return {"127.0.0.1", impl_->port()}; }
std::optional<IslandMessage> ScriptedHub::hear(Deadline deadline) { return impl_->hear(deadline); }
std::optional<IslandHeartbeat> ScriptedHub::heartbeat() const { return impl_->heartbeat(); }
PeerCertificate ScriptedHub::peer() const { return impl_->peer(); }

void ScriptedHub::tell_past(std::string text) { impl_->tell_past(std::move(text)); }
int ScriptedHub::times_asked_for_past() const { return impl_->times_asked_for_past(); }

void ScriptedHub::say(const HubMessage& message) { impl_->say(message); }

SignedEpoch ScriptedHub::epoch(std::uint64_t epoch) const {
  const Identity& hub = impl_->identity();
  const Bytes signature = sign_message(hub, as_bytes(epoch_record(hub.run, epoch))).value();
  return {epoch, base64url_encode(signature), hub.certificate_pem};
}

HubCommit ScriptedHub::signed_commit(HubCommit commit) const {
  commit.signature = sign_commit(impl_->identity(), commit).value();
  return commit;
}

}  // namespace atl
