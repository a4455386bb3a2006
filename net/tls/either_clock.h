// A machine's wall clock that jumps ends no connection: a certificate is in time when it is so by the wall clock, or by
// the wall clock as it stood when this process began and the time that has passed since, which nobody sets.
#pragma once

#include <openssl/x509.h>

namespace atl {

// An SSL_verify_cb, for SSL_CTX_set_verify. Any thread.
int in_time_by_either_clock(int accepted, X509_STORE_CTX* verification);

}  // namespace atl
