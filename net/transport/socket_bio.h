// OpenSSL's view of a socket that another owns. Unlike BIO_s_socket, writing to a connection that the peer has closed
// is an error and never the signal SIGPIPE. And it asks the kernel less often: one recv(2) brings what several records
// need, and records that are written in a row leave by one send(2).
#pragma once

#include <openssl/bio.h>

#include <cstddef>

namespace atl {

// `fd` stays the caller's, and outlives the BIO. Null when out of memory.
BIO* new_socket_bio(int fd);

// While set, what is written is kept back, up to some 128 KiB.
void gather_writes(BIO* socket_bio, bool gather);
// Sends what was kept back. False with errno set when the connection has failed; true with bytes left when the socket
// takes no more now.
bool send_gathered(BIO* socket_bio);
std::size_t gathered_bytes(BIO* socket_bio);  // that are kept back

}  // namespace atl
