#include "net/base/sha256.h"

#include <openssl/evp.h>

#include <cstdio>
#include <cstdlib>

#include "net/base/encoding.h"

namespace atl {
namespace {

void require(int ok) {
  if (ok == 1) return;
  std::fprintf(stderr, "atoll: OpenSSL has no SHA-256\n");
  std::abort();
}

}  // namespace

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  require(context_ != nullptr);
  require(EVP_DigestInit_ex(context_, EVP_sha256(), nullptr));
}

Sha256::~Sha256() { EVP_MD_CTX_free(context_); }

void Sha256::update(ByteView bytes) { require(EVP_DigestUpdate(context_, bytes.data(), bytes.size())); }

Digest Sha256::finish() {
  Digest digest;
  require(EVP_DigestFinal_ex(context_, reinterpret_cast<unsigned char*>(digest.data()), nullptr));
  return digest;
}

Digest sha256(ByteView bytes) {
  Sha256 hash;
  hash.update(bytes);
  return hash.finish();
}

std::string to_hex(const Digest& digest) { return hex_encode(digest); }
std::string sha256_hex(ByteView bytes) { return to_hex(sha256(bytes)); }

}  // namespace atl
