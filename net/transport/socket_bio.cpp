#include "net/transport/socket_bio.h"

#include <sys/socket.h>

#include <cerrno>

namespace atl {
namespace {

struct Socket {
  int fd = -1;
  bool more_follows = false;
};

Socket& socket_of(BIO* bio) { return *static_cast<Socket*>(BIO_get_data(bio)); }

bool would_block() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

int write_bytes(BIO* bio, const char* bytes, int count) {
  BIO_clear_retry_flags(bio);
  const Socket& socket = socket_of(bio);
  const int flags = MSG_NOSIGNAL | (socket.more_follows ? MSG_MORE : 0);
  const auto sent = ::send(socket.fd, bytes, static_cast<std::size_t>(count), flags);
  if (sent < 0 && would_block()) BIO_set_retry_write(bio);
  return static_cast<int>(sent);
}

int read_bytes(BIO* bio, char* buffer, int count) {
  BIO_clear_retry_flags(bio);
  const auto received = ::recv(socket_of(bio).fd, buffer, static_cast<std::size_t>(count), 0);
  if (received < 0 && would_block()) BIO_set_retry_read(bio);
  if (received == 0) BIO_set_flags(bio, BIO_FLAGS_IN_EOF);
  return static_cast<int>(received);
}

long control(BIO* bio, int command, long, void*) {
  switch (command) {
    case BIO_CTRL_FLUSH: return 1;
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
  BIO_set_data(bio, new Socket{fd});
  BIO_set_init(bio, 1);
  return bio;
}

void set_more_follows(BIO* socket_bio, bool more) { socket_of(socket_bio).more_follows = more; }

}  // namespace atl
