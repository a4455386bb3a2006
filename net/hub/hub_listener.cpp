#include "net/hub/hub_listener.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <boost/asio/steady_timer.hpp>

#include "net/hub/hub_stream.h"
#include "net/mesh/spawn.h"
#include "net/transport/proxy_header.h"
#include "net/wire/contributors.h"
#include "net/wire/mesh.h"
#include "net/wire/told_past.h"

namespace atl {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::ip::tcp;

constexpr std::chrono::seconds kUpgradeTimeout{10};
constexpr std::chrono::seconds kShutdownTimeout{2};
constexpr std::chrono::milliseconds kAcceptPause{100};
constexpr std::size_t kMostHeadersAwaited = 1024;
constexpr std::uint32_t kMaxHeaderBytes = 8 * 1024;
constexpr const char* kMeshPath = "/mesh";
constexpr const char* kCertificatePath = "/certificate";

std::string host_of(const tcp::socket& socket) {
  boost::system::error_code error;
  asio::ip::address address = socket.remote_endpoint(error).address();
  if (address.is_v6() && address.to_v6().is_v4_mapped()) {
    address = asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6());
  }
  return error ? std::string() : address.to_string();
}

// What has come already, and stays to be read.
bool says_proxy_header(tcp::socket& socket) {
  std::array<std::byte, kProxyFirstBytes> first{};
  boost::system::error_code error;
  socket.non_blocking(true, error);
  const std::size_t count = socket.receive(asio::buffer(first), tcp::socket::message_peek, error);
  return !error && begins_proxy_header(ByteView(first).first(count));
}

}  // namespace

HubListener::HubListener(asio::io_context& io, const TlsContext& tls, const DataFiles& data,
                         const BaseModelFiles& base_model, CheckEndpoints& checks, HubGate& gate,
                         const HubPortLimits& limits)
    : io_(io),
      tls_(share_context(tls)),
      data_(data),
      base_model_(base_model),
      checks_(checks),
      gate_(gate),
      acceptor_(io),
      trusted_proxies_(limits.trusted_proxies),
      header_time_(limits.handshake),
      connections_(std::make_shared<OpenConnections>(limits)),
      joins_(limits.joins_at_once, limits.join_period) {}

Status HubListener::listen(const Address& address) {
  boost::system::error_code error;
  tcp::resolver resolver(io_);
  const auto found = resolver.resolve(address.host, std::to_string(address.port),
                                      tcp::resolver::passive | tcp::resolver::numeric_service, error);
  if (error || found.empty()) {
    return Error{ErrorCode::kInvalidArgument, fmt::format("cannot listen at {}: {}; give an address of this machine",
                                                          to_string(address), error.message())};
  }
  const tcp::endpoint endpoint = found.begin()->endpoint();
  acceptor_.open(endpoint.protocol(), error);
  if (!error) acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor_.bind(endpoint, error);
  if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
  if (error) {
    const bool taken = error == asio::error::address_in_use || error == asio::error::access_denied;
    return Error{
        taken ? ErrorCode::kPermissionDenied : ErrorCode::kInvalidArgument,
        fmt::format("cannot listen at {}: {}; choose another address or port", to_string(address), error.message())};
  }
  port_ = acceptor_.local_endpoint().port();
  spawn(io_, accept(), [this](const std::string& what) {
    gate_.stop_serving(
        {ErrorCode::kInternal, fmt::format("the hub takes no more connections: {}; start it again", what)});
  });
  spawn(io_, watch(), [this](const std::string& what) {
    gate_.stop_serving({ErrorCode::kInternal, fmt::format("the hub's watch over its connections ended: {}; start it "
                                                          "again",
                                                          what)});
  });
  return ok_status();
}

void HubListener::close() {
  boost::system::error_code ignored;
  acceptor_.close(ignored);
}

asio::awaitable<void> HubListener::accept() {
  while (acceptor_.is_open()) {
    auto [error, socket] = co_await acceptor_.async_accept(kAwait);
    if (error == asio::error::operation_aborted) co_return;
    if (error) spdlog::warn("hub accept error=\"{}\"", error.message());
    if (!error && begin_serving(std::move(socket))) continue;
    {  // out of file descriptors or memory, most likely: others will be closed
      asio::steady_timer pause(io_, kAcceptPause);
      co_await pause.async_wait(kAwait);
    }
  }
}

// What one connection throws ends that connection alone.
bool HubListener::begin_serving(Socket socket) {
  const auto failed = [this](const std::string& what) {
    const auto held_back = failed_.pass(what);
    if (held_back) spdlog::error("hub connection failed=\"{}\" held_back={}", what, *held_back);
  };
  try {
    spawn(io_, serve(std::move(socket)), failed);
    return true;
  } catch (const std::exception& error) {
    failed(error.what());
    return false;
  }
}

asio::awaitable<void> HubListener::watch() {
  asio::steady_timer timer(io_);
  while (acceptor_.is_open()) {
    timer.expires_after(connections_->look_period());
    co_await timer.async_wait(kAwait);
    connections_->look();
  }
}

