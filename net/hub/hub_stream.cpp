#include "net/hub/hub_stream.h"

#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http/read.hpp>

namespace atl {

namespace asio = boost::asio;
namespace beast = boost::beast;

namespace {

constexpr std::size_t kFirstBytes = 4096;  // a request's header, as a rule

}  // namespace

asio::awaitable<AsioError> accept_tls(TlsStream& stream) {
  const auto [error] = co_await stream.async_handshake(asio::ssl::stream_base::server, kAwait);
  co_return error;
}

asio::awaitable<void> shut_down(TlsStream& stream, std::chrono::seconds limit) {
  beast::get_lowest_layer(stream).expires_after(limit);
  co_await stream.async_shutdown(kAwait);
}

asio::awaitable<AsioError> read_exactly(TlsStream& stream, std::span<std::byte> bytes) {
  const auto [error, count] = co_await asio::async_read(stream, asio::buffer(bytes.data(), bytes.size()), kAwait);
  co_return error;
}

asio::awaitable<AsioError> read_exactly(beast::tcp_stream& stream, std::span<std::byte> bytes) {
  const auto [error, count] = co_await asio::async_read(stream, asio::buffer(bytes.data(), bytes.size()), kAwait);
  co_return error;
}

asio::awaitable<AsioError> write_exactly(TlsStream& stream, ByteView bytes) {
  const auto [error, count] = co_await asio::async_write(stream, asio::buffer(bytes.data(), bytes.size()), kAwait);
  co_return error;
}

asio::awaitable<AsioError> read_first_bytes(TlsStream& stream, beast::flat_buffer& buffer) {
  if (buffer.size() > 0) co_return AsioError();
  const auto [error, count] = co_await stream.async_read_some(buffer.prepare(kFirstBytes), kAwait);
  buffer.commit(count);
  co_return error;
}

asio::awaitable<AsioError> read_request_header(TlsStream& stream, beast::flat_buffer& buffer,
                                               HttpRequestParser& parser) {
  const auto [error, count] = co_await beast::http::async_read_header(stream, buffer, parser, kAwait);
  co_return error;
}

asio::awaitable<AsioError> accept_web_socket(WebSocket& socket, const HttpRequest& request) {
  const auto [error] = co_await socket.async_accept(request, kAwait);
  co_return error;
}

}  // namespace atl
