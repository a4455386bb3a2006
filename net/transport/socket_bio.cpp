#include "net/transport/socket_bio.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <new>

namespace atl {
namespace {

// Eight records of 16 KiB each way: fits the second-level cache together with what they are made of.
constexpr std::size_t kReadBytes = 128 << 10;
constexpr std::size_t kGatherBytes = 130 << 10;

struct Socket {
  int fd = -1;
  bool gathers = false;
  std::size_t sent = 0;  // [sent, gathered) of to_send: kept back, or refused by the socket until now
  std::size_t gathered = 0;
  std::size_t taken = 0;  // [taken, filled) of received: for OpenSSL to take
  std::size_t filled = 0;
  // Not initialised, so that idle connections do not fill memory. At cache lines: the kernel's copies are half as fast
  // elsewhere.
  alignas(64) std::array<char, kGatherBytes> to_send;
  alignas(64) std::array<char, kReadBytes> received;
};

Socket& socket_of(BIO* bio) { return *static_cast<Socket*>(BIO_get_data(bio)); }

bool would_block() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

bool send_rest(Socket& socket) {
  while (socket.sent < socket.gathered) {
    const auto count =
        ::send(socket.fd, socket.to_send.data() + socket.sent, socket.gathered - socket.sent, MSG_NOSIGNAL);
    if (count < 0) return would_block();
    socket.sent += static_cast<std::size_t>(count);
  }
  socket.sent = socket.gathered = 0;
  return true;
}

int write_bytes(BIO* bio, const char* bytes, int count) {
  BIO_clear_retry_flags(bio);
  Socket& socket = socket_of(bio);
  const auto size = static_cast<std::size_t>(count);
  if ((!socket.gathers || size > kGatherBytes - socket.gathered) && !send_rest(socket)) return -1;
  if (socket.gathers || socket.gathered > 0) {
    const std::size_t kept = std::min(size, kGatherBytes - socket.gathered);
    if (kept == 0) {
      BIO_set_retry_write(bio);
      return -1;
    }
    std::memcpy(socket.to_send.data() + socket.gathered, bytes, kept);
    socket.gathered += kept;
    return static_cast<int>(kept);
  }
  const auto sent = ::send(socket.fd, bytes, size, MSG_NOSIGNAL);
  if (sent < 0 && would_block()) BIO_set_retry_write(bio);
  return static_cast<int>(sent);
}

// OpenSSL asks for a record's header, then for its body: small requests, which the buffer answers.
int read_bytes(BIO* bio, char* buffer, int count) {
  BIO_clear_retry_flags(bio);
  Socket& socket = socket_of(bio);
  if (socket.taken == socket.filled) {
    const auto received = ::recv(socket.fd, socket.received.data(), socket.received.size(), 0);
    if (received < 0 && would_block()) BIO_set_retry_read(bio);
    if (received == 0) BIO_set_flags(bio, BIO_FLAGS_IN_EOF);
    if (received <= 0) return static_cast<int>(received);
    socket.taken = 0;
    socket.filled = static_cast<std::size_t>(received);
  }
  const std::size_t moved = std::min(static_cast<std::size_t>(count), socket.filled - socket.taken);
  std::memcpy(buffer, socket.received.data() + socket.taken, moved);
  socket.taken += moved;
  return static_cast<int>(moved);
}

long control(BIO* bio, int command, long, void*) {
  switch (command) {
    case BIO_CTRL_FLUSH: return 1;
    case BIO_CTRL_PENDING: return static_cast<long>(socket_of(bio).filled - socket_of(bio).taken);
    case BIO_CTRL_EOF: return BIO_test_flags(bio, BIO_FLAGS_IN_EOF) != 0 ? 1 : 0;
    default: return 0;
  }
}

int destroy(BIO* bio) {
  delete static_cast<Socket*>(BIO_get_data(bio));
  return 1;
}

BIO_METHOD* make_method() {
  BIO_METHOD* method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "atoll socket");
  if (method == nullptr) return nullptr;
  BIO_meth_set_write(method, write_bytes);
  BIO_meth_set_read(method, read_bytes);
  BIO_meth_set_ctrl(method, control);
  BIO_meth_set_destroy(method, destroy);
  return method;
}

}  // namespace

BIO* new_socket_bio(int fd) {
  static BIO_METHOD* const method = make_method();  // one for the process, as OpenSSL's own are
  if (method == nullptr) return nullptr;
  BIO* bio = BIO_new(method);
  if (bio == nullptr) return nullptr;
  auto* socket = new (std::nothrow) Socket;
  if (socket == nullptr) {
    BIO_free(bio);
    return nullptr;
  }
  socket->fd = fd;
  BIO_set_data(bio, socket);
  BIO_set_init(bio, 1);
  return bio;
}

void gather_writes(BIO* socket_bio, bool gather) { socket_of(socket_bio).gathers = gather; }
bool send_gathered(BIO* socket_bio) { return send_rest(socket_of(socket_bio)); }
std::size_t gathered_bytes(BIO* socket_bio) {
  const Socket& socket = socket_of(socket_bio);
  return socket.gathered - socket.sent;
}

}  // namespace atl
