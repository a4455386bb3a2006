// TLS over TCP for Asio, compiled once: an operation's handler is kept without its type. Through asio::ssl::stream the
// compiler would make the layers beneath, TLS and TCP, anew for each of some fifty operations of Beast, which took it
// two thirds of its time. For .cpp files of net/mesh and net/hub, as asio_tls.h. On the stream's executor.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream_base.hpp>
#include <boost/beast/core/role.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <cstddef>
#include <memory>
#include <utility>

#include "net/tls/context.h"

namespace atl {

// The same SSL_CTX, for Asio: it takes a reference of its own.
inline boost::asio::ssl::context share_context(const TlsContext& context) {
  SSL_CTX_up_ref(context.native());
  return boost::asio::ssl::context(context.native());
}

// A handler of any type, called once or never, with its executor and its cancellation slot.
template <class... Arguments>
class AnyHandler {
 public:
  using executor_type = boost::asio::any_io_executor;
  using cancellation_slot_type = boost::asio::cancellation_slot;

  template <class Handler>
  AnyHandler(Handler handler, const executor_type& otherwise)
      : executor_(boost::asio::get_associated_executor(handler, otherwise)),
        slot_(boost::asio::get_associated_cancellation_slot(handler)),
        held_(std::make_unique<HeldAs<Handler>>(std::move(handler))) {}

  executor_type get_executor() const noexcept { return executor_; }
  cancellation_slot_type get_cancellation_slot() const noexcept { return slot_; }

  void operator()(Arguments... arguments) {
    Held& held = *held_;
    held.call(std::move(held_), arguments...);
  }

 private:
  struct Held {
    virtual ~Held() = default;
    virtual void call(std::unique_ptr<Held> self, Arguments... arguments) = 0;
  };
  template <class Handler>
  struct HeldAs final : Held {
    explicit HeldAs(Handler given) : handler(std::move(given)) {}
    void call(std::unique_ptr<Held> self, Arguments... arguments) override {
      Handler last(std::move(handler));
      self.reset();  // its memory is free again before what it calls asks for more
      std::move(last)(arguments...);
    }
    Handler handler;
  };

  executor_type executor_;
  cancellation_slot_type slot_;
  std::unique_ptr<Held> held_;
};

// An AsyncStream of Beast's: one read and one write at a time. May be moved while nothing is under way; its TCP stream
// stays where it is.
class TlsStream {
 public:
  using executor_type = boost::asio::any_io_executor;
  using Error = boost::system::error_code;
  using DoneHandler = AnyHandler<Error>;
  using TransferHandler = AnyHandler<Error, std::size_t>;

  TlsStream(boost::beast::tcp_stream tcp, boost::asio::ssl::context& context);
  TlsStream(boost::asio::io_context& io, boost::asio::ssl::context& context);
  TlsStream(TlsStream&&) noexcept;
  ~TlsStream();

  executor_type get_executor() noexcept { return next_layer().get_executor(); }
  boost::beast::tcp_stream& next_layer() noexcept;
  const boost::beast::tcp_stream& next_layer() const noexcept;
  SSL* native_handle() noexcept;

  template <class Token>
  auto async_handshake(boost::asio::ssl::stream_base::handshake_type type, Token&& token) {
    return boost::asio::async_initiate<Token, void(Error)>(
        [this, type](auto handler) {
          begin_handshake(type, {std::move(handler), get_executor()});
        },
        token);
  }
  // Sends what says that no more comes, and waits for the peer's.
  template <class Token>
  auto async_shutdown(Token&& token) {
    return boost::asio::async_initiate<Token, void(Error)>(
        [this](auto handler) {
          begin_shutdown({std::move(handler), get_executor()});
        },
        token);
  }
  template <class Buffers, class Token>
  auto async_read_some(const Buffers& buffers, Token&& token) {
    return boost::asio::async_initiate<Token, void(Error, std::size_t)>(
        [this, buffer = first<boost::asio::mutable_buffer>(buffers)](auto handler) {
          begin_read(buffer, {std::move(handler), get_executor()});
        },
        token);
  }
  template <class Buffers, class Token>
  auto async_write_some(const Buffers& buffers, Token&& token) {
    return boost::asio::async_initiate<Token, void(Error, std::size_t)>(
        [this, buffer = gathered(buffers)](auto handler) {
          begin_write(buffer, {std::move(handler), get_executor()});
        },
        token);
  }

  // The end of a WebSocket over this stream (beast::websocket::async_teardown).
  void begin_teardown(boost::beast::role_type role, DoneHandler handler);

 private:
  struct Impl;

  template <class Buffer, class Buffers>
  static Buffer first(const Buffers& buffers) {
    for (auto at = boost::asio::buffer_sequence_begin(buffers); at != boost::asio::buffer_sequence_end(buffers); ++at) {
      if (Buffer buffer(*at); buffer.size() > 0) return buffer;
    }
    return {};
  }
  // The first, or as much as a TLS record takes of several: a WebSocket's header goes with what it heads.
  template <class Buffers>
  boost::asio::const_buffer gathered(const Buffers& buffers) {
    const auto one = first<boost::asio::const_buffer>(buffers);
    const std::size_t all = boost::asio::buffer_size(buffers);
    if (one.size() == all || one.size() >= kRecord) return one;
    return boost::asio::buffer(record(), boost::asio::buffer_copy(boost::asio::buffer(record(), kRecord), buffers));
  }
  std::byte* record();

  void begin_handshake(boost::asio::ssl::stream_base::handshake_type type, DoneHandler handler);
  void begin_shutdown(DoneHandler handler);
  void begin_read(boost::asio::mutable_buffer buffer, TransferHandler handler);
  void begin_write(boost::asio::const_buffer buffer, TransferHandler handler);

  static constexpr std::size_t kRecord = 16 * 1024;

  std::unique_ptr<Impl> impl_;
};

// Found by Beast through the stream's type.
template <class Handler>
void async_teardown(boost::beast::role_type role, TlsStream& stream, Handler&& handler) {
  stream.begin_teardown(role, {std::forward<Handler>(handler), stream.get_executor()});
}

}  // namespace atl
