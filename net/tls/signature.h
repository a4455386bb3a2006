// Keys with their signing requests (made on the machine whose key it is), and signatures over byte strings: ECDSA on
// P-256 with SHA-256, in DER. No state; any thread.
#pragma once

#include <string>

#include "net/base/bytes.h"
#include "net/base/result.h"
#include "net/tls/identity.h"

namespace atl {

struct KeyAndRequest {
  std::string key_pem;      // stays here
  std::string request_pem;  // PKCS#10, proves possession of the key; names nobody: the hub decides the name
};
KeyAndRequest make_signing_request();
// A request for a key that was made before. kCorrupt when it is no such key.
Result<KeyAndRequest> signing_request_of(const std::string& key_pem);

Result<Bytes> sign_message(const Identity& signer, ByteView message);

// That the hub of the run that `self` belongs to signed the message. `hub_certificate_pem` may come from anywhere (a
// TLS connection, a commit record): it must be signed by self's authority and carry kHubName. Its dates are not
// checked, for records outlive certificates. kCertificate or kCorrupt otherwise.
Status verify_hub_signature(const Identity& self, const std::string& hub_certificate_pem, ByteView message,
                            ByteView signature);

}  // namespace atl
