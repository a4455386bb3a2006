// One TLS connection to a verified peer over a non-blocking socket. Owned and used by one thread at a time; another
// thread stops it through the AbortSignal that its waits watch.
#pragma once

#include <openssl/ssl.h>

#include <memory>
#include <string>
#include <string_view>

#include "net/base/abort_signal.h"
#include "net/base/address.h"
#include "net/base/bytes.h"
#include "net/base/deadline.h"
#include "net/base/id.h"
#include "net/base/result.h"
#include "net/base/unique_fd.h"
#include "net/tls/context.h"

namespace atl {

class TlsConnection {
 public:
  // Resolves, connects and shakes hands by `deadline`; the peer's certificate must carry `expected`.
  // Errors name the peer and its address. `abort` may be null.
  static Result<TlsConnection> connect(const Address& address, const TlsContext& context, const IslandId& expected,
                                       Deadline deadline, const AbortSignal* abort = nullptr);
  // Shakes hands as server on an accepted socket.
  static Result<TlsConnection> accept(UniqueFd socket, const TlsContext& context, Deadline deadline,
                                      const AbortSignal* abort = nullptr);
  // The same without waiting: until try_accept() has returned true, only that and poll_events_for_read() are called.
  static Result<TlsConnection> begin_accept(UniqueFd socket, const TlsContext& context);
  Result<bool> try_accept();  // false: poll, then again
  TlsConnection(TlsConnection&&) noexcept = default;
  TlsConnection& operator=(TlsConnection&& other) noexcept;

  const IslandId& peer() const { return peer_.name; }
  const PeerCertificate& peer_certificate() const { return peer_; }
  const std::string& description() const { return description_; }  // "isl-... at 127.0.0.1:4711"
  std::string_view alpn() const { return negotiated_alpn(ssl_.get()); }

  // Without waiting: bytes moved, 0 when the socket is not ready. kPeerLost when the peer closed or reset. At most
  // one TLS record is read. Written bytes may stay here, encrypted, until the socket takes more: while has_unsent(),
  // poll for POLLOUT and call try_flush(). `more_follows`: the caller writes again, or flushes, at once, and several
  // records leave together.
  Result<std::size_t> try_read(std::span<std::byte> buffer);
  // Reads on until `bytes` holds `size` of them; false when they are not there yet.
  Result<bool> try_read_up_to(Bytes& bytes, std::size_t size);
  // Whether there is something to read, which stays there. Neither when the peer has closed, whatever came before.
  Result<bool> has_come();
  Result<std::size_t> try_write(ByteView bytes, bool more_follows = false);
  Status try_flush();
  std::size_t unsent_bytes() const;  // that stay here
  bool has_unsent() const { return unsent_bytes() > 0; }
  // What poll(2) must watch before the next try_* can move on (POLLIN, POLLOUT or both); 0 when a read would succeed at
  // once because TLS holds decrypted bytes.
  short poll_events_for_read() const;
  short poll_events_for_write() const;
  int fd() const { return socket_.get(); }

  // Waiting until done, `deadline`, or `abort`.
  Status read_exact(std::span<std::byte> buffer, Deadline deadline, const AbortSignal* abort = nullptr);
  Status write_all(ByteView bytes, Deadline deadline, const AbortSignal* abort = nullptr);
  // At least one byte; 0 at the peer's orderly end.
  Result<std::size_t> read_some(std::span<std::byte> buffer, Deadline deadline, const AbortSignal* abort = nullptr);

 private:
  struct SslDeleter {
    void operator()(SSL* ssl) const noexcept;  // tells the peer that no more comes, if that needs no waiting
  };
  struct Transfer {
    std::size_t bytes = 0;
    bool at_end = false;  // the peer said that it sends no more
  };
  TlsConnection(UniqueFd socket, std::unique_ptr<SSL, SslDeleter> ssl, std::string description);

  static Result<TlsConnection> over(UniqueFd socket, const TlsContext& context, std::string description);
  Result<Transfer> read_once(std::span<std::byte> buffer);
  Result<std::size_t> write_once(ByteView bytes);
  Status alert_of_peer();
  Status wait_to_write(Deadline deadline, const AbortSignal* abort);
  Result<Transfer> finish(int result, short& wants);
  Error closed_by_peer() const;

  UniqueFd socket_;  // before ssl_, which uses it
  std::unique_ptr<SSL, SslDeleter> ssl_;
  PeerCertificate peer_;
  std::string description_;
  short wants_for_read_ = 0;  // poll events after a read that could not move on
  short wants_for_write_ = 0;
};

}  // namespace atl
