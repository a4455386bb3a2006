#include "net/mesh/web_socket.h"

namespace atl {

namespace asio = boost::asio;
namespace websocket = boost::beast::websocket;

asio::awaitable<AsioError> handshake_tls(WebSocket& socket) {
  const auto [error] = co_await socket.next_layer().async_handshake(asio::ssl::stream_base::client, kAwait);
  co_return error;
}

asio::awaitable<AsioError> handshake_web_socket(WebSocket& socket, websocket::response_type& response, std::string host,
                                                std::string target) {
  const auto [error] = co_await socket.async_handshake(response, host, target, kAwait);
  co_return error;
}

asio::awaitable<AsioError> read_message(WebSocket& socket, boost::beast::flat_buffer& buffer) {
  const auto [error, count] = co_await socket.async_read(buffer, kAwait);
  co_return error;
}

asio::awaitable<AsioError> write_message(WebSocket& socket, std::string_view text) {
  const auto [error, count] = co_await socket.async_write(asio::buffer(text), kAwait);
  co_return error;
}

asio::awaitable<void> close_web_socket(WebSocket& socket) {
  co_await socket.async_close(websocket::close_code::normal, kAwait);
}

}  // namespace atl
