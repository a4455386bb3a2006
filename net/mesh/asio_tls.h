// Boost.Beast's stream types over the TLS contexts of net/tls. For .cpp files of net/mesh and net/hub only: it is
// heavy.
#pragma once

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/websocket/stream.hpp>

#include "net/mesh/tls_stream.h"

namespace atl {

using WebSocket = boost::beast::websocket::stream<TlsStream>;

// `const auto [error, count] = co_await stream.async_read(..., kAwait)`: errors are values, not exceptions.
inline constexpr auto kAwait = boost::asio::as_tuple(boost::asio::use_awaitable);

}  // namespace atl
