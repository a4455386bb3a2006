// SHA-256 (FIPS 180-4), by OpenSSL.
#pragma once

#include <array>
#include <memory>
#include <string>

#include "net/base/bytes.h"

struct evp_md_ctx_st;

namespace atl {

using Digest = std::array<std::byte, 32>;

class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  void update(ByteView bytes);
  Digest finish();  // once

 private:
  evp_md_ctx_st* context_;
};

Digest sha256(ByteView bytes);
std::string sha256_hex(ByteView bytes);
std::string to_hex(const Digest& digest);

}  // namespace atl
