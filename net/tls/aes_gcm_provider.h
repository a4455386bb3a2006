// AES-128-GCM at the speed of VAES: an OpenSSL provider over libipsec-mb, for processors with AVX-512 and VAES, on
// which OpenSSL before 3.1 encrypts at a third of what they can do. The ring encrypts each byte that it sends, so that
// on fast links this is what an all-reduce costs. OpenSSL's own cipher serves everywhere else, and all other ciphers.
#pragma once

#include <string>

namespace atl {

// The property query that makes an SSL_CTX prefer this cipher (SSL_CTX_new_ex); empty where it cannot be had. The first
// call loads the provider into the process's default library context. Any thread.
const std::string& fast_cipher_query();

}  // namespace atl