bool HubListener::is_proxy(const std::string& host) const {
  const auto address = NetworkAddress::parse(host);
  return address && std::ranges::any_of(trusted_proxies_, [&](const auto& proxy) { return proxy.contains(*address); });
}

void HubListener::refuse(const std::string& host, const std::string& why) {
  const auto held_back = refused_.pass(host);
  if (held_back) spdlog::info("hub peer={} refused=\"{}\" held_back={}", host, why, *held_back);
}

asio::awaitable<Result<std::string>> HubListener::read_source(beast::tcp_stream& stream, std::string proxy) {
  if (headers_awaited_ >= kMostHeadersAwaited) {
    co_return Error{ErrorCode::kTimeout, "too many connections of proxies wait to say where they come from"};
  }
  struct Awaited {
    explicit Awaited(std::size_t& of) : count(of) { ++count; }
    ~Awaited() { --count; }
    std::size_t& count;
  };
  const Awaited awaited(headers_awaited_);
  stream.expires_after(header_time_);
  Bytes header;
  for (std::size_t needs = kProxyFirstBytes; needs > 0;) {
    const std::size_t had = header.size();
    header.resize(had + needs);
    const AsioError error = co_await read_exactly(stream, std::span(header).subspan(had));
    if (error) co_return Error{ErrorCode::kProtocol, "a trusted proxy sent no PROXY header: " + error.message()};
    const Result<std::size_t> more = proxy_header_needs(header);
    if (!more.ok()) co_return Error{ErrorCode::kProtocol, "a trusted proxy sent no " + more.error().message};
    needs = *more;
  }
  stream.expires_never();
  Result<std::optional<std::string>> source = proxied_source(header);
  if (!source.ok()) co_return source.error();
  co_return source->value_or(std::move(proxy));  // the proxy's own: whether the hub is there
}

asio::awaitable<void> HubListener::serve(Socket socket) {
  boost::system::error_code ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  std::string host = host_of(socket);
  beast::tcp_stream silent(std::move(socket));
  if (is_proxy(host)) {
    const Result<std::string> source = co_await read_source(silent, host);
    if (!source.ok()) co_return refuse(host, source.error().message);
    host = *source;
  }
  OpenConnections::Place place(connections_, host, silent);
  // Until it says something it costs a socket and no more.
  const auto [silence] = co_await silent.socket().async_wait(tcp::socket::wait_read, kAwait);
  if (silence || place.dropped()) co_return;
  place.spoke();
  if (says_proxy_header(silent.socket())) {
    co_return refuse(host, "a PROXY header from where no --trusted-proxy is");
  }
  TlsStream stream(std::move(silent), tls_);
  place.use(beast::get_lowest_layer(stream));
  const AsioError error = co_await accept_tls(stream);
  if (place.dropped()) co_return;
  if (error) co_return refuse(host, error.message());
  if (negotiated_alpn(stream.native_handle()) == kAlpnEnrol) {
    place.begin_exchange();
    co_await serve_enrolment(stream);
  } else {
    co_await serve_http(stream, place, host);
  }
}

Bytes HubListener::answer_enrolment(ByteView body) {
  const Result<EnrolMessage> request = decode_enrol_message(body);
  if (!request.ok()) return encode_frame(EnrolResponse(request.error()));
  if (const auto* about = std::get_if<AboutRequest>(&*request)) return encode_frame(gate_.about(*about));
  return encode_frame(gate_.enrol(std::get<EnrolRequest>(*request)));
}

// One request, one response. Whatever is wrong with the request is told, for people to read.
asio::awaitable<void> HubListener::serve_enrolment(TlsStream& stream) {
  Bytes header(kEnrolHeaderBytes);
  const AsioError header_error = co_await read_exactly(stream, header);
  if (header_error) co_return;
  const Result<std::size_t> size = enrol_body_bytes(header);
  if (!size.ok()) co_return;
  Bytes body(*size);
  const AsioError body_error = co_await read_exactly(stream, body);
  if (body_error) co_return;
  const Bytes frame = answer_enrolment(body);
  const AsioError write_error = co_await write_exactly(stream, frame);
  if (!write_error) co_await shut_down(stream, kShutdownTimeout);
}

asio::awaitable<bool> HubListener::serve_certificate(TlsStream& stream, const HttpRequest& request,
                                                     const EnrolledIsland& island) {
  const Result<std::string> shown = peer_certificate_pem(stream.native_handle());
  Result<std::string> renewed = shown.ok() ? gate_.renew(island, *shown) : shown;
  if (renewed.ok()) co_return co_await answer_text(stream, request, http::status::ok, std::move(*renewed));
  co_return co_await answer_text(stream, request, http::status::internal_server_error, renewed.error().message + "\n");
}

asio::awaitable<bool> HubListener::serve_contributors(TlsStream& stream, const HttpRequest& request) {
  Result<std::string> found = gate_.contributors();
  if (found.ok()) co_return co_await answer_text(stream, request, http::status::ok, std::move(*found));
  co_return co_await answer_text(stream, request, http::status::service_unavailable, found.error().message + "\n");
}

