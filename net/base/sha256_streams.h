// SHA-256 of several messages of one length, taken in step with each other on one thread: where the processor has the
// instructions, twice as fast as one after another (kernels/sha256_blocks.h), else as OpenSSL does them one by one. One
// thread.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kernels/sha256_blocks.h"
#include "net/base/bytes.h"
#include "net/base/sha256.h"

namespace atl {

class Sha256Streams {
 public:
  explicit Sha256Streams(std::size_t count);  // 1 to kSha256Streams

  // parts[i] is what follows in message i. All have the same length, of several messages a multiple of
  // kSha256BlockBytes.
  void update(std::span<const ByteView> parts);
  std::vector<Digest> finish();  // once

 private:
  const bool own_blocks_;
  std::vector<Sha256Chain> chains_;
  std::vector<std::unique_ptr<Sha256>> one_by_one_;
  std::uint64_t bytes_ = 0;  // of each message
};

}  // namespace atl
