// OpenSSL's view of a socket that another owns. Unlike BIO_s_socket, writing to a connection that the peer has closed
// is an error and never the signal SIGPIPE.
#pragma once

#include <openssl/bio.h>

namespace atl {

// `fd` stays the caller's, and outlives the BIO. Null when out of memory.
BIO* new_socket_bio(int fd);
// Whether what is written next is followed by more at once: the kernel then sends whole segments only.
void set_more_follows(BIO* socket_bio, bool more);

}  // namespace atl
