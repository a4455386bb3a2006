// The operations of a WebSocket over TLS, as awaitables compiled once: what Beast instantiates for each of them takes
// the compiler most of a minute, which hub and mesh client need not spend again with every change. On the stream's
// executor.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <string>
#include <string_view>

#include "net/mesh/asio_tls.h"

namespace atl {

using AsioError = boost::system::error_code;

// TLS as client, without the WebSocket's handshake.
boost::asio::awaitable<AsioError> handshake_tls(WebSocket& socket);
// The upgrade as client; `response` is the server's answer, also when it declines.
boost::asio::awaitable<AsioError> handshake_web_socket(WebSocket& socket,
                                                       boost::beast::websocket::response_type& response,
                                                       std::string host, std::string target);
// One message. `text` stays the caller's until then.
boost::asio::awaitable<AsioError> read_message(WebSocket& socket, boost::beast::flat_buffer& buffer);
boost::asio::awaitable<AsioError> write_message(WebSocket& socket, std::string_view text);
// The orderly end; whether the peer heard it does not matter.
boost::asio::awaitable<void> close_web_socket(WebSocket& socket);

}  // namespace atl
