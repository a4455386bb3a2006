// What the hub's port does with a connection, as awaitables compiled once (see net/mesh/web_socket.h): TLS as server,
// the bytes of an enrolment, an HTTP request, the upgrade to a WebSocket. On the stream's executor; the caller sets its
// deadlines.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <chrono>
#include <span>

#include "net/base/bytes.h"
#include "net/hub/data_files.h"
#include "net/mesh/web_socket.h"

namespace atl {

using HttpRequestParser = boost::beast::http::request_parser<boost::beast::http::string_body>;

boost::asio::awaitable<AsioError> accept_tls(TlsStream& stream);
// The orderly end, within `limit`.
boost::asio::awaitable<void> shut_down(TlsStream& stream, std::chrono::seconds limit);
// All of `bytes`, or an error.
boost::asio::awaitable<AsioError> read_exactly(TlsStream& stream, std::span<std::byte> bytes);
boost::asio::awaitable<AsioError> read_exactly(boost::beast::tcp_stream& stream, std::span<std::byte> bytes);
boost::asio::awaitable<AsioError> write_exactly(TlsStream& stream, ByteView bytes);
// Until `buffer` holds something.
boost::asio::awaitable<AsioError> read_first_bytes(TlsStream& stream, boost::beast::flat_buffer& buffer);
// The header of one request, within the parser's limits. `buffer` keeps what was read beyond it.
boost::asio::awaitable<AsioError> read_request_header(TlsStream& stream, boost::beast::flat_buffer& buffer,
                                                      HttpRequestParser& parser);
boost::asio::awaitable<AsioError> accept_web_socket(WebSocket& socket, const HttpRequest& request);

}  // namespace atl
