#include "net/transport/socket_bio.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstdint>

namespace atl {
namespace {

int fd_of(BIO* bio) { return static_cast<int>(reinterpret_cast<std::intptr_t>(BIO_get_data(bio))); }

bool would_block() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

int write_bytes(BIO* bio, const char* bytes, int count) {
  BIO_clear_retry_flags(bio);
  const auto sent = ::send(fd_of(bio), bytes, static_cast<std::size_t>(count), MSG_NOSIGNAL);
  if (sent < 0 && would_block()) BIO_set_retry_write(bio);
  return static_cast<int>(sent);
}

int read_bytes(BIO* bio, char* buffer, int count) {
  BIO_clear_retry_flags(bio);
  const auto received = ::recv(fd_of(bio), buffer, static_cast<std::size_t>(count), 0);
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

BIO_METHOD* make_method() {
  BIO_METHOD* method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "atoll socket");
  if (method == nullptr) return nullptr;
  BIO_meth_set_write(method, write_bytes);
  BIO_meth_set_read(method, read_bytes);
  BIO_meth_set_ctrl(method, control);
  return method;
}

}  // namespace

BIO* new_socket_bio(int fd) {
  static BIO_METHOD* const method = make_method();  // one for the process, as OpenSSL's own are
  if (method == nullptr) return nullptr;
  BIO* bio = BIO_new(method);
  if (bio == nullptr) return nullptr;
  BIO_set_data(bio, reinterpret_cast<void*>(static_cast<std::intptr_t>(fd)));
  BIO_set_init(bio, 1);
  return bio;
}

}  // namespace atl
