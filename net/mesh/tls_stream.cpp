#include "net/mesh/tls_stream.h"

#include <boost/asio/ssl/stream.hpp>
#include <boost/beast/websocket/ssl.hpp>

namespace atl {

namespace asio = boost::asio;
namespace beast = boost::beast;

struct TlsStream::Impl {
  asio::ssl::stream<beast::tcp_stream> stream;
  std::unique_ptr<std::byte[]> record;  // what gathered() copied, until it is sent
};

TlsStream::TlsStream(beast::tcp_stream tcp, asio::ssl::context& context)
    : impl_(new Impl{asio::ssl::stream<beast::tcp_stream>(std::move(tcp), context), nullptr}) {}

TlsStream::TlsStream(asio::io_context& io, asio::ssl::context& context) : TlsStream(beast::tcp_stream(io), context) {}

TlsStream::TlsStream(TlsStream&&) noexcept = default;

TlsStream::~TlsStream() = default;

beast::tcp_stream& TlsStream::next_layer() noexcept { return impl_->stream.next_layer(); }

const beast::tcp_stream& TlsStream::next_layer() const noexcept { return impl_->stream.next_layer(); }

SSL* TlsStream::native_handle() noexcept { return impl_->stream.native_handle(); }

std::byte* TlsStream::record() {
  if (!impl_->record) impl_->record = std::make_unique_for_overwrite<std::byte[]>(kRecord);
  return impl_->record.get();
}

void TlsStream::begin_handshake(asio::ssl::stream_base::handshake_type type, DoneHandler handler) {
  impl_->stream.async_handshake(type, std::move(handler));
}

void TlsStream::begin_shutdown(DoneHandler handler) { impl_->stream.async_shutdown(std::move(handler)); }

void TlsStream::begin_read(asio::mutable_buffer buffer, TransferHandler handler) {
  impl_->stream.async_read_some(buffer, std::move(handler));
}

void TlsStream::begin_write(asio::const_buffer buffer, TransferHandler handler) {
  impl_->stream.async_write_some(buffer, std::move(handler));
}

void TlsStream::begin_teardown(beast::role_type role, DoneHandler handler) {
  using beast::websocket::async_teardown;  // of asio::ssl::stream
  async_teardown(role, impl_->stream, std::move(handler));
}

}  // namespace atl
