// A member of before there were receipts (net/wire/ring_frame.h): it knows the older protocol of ring edges alone.
#pragma once

#include <openssl/ssl.h>

#include <cstdlib>
#include <string>
#include <string_view>

#include "net/tls/context.h"

namespace atl {

inline void offer_no_receipts(const TlsContext& dials) {
  const std::string offer = static_cast<char>(kAlpnRing.size()) + std::string(kAlpnRing);
  if (SSL_CTX_set_alpn_protos(dials.native(), reinterpret_cast<const unsigned char*>(offer.data()),
                              static_cast<unsigned int>(offer.size())) != 0) {
    std::abort();
  }
}

// Of a client that offers it. Data and the newer protocol it refuses.
inline void take_no_receipts(const TlsContext& listens) {
  const auto choose = [](SSL*, const unsigned char** out, unsigned char* out_size, const unsigned char* offered,
                         unsigned int size, void*) {
    const std::string older = static_cast<char>(kAlpnRing.size()) + std::string(kAlpnRing);
    const std::string_view offer(reinterpret_cast<const char*>(offered), size);
    const std::size_t at = offer.find(older);
    if (at == std::string_view::npos) return SSL_TLSEXT_ERR_ALERT_FATAL;
    *out = offered + at + 1;
    *out_size = static_cast<unsigned char>(kAlpnRing.size());
    return SSL_TLSEXT_ERR_OK;
  };
  SSL_CTX_set_alpn_select_cb(listens.native(), choose, nullptr);
}

}  // namespace atl
