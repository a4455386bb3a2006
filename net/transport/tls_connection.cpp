#include "net/transport/tls_connection.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <poll.h>

#include <cerrno>
#include <climits>

#include "net/transport/socket.h"
#include "net/transport/socket_bio.h"

namespace atl {
namespace {

// Plaintext of a full TLS record (RFC 8446, 5.1): what one SSL_write moves.
constexpr std::size_t kRecordBytes = 16 << 10;

// OpenSSL counts in int.
int clamp_size(std::size_t size) { return static_cast<int>(std::min<std::size_t>(size, INT_MAX)); }

// What poll must watch for, when the operation only has to wait; 0 when it failed.
short events_wanted(int ssl_error) {
  if (ssl_error == SSL_ERROR_WANT_READ) return POLLIN;
  if (ssl_error == SSL_ERROR_WANT_WRITE) return POLLOUT;
  return 0;
}

// The poll events to wait for before the next try; 0: the handshake is done.
Result<short> try_handshake(SSL* ssl, std::string_view what) {
  ERR_clear_error();
  errno = 0;
  const int result = SSL_do_handshake(ssl);
  if (result == 1) return short{0};
  const short events = events_wanted(SSL_get_error(ssl, result));
  if (events == 0) return tls_error(ssl, result, what);
  return events;
}

Status shake_hands(SSL* ssl, int fd, Deadline deadline, const AbortSignal* abort, std::string_view what) {
  for (;;) {
    ATOLL_ASSIGN_OR_RETURN(const short events, try_handshake(ssl, what));
    if (events == 0) return ok_status();
    ATOLL_RETURN_IF_ERROR(wait_ready(fd, events, deadline, abort, what));
  }
}

}  // namespace

TlsConnection::TlsConnection(UniqueFd socket, std::unique_ptr<SSL, SslDeleter> ssl, std::string description)
    : socket_(std::move(socket)), ssl_(std::move(ssl)), description_(std::move(description)) {}

TlsConnection& TlsConnection::operator=(TlsConnection&& other) noexcept {
  if (this == &other) return *this;
  ssl_ = std::move(other.ssl_);  // first: closing it still writes to the old socket
  socket_ = std::move(other.socket_);
  peer_ = std::move(other.peer_);
  description_ = std::move(other.description_);
  wants_for_read_ = other.wants_for_read_;
  wants_for_write_ = other.wants_for_write_;
  return *this;
}

void TlsConnection::SslDeleter::operator()(SSL* ssl) const noexcept {
  if (SSL_is_init_finished(ssl) == 1) (void)SSL_shutdown(ssl);
  ERR_clear_error();
  SSL_free(ssl);
}

Result<TlsConnection> TlsConnection::over(UniqueFd socket, const TlsContext& context, std::string description) {
  std::unique_ptr<SSL, SslDeleter> ssl(SSL_new(context.native()));
  BIO* bio = new_socket_bio(socket.get());
  if (!ssl || bio == nullptr) {
    BIO_free(bio);
    return Error{ErrorCode::kInternal, fmt::format("cannot set TLS up for {}: out of memory", description)};
  }
  SSL_set_bio(ssl.get(), bio, bio);
  SSL_set_mode(ssl.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  return TlsConnection(std::move(socket), std::move(ssl), std::move(description));
}

Result<TlsConnection> TlsConnection::connect(const Address& address, const TlsContext& context,
                                             const IslandId& expected, Deadline deadline, const AbortSignal* abort) {
  std::string description = fmt::format("{} at {}", expected.value, to_string(address));
  const std::string what = fmt::format("cannot connect to {}", description);
  ATOLL_ASSIGN_OR_RETURN(UniqueFd socket, connect_tcp(address, deadline, abort, what));
  ATOLL_ASSIGN_OR_RETURN(TlsConnection connection, over(std::move(socket), context, std::move(description)));
  SSL_set_connect_state(connection.ssl_.get());
  ATOLL_RETURN_IF_ERROR(shake_hands(connection.ssl_.get(), connection.fd(), deadline, abort, what));
  Result<PeerCertificate> peer = verified_peer(connection.ssl_.get());
  if (!peer.ok()) return peer.error().with_context(what);
  if (peer->name != expected) {
    return Error{ErrorCode::kCertificate,
                 fmt::format("{}: {} answers at this address, with a certificate of this run; the address is wrong or "
                             "has changed hands",
                             what, peer->name.value)};
  }
  connection.peer_ = std::move(*peer);
  return connection;
}

Result<TlsConnection> TlsConnection::accept(UniqueFd socket, const TlsContext& context, Deadline deadline,
                                            const AbortSignal* abort) {
  ATOLL_ASSIGN_OR_RETURN(TlsConnection connection, begin_accept(std::move(socket), context));
  for (;;) {
    ATOLL_ASSIGN_OR_RETURN(const bool done, connection.try_accept());
    if (done) return connection;
    ATOLL_RETURN_IF_ERROR(wait_ready(connection.fd(), connection.wants_for_read_, deadline, abort,
                                     fmt::format("connection from {}", connection.description_)));
  }
}

Result<TlsConnection> TlsConnection::begin_accept(UniqueFd socket, const TlsContext& context) {
  std::string from = to_string(remote_address(socket.get()));
  disable_nagle(socket.get());
  ATOLL_ASSIGN_OR_RETURN(TlsConnection connection, over(std::move(socket), context, std::move(from)));
  SSL_set_accept_state(connection.ssl_.get());
  return connection;
}

Result<bool> TlsConnection::try_accept() {
  const std::string what = fmt::format("connection from {}", description_);
  ATOLL_ASSIGN_OR_RETURN(wants_for_read_, try_handshake(ssl_.get(), what));
  if (wants_for_read_ != 0) return false;
  Result<PeerCertificate> peer = verified_peer(ssl_.get());
  if (!peer.ok()) return peer.error().with_context(what);
  peer_ = std::move(*peer);
  description_ = fmt::format("{} at {}", peer_.name.value, description_);
  return true;
}

Result<TlsConnection::Transfer> TlsConnection::finish(int result, short& wants) {
  wants = 0;
  if (result > 0) return Transfer{static_cast<std::size_t>(result), false};
  const int system_error = errno;
  const int kind = SSL_get_error(ssl_.get(), result);
  wants = events_wanted(kind);
  if (wants != 0) return Transfer{0, false};
  if (kind == SSL_ERROR_ZERO_RETURN) return Transfer{0, true};
  errno = system_error;
  return tls_error(ssl_.get(), result, fmt::format("connection to {}", description_));
}

Result<TlsConnection::Transfer> TlsConnection::read_once(std::span<std::byte> buffer) {
  if (buffer.empty()) return Transfer{0, false};
  ERR_clear_error();
  errno = 0;
  return finish(SSL_read(ssl_.get(), buffer.data(), clamp_size(buffer.size())), wants_for_read_);
}

Result<std::size_t> TlsConnection::try_read(std::span<std::byte> buffer) {
  ATOLL_ASSIGN_OR_RETURN(const Transfer transfer, read_once(buffer));
  if (transfer.at_end) return closed_by_peer();
  return transfer.bytes;
}

Result<bool> TlsConnection::try_read_up_to(Bytes& bytes, std::size_t size) {
  while (bytes.size() < size) {
    const std::size_t had = bytes.size();
    bytes.resize(size);
    const Result<std::size_t> count = try_read(std::span(bytes).subspan(had));
    bytes.resize(had + (count.ok() ? *count : 0));
    if (!count.ok()) return count.error();
    if (*count == 0) return false;
  }
  return true;
}

Result<bool> TlsConnection::has_come() {
  pollfd end{fd(), POLLRDHUP, 0};
  if (::poll(&end, 1, 0) > 0) return closed_by_peer();
  ERR_clear_error();
  errno = 0;
  char first = 0;
  ATOLL_ASSIGN_OR_RETURN(const Transfer transfer, finish(SSL_peek(ssl_.get(), &first, 1), wants_for_read_));
  if (transfer.at_end) return closed_by_peer();
  return transfer.bytes > 0;
}

Result<std::size_t> TlsConnection::try_write(ByteView bytes, bool more_follows) {
  std::size_t moved = 0;
  while (moved < bytes.size()) {
    const ByteView rest = bytes.subspan(moved);
    gather_writes(SSL_get_wbio(ssl_.get()), more_follows || rest.size() > kRecordBytes);
    ATOLL_ASSIGN_OR_RETURN(const std::size_t count, write_once(rest));
    if (count == 0) break;
    moved += count;
  }
  if (!more_follows) ATOLL_RETURN_IF_ERROR(try_flush());
  return moved;
}

Status TlsConnection::try_flush() {
  errno = 0;
  if (send_gathered(SSL_get_wbio(ssl_.get()))) return ok_status();
  const int system_error = errno;
  if (Status alert = alert_of_peer(); !alert.ok()) return alert;
  errno = system_error;
  ERR_clear_error();
  return tls_error(ssl_.get(), -1, fmt::format("connection to {}", description_));
}

std::size_t TlsConnection::unsent_bytes() const { return gathered_bytes(SSL_get_wbio(ssl_.get())); }

Result<std::size_t> TlsConnection::write_once(ByteView bytes) {
  ERR_clear_error();
  errno = 0;
  Result<Transfer> transfer = finish(SSL_write(ssl_.get(), bytes.data(), clamp_size(bytes.size())), wants_for_write_);
  if (transfer.ok() && !transfer->at_end) return transfer->bytes;
  if (Status alert = alert_of_peer(); !alert.ok()) return alert.error();
  return transfer.ok() ? closed_by_peer() : transfer.error();
}

// A server's verdict on our certificate arrives after our own handshake has ended: the alert, if there is one, says
// more than the reset that follows it. What else the peer said before it closed stays to be read.
Status TlsConnection::alert_of_peer() {
  std::byte ignored{};
  ERR_clear_error();
  errno = 0;
  Result<Transfer> alert = finish(SSL_peek(ssl_.get(), &ignored, 1), wants_for_read_);
  if (!alert.ok() && alert.error().code != ErrorCode::kPeerLost) return alert.error();
  return ok_status();
}

short TlsConnection::poll_events_for_read() const {
  // After a read that had to wait there is nothing here but perhaps a part of a record.
  if (wants_for_read_ != 0) return wants_for_read_;
  const bool more_here = SSL_has_pending(ssl_.get()) == 1 || BIO_pending(SSL_get_rbio(ssl_.get())) > 0;
  return more_here ? short{0} : short{POLLIN};
}

short TlsConnection::poll_events_for_write() const { return wants_for_write_ != 0 ? wants_for_write_ : short{POLLOUT}; }

Status TlsConnection::read_exact(std::span<std::byte> buffer, Deadline deadline, const AbortSignal* abort) {
  while (!buffer.empty()) {
    ATOLL_ASSIGN_OR_RETURN(const std::size_t count, read_some(buffer, deadline, abort));
    if (count == 0) return closed_by_peer();
    buffer = buffer.subspan(count);
  }
  return ok_status();
}

Status TlsConnection::write_all(ByteView bytes, Deadline deadline, const AbortSignal* abort) {
  while (!bytes.empty()) {
    ATOLL_ASSIGN_OR_RETURN(const std::size_t count, try_write(bytes));
    bytes = bytes.subspan(count);
    if (count == 0) ATOLL_RETURN_IF_ERROR(wait_to_write(deadline, abort));
  }
  while (has_unsent()) {
    ATOLL_RETURN_IF_ERROR(wait_to_write(deadline, abort));
    ATOLL_RETURN_IF_ERROR(try_flush());
  }
  return ok_status();
}

Status TlsConnection::wait_to_write(Deadline deadline, const AbortSignal* abort) {
  return wait_ready(fd(), poll_events_for_write(), deadline, abort, fmt::format("writing to {}", description_));
}

Result<std::size_t> TlsConnection::read_some(std::span<std::byte> buffer, Deadline deadline, const AbortSignal* abort) {
  for (;;) {
    ATOLL_ASSIGN_OR_RETURN(const Transfer transfer, read_once(buffer));
    if (transfer.bytes > 0 || transfer.at_end || buffer.empty()) return transfer.bytes;
    ATOLL_RETURN_IF_ERROR(
        wait_ready(fd(), poll_events_for_read(), deadline, abort, fmt::format("reading from {}", description_)));
  }
}

Error TlsConnection::closed_by_peer() const {
  return Error{ErrorCode::kPeerLost, fmt::format("connection to {}: the peer closed it", description_)};
}

}  // namespace atl