// Of a request without a body.
asio::awaitable<bool> HubListener::answer(TlsStream& stream, const HttpRequest& request, const EnrolledIsland& island) {
  if (request.target() == kCertificatePath) co_return co_await serve_certificate(stream, request, island);
  if (request.target() == kContributorsPath) co_return co_await serve_contributors(stream, request);
  if (request.target() == kPastPath) co_return co_await answer_text(stream, request, http::status::ok, gate_.past());
  if (BaseModelFiles::serves(request)) co_return co_await base_model_.answer(stream, request);
  co_return co_await data_.answer(stream, request);
}

// Empty when it was told that it is not admitted, or not now; the connection is to be closed then.
asio::awaitable<std::optional<EnrolledIsland>> HubListener::admit(TlsStream& stream, const HttpRequest& request,
                                                                  const PeerCertificate& peer) {
  const Result<std::optional<EnrolledIsland>> admitted = gate_.admit(peer);
  if (admitted.ok() && *admitted) co_return *admitted;
  http::status status = http::status::forbidden;  // an island takes this for its removal, and nothing else
  std::string answer = "this island's certificate is not, or no longer, in the run's roster\n";
  if (!admitted.ok()) {
    status = http::status::service_unavailable;
    answer = "the hub cannot read its roster now; try again later\n";
  } else if (const auto held_back = refused_.pass(peer.name.value)) {
    spdlog::info("hub island={} refused=\"not in the roster\" held_back={}", peer.name.value, *held_back);
  }
  co_await answer_text(stream, request, status, std::move(answer));
  co_return std::nullopt;
}

asio::awaitable<void> HubListener::serve_http(TlsStream& stream, OpenConnections::Place& place, std::string host) {
  const Result<PeerCertificate> peer = verified_peer(stream.native_handle());
  if (!peer.ok()) co_return;
  place.begin_exchange();  // for who is no member, and has to be told
  const Result<std::optional<EnrolledIsland>> member = gate_.admit(*peer);
  if (member.ok() && *member && !place.verified(peer->name)) co_return;
  beast::flat_buffer buffer;
  std::optional<OpenStream> open;
  for (;;) {
    HttpRequestParser parser;
    parser.header_limit(kMaxHeaderBytes);
    parser.body_limit(kMaxCheckBytes);  // of a check's upload, which is never kept; nobody else may send a body
    beast::get_lowest_layer(stream).expires_never();  // the place keeps the time
    place.wait_for_request();
    const AsioError silence = co_await read_first_bytes(stream, buffer);
    if (silence) co_return;
    place.begin_header();
    const AsioError error = co_await read_request_header(stream, buffer, parser);
    if (error) co_return;
    place.begin_answer();
    const bool has_body = !parser.is_done();
    const HttpRequest request = parser.release();
    const std::optional<EnrolledIsland> island = co_await admit(stream, request, *peer);  // may have been removed
    if (!island) break;
    if (!place.verified(island->id)) co_return;
    if (!open) open.emplace(open_, island->id, beast::get_lowest_layer(stream));
    if (beast::websocket::is_upgrade(request) && request.target() == kMeshPath) {
      if (!joins_.take(island->id, Clock::now())) {
        if (const auto held_back = refused_.pass(island->id.value)) {
          spdlog::info("hub island={} refused=\"it comes too often\" held_back={}", island->id.value, *held_back);
        }
        co_await answer_text(stream, request, http::status::too_many_requests, "this island comes too often; wait\n");
        break;
      }
      open.reset();
      co_await serve_link(stream, place, request, *island, std::move(host));
      co_return;
    }
    if (CheckEndpoints::serves(request)) {
      const bool more = co_await checks_.answer(stream, buffer, request, island->id, host);
      if (!more) break;
      continue;
    }
    if (has_body) co_return;
    const bool again = co_await answer(stream, request, *island);
    if (!again) break;
  }
  co_await shut_down(stream, kShutdownTimeout);
}

asio::awaitable<void> HubListener::serve_link(TlsStream& stream, OpenConnections::Place& place,
                                              const HttpRequest& request, const EnrolledIsland& island,
                                              std::string host) {
  WebSocket socket(std::move(stream));
  place.use(beast::get_lowest_layer(socket));
  std::optional<OpenStream> open(std::in_place, open_, island.id, beast::get_lowest_layer(socket));
  socket.set_option(beast::websocket::stream_base::timeout{kUpgradeTimeout, beast::websocket::stream_base::none(),
                                                           /*keep_alive_pings=*/false});
  const AsioError error = co_await accept_web_socket(socket, request);
  if (error) co_return;
  open.reset();  // from here on the link is the gate's
  const auto link = std::make_shared<IslandLink>(std::move(socket), island, std::move(host));
  place.become_link(link);
  co_await gate_.serve_island(link);
}

}  // namespace atl
