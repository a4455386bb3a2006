#include "net/hub/hub_listener.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/steady_timer.hpp>

#include "net/hub/counted.h"
#include "net/hub/hub_stream.h"
#include "net/wire/mesh.h"

namespace atl {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::ip::tcp;

constexpr int kMaxConnections = 1024;
constexpr std::chrono::seconds kHandshakeTimeout{10};
constexpr std::chrono::seconds kRequestTimeout{30};  // between requests
constexpr std::chrono::seconds kShutdownTimeout{2};
constexpr std::chrono::milliseconds kAcceptPause{100};
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

}  // namespace

HubListener::HubListener(asio::io_context& io, const TlsContext& tls, const DataFiles& data, CheckEndpoints& checks,
                         HubGate& gate)
    : io_(io), tls_(share_context(tls)), data_(data), checks_(checks), gate_(gate), acceptor_(io) {}

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
  asio::co_spawn(io_, accept(), asio::detached);
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
    if (error) {  // out of file descriptors, most likely: others will be closed
      spdlog::warn("hub accept error=\"{}\"", error.message());
      asio::steady_timer pause(io_, kAcceptPause);
      co_await pause.async_wait(kAwait);
      continue;
    }
    if (*connections_ >= kMaxConnections) continue;  // closes it
    asio::co_spawn(io_, serve(std::move(socket)), asio::detached);
  }
}

asio::awaitable<void> HubListener::serve(Socket socket) {
  const Counted counted(connections_);
  boost::system::error_code ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  const std::string host = host_of(socket);
  TlsStream stream(beast::tcp_stream(std::move(socket)), tls_);
  beast::get_lowest_layer(stream).expires_after(kHandshakeTimeout);
  const AsioError error = co_await accept_tls(stream);
  if (error) {
    spdlog::info("hub peer={} refused=\"{}\"", host, error.message());
    co_return;
  }
  if (negotiated_alpn(stream.native_handle()) == kAlpnEnrol) {
    co_await serve_enrolment(stream);
  } else {
    co_await serve_http(std::move(stream), host);
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
  beast::get_lowest_layer(stream).expires_after(kHandshakeTimeout);
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

asio::awaitable<void> HubListener::serve_http(TlsStream stream, std::string host) {
  const Result<PeerCertificate> peer = verified_peer(stream.native_handle());
  if (!peer.ok()) co_return;
  beast::flat_buffer buffer;
  for (;;) {
    HttpRequestParser parser;
    parser.header_limit(kMaxHeaderBytes);
    parser.body_limit(kMaxCheckBytes);  // of a check's upload, which is never kept; nobody else may send a body
    beast::get_lowest_layer(stream).expires_after(kRequestTimeout);
    const AsioError error = co_await read_request_header(stream, buffer, parser);
    if (error) co_return;
    const bool has_body = !parser.is_done();
    const HttpRequest request = parser.release();
    const std::optional<EnrolledIsland> island = gate_.admit(*peer);  // asked anew: it may have been removed
    if (!island) {
      co_await answer_text(stream, request, http::status::forbidden,
                           "this island's certificate is not, or no longer, in the run's roster\n");
      break;
    }
    if (beast::websocket::is_upgrade(request) && request.target() == kMeshPath) {
      beast::get_lowest_layer(stream).expires_never();
      WebSocket socket(std::move(stream));
      socket.set_option(beast::websocket::stream_base::timeout{kHandshakeTimeout, beast::websocket::stream_base::none(),
                                                               /*keep_alive_pings=*/false});
      const AsioError accept_error = co_await accept_web_socket(socket, request);
      if (accept_error) co_return;
      co_await gate_.serve_island(std::make_shared<IslandLink>(std::move(socket), *island, std::move(host)));
      co_return;
    }
    if (CheckEndpoints::serves(request)) {
      const bool more = co_await checks_.answer(stream, buffer, request, island->id, host);
      if (!more) break;
      continue;
    }
    if (has_body) co_return;
    const bool again = request.target() == kCertificatePath ? co_await serve_certificate(stream, request, *island)
                                                            : co_await data_.answer(stream, request);
    if (!again) break;
  }
  co_await shut_down(stream, kShutdownTimeout);
}

}  // namespace atl
